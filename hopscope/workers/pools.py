"""Pools of workers: this process, or several processes of this machine.

A worker process is started, never forked: it imports torch with its own number of threads and its
own GPU. Jobs and reports are lines in pipes, so a worker notices when its parent has died. On a GPU
a process does only one job, because all its GPU memory is freed only at its end.
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

WORKER_COMMAND = [sys.executable, "-P", "-m", "hopscope.workers.worker"]
ROOT = Path(__file__).parents[2]
"""The folder that hopscope is imported from; workers import it from there too."""
LAST_LINES = 3
"""Number of output lines of a dead worker that an error quotes."""
ENDING = 30.0
"""Seconds to wait for a process without a job to end; then it is killed."""
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class WorkerLost(Exception):
    """A worker died during its job; another worker may resume the job."""


@runtime_checkable
class OpenPool(Protocol):
    """The workers of a pool while it is open."""

    @property
    def capacity(self) -> int:
        """The largest number of jobs at a time."""

    def begin(self, job: Job) -> Future[list[Report]]:
        """Begin a job. The future returns the reports, or raises `WorkerLost`."""

    def ask_to_stop(self) -> None:
        """Ask every job to stop at a checkpoint. Called once."""


@runtime_checkable
class Pool(Protocol):
    """Trains runs, in this process, in several processes, or on Ray."""

    @property
    def pack(self) -> int:
        """The largest number of models of one shape that train as one fleet; 1: no fleets."""

    @property
    def job_threads(self) -> int | None:
        """Threads of each job; None: as many as the run began with, or torch's default."""

    def open(self, jobs: Sequence[Job], stop: "Stop") -> "AbstractContextManager[OpenPool]":
        """Return a context with workers for these jobs; after the block all have stopped."""


@dataclass(frozen=True)
class Here:
    """One job after another, in this process."""

    pack: int = PACK
    threads: int | None = None
    """CPU threads; None: as many as the run began with, or torch's default."""
    watcher: "Watcher | None" = None
    """Receives the losses of every run."""

    def __post_init__(self) -> None:
        check_pack(self.pack)
        check_threads(self.threads)

    @property
    def job_threads(self) -> int | None:
        """Threads of each job."""
        return self.threads

    @contextmanager
    def open(self, jobs: Sequence[Job], stop: "Stop") -> Iterator[OpenPool]:  # noqa: ARG002
        """Yield one worker, this process; its `begin` returns when the job is done."""
        yield _ThisProcess(self.watcher, stop)


@dataclass(frozen=True)
class _ThisProcess:
    watcher: "Watcher | None"
    stop: "Stop"
    capacity: int = 1

    def begin(self, job: Job) -> Future[list[Report]]:
        future = Future[list[Report]]()
        future.set_result(do(job, self.watcher, self.stop))
        return future

    def ask_to_stop(self) -> None:
        """Do nothing: the job reads the stop at every step."""


@dataclass(frozen=True)
class Processes:
    """Several processes of this machine, each with an equal part of the cores, and a GPU if any."""

    count: int
    pack: int = PACK
    threads: int | None = None
    """Threads of each process; None: an equal part of the cores."""

    def __post_init__(self) -> None:
        check_pack(self.pack)
        check_threads(self.threads)
        if not 1 <= self.count <= cores():
            raise ConfigError(
                f"workers is {self.count}; expected 1 to {cores()}, as many as there are cores: "
                "more would slow each other down"
            )
        needed = self.job_threads * self.count
        if needed > cores():
            raise ConfigError(
                f"{self.count} workers with {self.job_threads} threads each need {needed} cores, "
                f"and there are {cores()}: leave out --threads, or take fewer workers"
            )

    @property
    def job_threads(self) -> int:
        """Threads of each process."""
        return self.threads or cores() // self.count

    @contextmanager
    def open(self, jobs: Sequence[Job], stop: "Stop") -> Iterator[OpenPool]:  # noqa: ARG002
        """Yield the processes, which start when needed; after the block busy ones are killed."""
        gpus = gpus_for({job.device for job in jobs}) or [None]
        processes = [_Process(self.job_threads, gpus[n % len(gpus)]) for n in range(self.count)]
        with ThreadPoolExecutor(self.count) as threads:
            try:
                yield _Processes(processes, threads)
            finally:
                for each in processes:
                    each.end()


def gpus_for(devices: set[str]) -> list[str | None]:
    """Return the visible GPUs, named as in CUDA_VISIBLE_DEVICES; empty for the CPU."""
    if devices <= {"cpu"}:
        return []
    import torch

    from hopscope.training.device import device_of

    for name in devices:
        check_unnumbered(name)
        device_of(name)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    count = torch.cuda.device_count()
    return [*(visible.split(",")[:count] if visible else map(str, range(count)))]


def environment(threads: int | None, gpu: str | None = None) -> dict[str, str]:
    """Return the environment variables of a worker process, with its threads and its GPU."""
    path = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    if threads is not None:
        variables |= dict.fromkeys(THREADS, str(threads))
    if gpu is not None:
        variables["CUDA_VISIBLE_DEVICES"] = gpu
    return variables


@dataclass(frozen=True)
class _Processes:
    """Worker processes, each with a thread that waits for its reports."""

    processes: "Sequence[_Process]"
    threads: ThreadPoolExecutor

    @property
    def capacity(self) -> int:
        return len(self.processes)

    def begin(self, job: Job) -> Future[list[Report]]:
        process = next(each for each in self.processes if not each.busy)
        process.begin(job)
        return self.threads.submit(process.reports)

    def ask_to_stop(self) -> None:
        for each in self.processes:
            each.ask_to_stop()


class _Process:
    """A worker process, started for its first job, and again after it died."""

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
        """Send a job to the process. If it has just died, `reports` notices."""
        self.busy = True
        if self._running is None:
            self._start()
        assert self.running.stdin is not None
        with suppress(BrokenPipeError):
            self.running.stdin.write(job.model_dump_json().encode() + b"\n")
            self.running.stdin.flush()

    def _start(self) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (`end` closes it)
        # In its own process group: Ctrl-C reaches only this process, which then stops the worker.
        self._running = subprocess.Popen(
            WORKER_COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            env=environment(self.threads, self.gpu), process_group=0,
        )  # fmt: skip

    def reports(self) -> list[Report]:
        """Wait for the reports on the job."""
        assert self.running.stdout is not None
        try:
            line = self.running.stdout.readline()
            if line.endswith(b"\n"):
                if self.gpu is not None:
                    self._close()
                return reports_from(line)
            code, printed = self._ended(), self._last_lines()
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
        """Kill a busy process (its thread closes it); close an idle one."""
        if self.busy and (running := self._running):
            running.kill()  # also kills a process stopped by SIGSTOP
        elif self._running:
            self._close()

    def ask_to_stop(self) -> None:
        """Ask the process to stop at a checkpoint."""
        if self.busy and (running := self._running):
            running.terminate()

    def _close(self) -> None:
        assert self._errors is not None
        assert self.running.stdin is not None
        assert self.running.stdout is not None
        with suppress(BrokenPipeError):
            self.running.stdin.close()
        self._ended()
        self.running.stdout.close()
        self._errors.close()
        self._running = None

    def _ended(self) -> int:
        """Return the exit code of the process; kill it if it does not end within `ENDING`."""
        try:
            return self.running.wait(ENDING)
        except subprocess.TimeoutExpired:
            self.running.kill()
            return self.running.wait()
