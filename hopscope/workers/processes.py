"""The pool of one machine: several processes beside each other, each with its share of it.

A worker is a process that was started anew, and never a fork: it imports torch with its own number
of threads and its own GPU. Jobs and reports go through pipes, so that a worker whose parent is gone
hears of it. It does one job after another; on a GPU one alone, as its memory is given back whole
only by a process that ends.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from typing import IO, TYPE_CHECKING

from hopscope.errors import ConfigError, Interrupted
from hopscope.machine import check_threads, cores
from hopscope.workers.job import Job, Report, check_unnumbered, reports_of
from hopscope.workers.packing import PACK, check_pack
from hopscope.workers.task import Task

if TYPE_CHECKING:
    from hopscope.runs import Stop

COMMAND = [sys.executable, "-P", "-m", "hopscope.workers.worker"]
ROOT = Path(__file__).parents[2]
"""Where this hopscope is imported from, and its workers import theirs."""
MOMENT = 0.25
"""Seconds after which who waits may look on."""
LAST_LINES = 3
"""Lines that are told of what a worker said last."""
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True)
class Processes:
    """Several processes of this machine, each with its share of cores, and with a GPU."""

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

    def reports(self, jobs: Sequence[Job], stop: "Stop") -> Generator[Report | None, None, None]:
        """The reports of all jobs as they come in."""
        gpus = gpus_for({job.device for job in jobs})
        crew = _Crew(min(self.count, len(jobs)), self.share, gpus)
        with stop.listening():
            try:
                yield from crew.reports(jobs, stop)
            finally:
                crew.kill()
            if stop.reason in signal.Signals.__members__:
                raise Interrupted(f"stopped by {stop.reason}")


def gpus_for(devices: set[str]) -> list[str]:
    """The GPUs that may be used, as CUDA_VISIBLE_DEVICES names them; none for the processor."""
    if devices <= {"cpu"}:
        return []
    import torch

    from hopscope.training.precision import device_of

    for name in devices:
        check_unnumbered(name)
        device_of(name)
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    found = [str(number) for number in range(torch.cuda.device_count())]
    return named.split(",")[: len(found)] if named and found else found


def environment(threads: int | None, gpu: str | None = None) -> dict[str, str]:
    """What a process of ours is started with: this hopscope, so many threads, and a GPU."""
    path = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    if threads is not None:
        found |= dict.fromkeys(THREADS, str(threads))
    if gpu is not None:
        found["CUDA_VISIBLE_DEVICES"] = gpu
    return found


class _Worker:
    """One process, what it is doing, and what it said."""

    def __init__(self, gpu: str | None, threads: int) -> None:
        self.gpu = gpu
        self.task: Task | None = None
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (closed by `end`)
        # In a group of its own: Ctrl-C in a terminal is for us, who ask it to stop once.
        self.process = subprocess.Popen(
            COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
            env=environment(threads, gpu), process_group=0,
        )  # fmt: skip

    @property
    def out(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout

    def begin(self, task: Task) -> None:
        """Hand it a job. One that has just died is found dead when its reports are awaited."""
        self.task = task
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write(task.handed_out().canonical_json().encode() + b"\n")
            self.process.stdin.flush()

    def last_lines(self) -> str:
        """What it said last."""
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").split("\n")
        return " | ".join([line.strip() for line in lines if line.strip()][-LAST_LINES:])

    def end(self) -> None:
        """Let it end, by force if need be; nothing of it is left."""
        assert self.process.stdin is not None
        if self.task is not None:
            self.process.kill()
            # One that was stopped (SIGSTOP) dies of SIGKILL all the same.
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()
        self.out.close()
        self.errors.close()


@dataclass
class _Crew:
    """The processes of a pool while they work."""

    size: int
    threads: int
    gpus: list[str]
    workers: list[_Worker] = field(default_factory=list)

    def reports(self, jobs: Sequence[Job], stop: "Stop") -> Generator[Report | None, None, None]:
        """Hand out all jobs, and yield what becomes of them."""
        waiting, asked = deque(map(Task, jobs)), False
        while waiting or self.busy:
            if stop.reason:
                waiting.clear()
                if not asked:
                    self.ask_to_stop()
                asked = True
            while waiting and len(self.busy) < self.size:
                self.free_worker().begin(waiting.popleft())
            ready = wait([worker.out.fileno() for worker in self.busy], MOMENT)
            if not ready:
                yield None
            for worker in [each for each in self.busy if each.out.fileno() in ready]:
                yield from self.heard(worker, waiting, stop)

    @property
    def busy(self) -> list[_Worker]:
        """Those who have a job."""
        return [worker for worker in self.workers if worker.task is not None]

    def ask_to_stop(self) -> None:
        """Ask all to end with a checkpoint."""
        for worker in self.busy:
            worker.process.terminate()

    def free_worker(self) -> _Worker:
        """One who has nothing to do, or a new one, on the GPU that has the fewest."""
        for worker in self.workers:
            if worker.task is None:
                return worker
        taken = [worker.gpu for worker in self.workers]
        gpu = min(self.gpus, key=taken.count) if self.gpus else None
        self.workers.append(_Worker(gpu, self.threads))
        return self.workers[-1]

    def heard(
        self, worker: _Worker, waiting: deque[Task], stop: "Stop"
    ) -> Generator[Report, None, None]:
        """What a worker tells: its reports, or by silence that it is dead."""
        task, line = worker.task, worker.out.readline()
        assert task is not None
        if line.endswith(b"\n"):
            worker.task = None
            if self.gpus:
                self.dismiss(worker)
            yield from reports_of(line)
            return
        code = worker.process.wait()
        said = worker.last_lines()
        worker.task = None
        self.dismiss(worker)
        if stop.reason:  # it was asked to end, or was not heard of before it could listen
            return
        if code >= 0:
            self.wind_up()
            raise RuntimeError(f"a worker failed (exit code {code}): {said}")
        by = signal.Signals(-code).name
        yield from task.died(waiting, f"{by}; {said or 'it said nothing'}")

    def dismiss(self, worker: _Worker) -> None:
        """One who is not needed any more."""
        self.workers.remove(worker)
        worker.end()

    def wind_up(self) -> None:
        """Let all others write a checkpoint."""
        self.ask_to_stop()
        for worker in self.busy:
            worker.process.wait()

    def kill(self) -> None:
        """End all, and those by force who are still at work."""
        for worker in list(self.workers):
            self.dismiss(worker)
