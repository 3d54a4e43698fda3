"""Everything but one thing stands in pyproject.toml: the tables of results/ go into the package.

In the repository they lie beside it, where `hopscope reproduce` writes them; an installed hopscope
has them inside, so that `hopscope claims` and `hopscope report` know what was measured.
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

PAPERS = ("chen", "musat")


class WithResults(build_py):
    """Copies the tables of both papers beside the code, unless the package stays where it is."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        for paper in PAPERS:
            for table in sorted(Path("results", paper).glob("*.jsonl")):
                target = Path(self.build_lib, "hopscope", table)
                target.parent.mkdir(parents=True, exist_ok=True)
                self.copy_file(str(table), str(target))


setup(cmdclass={"build_py": WithResults})
