"""Every program that measures can be started: what it imports is there."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
IMPORTS = """
import importlib.util, pathlib, sys
sys.path.insert(0, sys.argv[1])
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.py")):
    spec = importlib.util.spec_from_file_location(f"of_{path.stem}", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        print(f"{path.name}: {type(error).__name__}: {error}")
"""


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["benchmarks", "results/scripts"])
def test_all_imports_are_there(folder: str) -> None:
    command = [sys.executable, "-c", IMPORTS, str(ROOT / folder)]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    assert found.stdout == ""
