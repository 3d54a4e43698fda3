"""A few kills of a real process; benchmarks/kill_resume.py does fifty."""

import importlib.util
import random
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "kill_resume.py"


@pytest.mark.slow
def test_a_killed_training_ends_as_if_nothing_had_happened(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("kill_resume", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    random.seed(0)
    result = script.compare(tmp_path, kills=2, steps=200)
    assert result["identical"]
    assert result["kills"] == 2
