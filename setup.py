"""Two things that pyproject.toml cannot say.

The tables of results/ go into the package. In the repository they lie beside it, where `hopscope
papers run` writes them; an installed hopscope has them inside, so that `hopscope papers claims` and
`papers report` know what was measured.

README.md has links within the repository. On a package index they lead to the repository's address.
"""

import re
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

PAPERS = ("chen", "musat")
LINK = re.compile(r"(!?)(\[[^]]*\])\((?!https?:|#)([^)]+)\)")


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


def readme() -> str:
    """README.md with links that hold everywhere: to pictures as files, to all else as pages."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    repository = project["urls"]["Repository"]

    def absolute(link: re.Match[str]) -> str:
        picture, text, target = link.groups()
        return f"{picture}{text}({repository}/{'raw' if picture else 'blob'}/main/{target})"

    return LINK.sub(absolute, Path("README.md").read_text(encoding="utf-8"))


setup(
    cmdclass={"build_py": WithResults},
    long_description=readme(),
    long_description_content_type="text/markdown",
)
