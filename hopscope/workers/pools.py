"""Pools of workers: this process alone, or several processes of this machine.

A process of a pool is started anew, never forked: it imports torch with its own number of threads
and its own GPU. Jobs and reports are lines in pipes, so a worker notices when its parent is gone.
On a GPU a process does one job only, since its memory is freed whole only when it ends.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol, runtime_checkable

from hopscope.errors import ConfigError
from hopscope.machine import check_threads, cores
from hopscope.workers.fleets import PACK, check_pack
from hopscope.workers.job import Job, Report, check_unnumbered, do, reports_from

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from hopscope.runs import Stop, Watcher

COMMAND = [sys.executable, "-P", "-m", "hopscope.workers.worker"]
ROOT = Path(__file__).parents[2]
"""The folder that this hopscope, and its workers', is imported from."""
LAST_LINES = 3
"""Lines that are quoted of what a dead worker printed."""
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class WorkerLost(Exception):
    """A worker died during its job. The job may go on in another worker."""


@runtime_checkable
class Workers(Protocol):
    """The workers of a pool while it is open."""

    @property
    def most(self) -> int:
        """Jobs that they take at a time."""

    def begin(self, job: Job) -> Future[list[Report]]:
        """Begin a job. The future holds its reports, or raises `WorkerLost`."""

    def ask_to_stop(self) -> None:
        """Ask every job to stop at a checkpoint. Called once."""


@runtime_checkable
class Pool(Protocol):
    """Somebody who trains runs: this process, several, or Ray."""

    @property
    def pack(self) -> int:
        """Models of one shape that train as one fleet at most; 1: none do."""

    @property
    def share(self) -> int | None:
        """Threads of each job; None: as many as the run began with, or torch's default."""

    def open(self, jobs: Sequence[Job], stop: "Stop") -> "AbstractContextManager[Workers]":
        """The workers for these jobs; on leaving, none of them is at work any more."""


@dataclass(frozen=True)
class Here:
    """One job after another, in this process."""

    pack: int = PACK
    threads: int | None = None
    """Threads of the processor; None: as many as the run began with, or torch's default."""
    watcher: "Watcher | None" = None
    """Is shown every step."""

    def __post_init__(self) -> None:
        check_pack(self.pack)
        check_threads(self.threads)

    @property
    def share(self) -> int | None:
        """Threads of each job."""
        return self.threads

    @contextmanager
    def open(self, jobs: Sequence[Job], stop: "Stop") -> Iterator[Workers]:  # noqa: ARG002
        """One worker, this process: a job is done when it is begun."""
        yield _ThisProcess(self.watcher, stop)


@dataclass(frozen=True)
class _ThisProcess:
    watcher: "Watcher | None"
    stop: "Stop"
    most: int = 1

    def begin(self, job: Job) -> Future[list[Report]]:
        found = Future[list[Report]]()
        found.set_result(do(job, self.watcher, self.stop))
        return found

    def ask_to_stop(self) -> None:
        """Nothing is at work by then: the stop was asked at every step."""


@dataclass(frozen=True)
class Processes:
    """Several processes of this machine, each with its share of the cores, and a GPU if any."""

    count: int
    pack: int = PACK
    threads: int | None = None
    """Threads of each; None: its share of the cores."""

    def __post_init__(self) -> None:
        check_pack(self.pack)
        check_threads(self.threads)
        if not 1 <= self.count <= cores():
            raise ConfigError(
                f"workers is {self.count}; expected 1 to {cores()}, as many as there are cores: "
                "more would wait for each other"
            )
        if self.share * self.count > cores():
            raise ConfigError(
                f"{self.count} workers with {self.share} threads each need "
                f"{self.share * self.count} cores, and there are {cores()}: leave out --threads, "
                "or take fewer workers"
            )

    @property
    def share(self) -> int:
        """Threads of each."""
        return self.threads or cores() // self.count

    @contextmanager
    def open(self, jobs: Sequence[Job], stop: "Stop") -> Iterator[Workers]:  # noqa: ARG002
        """The processes, which start when they are needed, and are killed if they still work."""
        gpus = gpus_for({job.device for job in jobs}) or [None]
        processes = [_Process(self.share, gpus[n % len(gpus)]) for n in range(self.count)]
        with ThreadPoolExecutor(self.count) as threads:
            try:
                yield _Processes(processes, threads)
            finally:
                for each in processes:
                    each.end()


def gpus_for(devices: set[str]) -> list[str | None]:
    """The GPUs that may be used, as CUDA_VISIBLE_DEVICES names them; none for the processor."""
    if devices <= {"cpu"}:
        return []
    import torch

    from hopscope.training.device import device_of

    for name in devices:
        check_unnumbered(name)
        device_of(name)
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    found = [str(number) for number in range(torch.cuda.device_count())]
    return [*(named.split(",")[: len(found)] if named and found else found)]


def environment(threads: int | None, gpu: str | None = None) -> dict[str, str]:
    """The environment of a process of ours: this hopscope, so many threads, and a GPU."""
    path = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    if threads is not None:
        found |= dict.fromkeys(THREADS, str(threads))
    if gpu is not None:
        found["CUDA_VISIBLE_DEVICES"] = gpu
    return found


@dataclass(frozen=True)
class _Processes:
    """Processes, and a thread for each that waits for its reports."""

    processes: "Sequence[_Process]"
    threads: ThreadPoolExecutor

    @property
    def most(self) -> int:
        return len(self.processes)

    def begin(self, job: Job) -> Future[list[Report]]:
        process = next(each for each in self.processes if not each.busy)
        process.begin(job)
        return self.threads.submit(process.reports)

    def ask_to_stop(self) -> None:
        for each in self.processes:
            each.ask_to_stop()


class _Process:
    """A worker process, which is started for its first job, and again if it died."""

    def __init__(self, threads: int, gpu: str | None) -> None:
        self.threads, self.gpu = threads, gpu
        self.busy = False
        self._running: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None

    @property
    def running(self) -> subprocess.Popen[bytes]:
        assert self._running is not None
        return self._running

    def begin(self, job: Job) -> None:
        """Give it a job. If it has just died, waiting for its reports finds out."""
        self.busy = True
        if self._running is None:
            self._start()
        assert self.running.stdin is not None
        with suppress(BrokenPipeError):
            self.running.stdin.write(job.canonical_json().encode() + b"\n")
            self.running.stdin.flush()

    def _start(self) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (`end` closes it)
        # In a group of its own: Ctrl-C in a terminal is for us, who ask it to stop once.
        self._running = subprocess.Popen(
            COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            env=environment(self.threads, self.gpu), process_group=0,
        )  # fmt: skip

    def reports(self) -> list[Report]:
        """Wait for the reports on its job."""
        assert self.running.stdout is not None
        try:
            line = self.running.stdout.readline()
            if line.endswith(b"\n"):
                if self.gpu is not None:
                    self._close()
                return reports_from(line)
            code, printed = self.running.wait(), self._last_lines()
            self._close()
        finally:
            self.busy = False
        if code >= 0:
            raise RuntimeError(f"a worker failed (exit code {code}): {printed}")
        raise WorkerLost(f"{signal.Signals(-code).name}; {printed or 'it printed nothing'}")

    def _last_lines(self) -> str:
        assert self._errors is not None
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").split("\n")
        return " | ".join([line.strip() for line in lines if line.strip()][-LAST_LINES:])

    def end(self) -> None:
        """Kill it if it works; its thread then closes it. An idle one ends with its input."""
        if self.busy and (running := self._running):
            running.kill()  # kills a process that was stopped (SIGSTOP), too
        elif self._running:
            self._close()

    def ask_to_stop(self) -> None:
        """Ask it to end its job at a checkpoint."""
        if self.busy and (running := self._running):
            running.terminate()

    def _close(self) -> None:
        assert self._errors is not None
        with suppress(BrokenPipeError):
            self.running.communicate()  # closes its input, and waits for its end
        self._errors.close()
        self._running = None
