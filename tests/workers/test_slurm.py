"""The job script for SLURM; `tests/cli/test_sweep.py` runs one."""

import shutil
import subprocess
from pathlib import Path

import pytest

from hopscope.errors import ConfigError
from hopscope.workers.slurm import Array


def test_the_script_asks_for_what_was_said(tmp_path: Path) -> None:
    file = tmp_path / "a sweep.py"
    array = Array(file, tmp_path / "runs", shards=8, minutes=1_501, cpus=8, gpus=2, workers=4)
    lines = array.script().splitlines()
    assert lines[0] == "#!/bin/bash"
    for asked in ("array=1-8", "time=1-01:01:00", "cpus-per-task=8", "gres=gpu:2", "requeue"):
        assert f"#SBATCH --{asked}" in lines
    (command,) = (line for line in lines if " -m hopscope sweep " in line)
    assert command.endswith(f"sweep '{file}' --workers 4 --store {tmp_path}/runs \\")
    assert '--shard "$SLURM_ARRAY_TASK_ID/8" --threads "$((SLURM_CPUS_PER_TASK / 4))"' in "".join(
        lines
    )


def test_the_script_is_bash(tmp_path: Path) -> None:
    script = Array(tmp_path / "it's.py", tmp_path, shards=1).script()
    assert shutil.which("bash")
    done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_name_of_a_file_writes_no_lines_of_the_script(tmp_path: Path) -> None:
    lines = Array(tmp_path / "a\necho ü $(b) #.py", tmp_path, shards=1).script().splitlines()
    assert "#SBATCH --job-name=hopscope-a-echo-----b---" in lines
    assert "#SBATCH --output=hopscope-a-echo-----b----%A_%a.log" in lines


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"shards": 0}, "--shards is 0; expected 1 or more"),
        ({"minutes": 4}, "--minutes is 4; expected 5 or more"),
        ({"cpus": 0}, "--cpus is 0; expected 1 or more"),
        ({"gpus": -1}, "--gpus is -1; expected 0 or more"),
        ({"workers": 5}, "--workers is 5; expected 1 to 4, as many as --cpus"),
    ],
)
def test_what_no_job_can_be_is_refused(wrong: dict[str, int], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        Array(Path("f.py"), Path("runs"), **{"shards": 1, **wrong})
