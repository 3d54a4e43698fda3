"""Tests compute on the processor, also where there is a GPU (`conftest.py` hides it)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PRETENDED = """
import os
import torch

def there():
    return os.environ.get("CUDA_VISIBLE_DEVICES") != ""

torch.cuda.is_available = there
torch.cuda.device_count = lambda: int(there())
torch.cuda.get_device_capability = lambda device: (9, 0)
"""
"""A plugin of pytest: torch sees a GPU that is not hidden."""


@pytest.mark.slow
def test_a_gpu_is_not_seen_by_tests_that_do_not_ask_for_one(tmp_path: Path) -> None:
    (tmp_path / "pretended.py").write_text(PRETENDED)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    del environment["CUDA_VISIBLE_DEVICES"]  # that of this test
    command = [sys.executable, "-m", "pytest", "-p", "pretended", "-p", "no:cacheprovider"]
    test = "tests/training/test_stepper.py::test_a_run_has_its_checkpoints_and_metrics"
    done = subprocess.run(
        [*command, test], cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
        timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
