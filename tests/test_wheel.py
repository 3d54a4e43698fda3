"""What an installed package holds beside its code."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hopscope.papers.registry import PAPERS

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
def test_the_tables_of_both_papers_are_inside(tmp_path: Path) -> None:
    pytest.importorskip("setuptools")
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("hopscope", "results"):
        (tmp_path / name).symlink_to(ROOT / name)
    built = tmp_path / "built"
    order = [sys.executable, "setup.py", "-q", "build_py", "--build-lib", str(built)]
    subprocess.run(order, cwd=tmp_path, check=True, capture_output=True, timeout=600)
    inside = PAPERS.results(built / "hopscope" / "results")
    beside = PAPERS.results(ROOT / "results")
    assert inside.any()
    for target in PAPERS.experiments:
        assert inside.path(target).read_bytes() == beside.path(target).read_bytes()
    assert not [path for path in inside.root.rglob("*") if path.suffix not in ("", ".jsonl")]
    assert (built / "hopscope" / "gallery" / "demo" / "manifest.json").is_file()
