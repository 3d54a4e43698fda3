"""Every example runs, at a tiny size."""

import subprocess
import sys
from pathlib import Path

import pytest
from stopping import changed

from hopscope import Experiment, attention_maps, discover, train

EXAMPLES = Path(__file__).parents[1] / "examples"
SIZES = {
    "main_flow.py": ["--steps", "30"],
    "gpt2_from_elsewhere.py": ["3"],
    "task_of_ones_own.py": ["3"],
    "adapter.py": ["3"],
    "blocks.py": ["3"],
    "induction_heads.py": ["--chains", "500"],
}


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.py")), ids=lambda path: path.name)
def test_the_example_runs(path: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(path), *SIZES.get(path.name, [])]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.json")), ids=lambda path: path.name)
def test_the_experiment_file_trains_and_is_examined(path: Path, tmp_path: Path) -> None:
    whole = Experiment.from_json(path.read_bytes())
    small = changed(whole, steps=4, batch=4, examples=16, validation_examples=4, checkpoint_every=2)
    run = train(small, tmp_path / "runs")
    assert attention_maps(run.model, whole.task, examples=4).roles == whole.task.roles()
    circuit = discover(run.model, whole.task, examples=8, force=True)
    assert circuit.task == whole.task
