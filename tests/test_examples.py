"""Every example runs, at a tiny size."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SIZES = {
    "main_flow.py": ["--steps", "30"],
    "gpt2_from_elsewhere.py": ["3"],
    "induction_heads.py": ["--chains", "500"],
}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_the_example_runs(path: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(path), *SIZES.get(path.name, [])]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert list(tmp_path.iterdir()) == []
