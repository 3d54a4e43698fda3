"""A kill of a real process, between two checkpoints; benchmarks/kill_resume.py does fifty."""

import importlib.util
import subprocess
import time
from pathlib import Path

import pytest

from hopscope.training import train

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "kill_resume.py"


@pytest.mark.slow
def test_a_killed_training_ends_as_if_nothing_had_happened(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("kill_resume", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    experiment, config = script.experiment(120), tmp_path / "experiment.json"
    config.write_text(experiment.canonical_json())
    process = subprocess.Popen(script.command(config, tmp_path / "cut"), stdout=subprocess.DEVNULL)
    while not list(tmp_path.glob("cut/*/checkpoints/step-00000040*")):
        assert process.poll() is None
        time.sleep(0.005)
    process.kill()
    process.wait()
    assert 20 <= script.check_readable(tmp_path / "cut") < 120  # its manifest may not be there yet
    cut, whole = (
        train(experiment, tmp_path / name, device="cpu", threads=1) for name in ("cut", "whole")
    )
    assert script.contents(cut.folder) == script.contents(whole.folder)
