"""Real processes that are killed, and what is in the store afterwards.

A process that imports torch takes seconds to start, a fork of one that has it takes milliseconds.
So work is done in forks of a process in which everything was imported once and nothing computed.
"""

import multiprocessing
import os
import resource
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path

import duckdb  # noqa: F401
import pytest
import safetensors.torch  # noqa: F401
from stopping import TINY, changed, content

import hopscope.circuits
import hopscope.cli.main
import hopscope.ngram
import hopscope.plots
from hopscope.configs import Experiment
from hopscope.store import Store

TESTS = Path(__file__).parents[1]
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["torture.harness"])
LIMIT = 300.0
"""Seconds after which whoever has not ended hangs, on a machine that does much else."""
LONGEST = 1_000
"""Characters of a line that one can still read."""


@dataclass(frozen=True)
class Ended:
    """How a process ended: its exit code, or minus the signal's number, and what it said."""

    code: int
    out: str
    err: str

    @property
    def told(self) -> list[str]:
        """The lines meant for the user about what is wrong."""
        return [line for line in self.err.splitlines() if line.startswith("hopscope: ")]

    @property
    def rude(self) -> str:
        """What is wrong with how it ended: a traceback, a signal, other words than ours, none."""
        lines = self.err.splitlines()
        strange = [line for line in lines if not line.startswith(("hopscope: ", "["))]
        if self.code not in (0, 1, 2, 3) or (self.code and not self.told):
            return f"exit code {self.code}: {self.err[-500:]}"
        if strange:
            return f"other words on stderr: {strange[0]} … {strange[-1]}"
        return "a line without end" if any(len(line) > LONGEST for line in lines) else ""


def started(said: Path, work: Callable[..., int | None], *given: object) -> BaseProcess:
    """A process that does this; what it says goes into the files `said`.out and `said`.err."""
    process = CONTEXT.Process(target=_work, args=(said, work, given))
    with pytest.MonkeyPatch.context() as patch:  # the process from which it is forked imports us
        patch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), *sys.path]))
        forkserver.ensure_running()
    process.start()
    return process


def done(work: Callable[..., int | None], *given: object, limit: float = LIMIT) -> Ended:
    """Do this in a process of its own, which is killed when it hangs."""
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "said"
        process = started(said, work, *given)
        return ended(process, said, limit)


def ended(process: BaseProcess, said: Path, limit: float = LIMIT) -> Ended:
    """Wait for the end of a process that was started."""
    process.join(limit)
    hangs = process.is_alive()
    process.kill()
    process.join()
    texts = [said.with_suffix(each).read_text(errors="replace") for each in (".out", ".err")]
    assert process.exitcode is not None
    return Ended(process.exitcode, texts[0], texts[1] + "it hangs" * hangs)


def _work(said: Path, work: Callable[..., int | None], given: Iterable[object]) -> None:
    for file, suffix in ((1, ".out"), (2, ".err")):
        os.dup2(os.open(said.with_suffix(suffix), os.O_CREAT | os.O_WRONLY | os.O_APPEND), file)
    sys.stdout, sys.stderr = (open(file, "w", closefd=False) for file in (1, 2))  # noqa: SIM115
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.exit(work(*given))


def hopscope_(folder: Path, *words: str) -> int:
    """The command line in a folder, whose store is `runs`: its exit code."""
    os.chdir(folder)
    os.environ["COLUMNS"] = "250"  # no name is cut
    sys.argv = ["hopscope", *words, "--store", "runs"]
    try:
        hopscope.cli.main.main()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return 0


def transformer(seed: int = 0, steps: int = 6) -> Experiment:
    """A small model that is trained in no time."""
    few = changed(TINY, steps=steps, checkpoint_every=3, validate_every=3)
    return few.replace(seeds=(seed,))


def train_words(folder: Path, recipe: Experiment, name: str = "recipe.json") -> tuple[str, ...]:
    """The command that trains a recipe, which is written into the folder."""
    (folder / name).write_text(recipe.canonical_json())
    return ("train", name, "--device", "cpu", "--threads", "1")


def committed(root: Path) -> dict[str, dict[str, bytes]]:
    """All that the manifests of a store name. Whatever is there must be readable and whole."""
    runs, problems = Store(root).readable() if root.exists() else ([], [])
    damage = [line for run in runs for line in run.verify() if "not in the manifest" not in line]
    assert problems + damage == []
    return {run.name: content(run) for run in runs}
