"""A job script for SLURM: an array with one shard of a sweep for each job.

The script is printed, not submitted. Before the time limit SLURM signals only the script (B:). The
script passes the signal to Python, which writes a checkpoint and exits with 75; then the job queues
itself again.
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from hopscope.errors import ConfigError
from hopscope.workers.fleets import PACK, check_pack

WARNING = 120
"""Seconds before the end at which SLURM signals a job. SLURM may be a minute late."""


@dataclass(frozen=True)
class Array:
    """The settings of an array of jobs."""

    file: Path
    """The file of recipes."""
    store: Path
    shards: int
    minutes: int = 240
    """Minutes after which a job stops and queues itself again."""
    cpus: int = 4
    gpus: int = 0
    workers: int = 1
    pack: int = PACK

    def __post_init__(self) -> None:
        """Raise ConfigError for impossible settings."""
        check_pack(self.pack)
        for name, least in (("shards", 1), ("minutes", 5), ("cpus", 1), ("gpus", 0)):
            if getattr(self, name) < least:
                flag = "time-limit" if name == "minutes" else name
                raise ConfigError(f"--{flag} is {getattr(self, name)}; expected {least} or more")
        if not 1 <= self.workers <= self.cpus:
            raise ConfigError(
                f"--workers is {self.workers}; expected 1 to {self.cpus}, as many as --cpus"
            )

    def script(self) -> str:
        """The job script."""
        gpus = f"#SBATCH --gres=gpu:{self.gpus}\n" if self.gpus else ""
        return SCRIPT.format(
            name=re.sub(r"[^\w.-]", "-", f"hopscope-{self.file.stem}", flags=re.ASCII),
            shards=self.shards,
            time=_time(self.minutes),
            cpus=self.cpus,
            gpus=gpus,
            warning=WARNING,
            folder=quote(str(Path.cwd())),
            command=" ".join(map(quote, self._command())),
            workers=self.workers,
        )

    def _command(self) -> list[str]:
        words = [sys.executable, "-m", "hopscope", "sweep", str(self.file.absolute())]
        if self.workers > 1:
            words += ["--workers", str(self.workers)]
        if self.pack != PACK:
            words += ["--pack", str(self.pack)]
        return [*words, "--store", str(self.store.absolute())]


def _time(minutes: int) -> str:
    days, rest = divmod(minutes, 24 * 60)
    return f"{days}-{rest // 60:02}:{rest % 60:02}:00"


SCRIPT = """\
#!/bin/bash
# Written by `hopscope sweep --slurm`. Read it, add what your cluster asks for (partition, account),
# then: sbatch FILE
#SBATCH --job-name={name}
#SBATCH --array=1-{shards}
#SBATCH --time={time}
#SBATCH --ntasks=1
#SBATCH --cpus-per-task={cpus}
{gpus}#SBATCH --requeue
#SBATCH --signal=B:USR1@{warning}
#SBATCH --open-mode=append
#SBATCH --output={name}-%A_%a.log

cd {folder} || exit 2
# Before the time is up: python writes a checkpoint and exits with 75.
signalled=
trap 'signalled=1; kill -USR1 "$job"' USR1
{command} \\
    --shard "$SLURM_ARRAY_TASK_ID/{shards}" --threads "$((SLURM_CPUS_PER_TASK / {workers}))" &
job=$!
wait "$job"; code=$?
if [ -n "$signalled" ]; then wait "$job"; code=$?; fi  # the signal ended the first wait
if [ "$code" -eq 75 ]; then
    scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID"
fi
exit "$code"
"""
