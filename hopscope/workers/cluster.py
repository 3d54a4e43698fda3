"""The pool of a Ray: jobs as tasks on as many machines as it has.

Ray places jobs, and says which of them lost their process or machine; those are handed out again.
It knows nothing of runs: what is complete stays so, what was begun goes on, in the store that all
machines see. So a job that is started twice is done once. A job has a process of its own, which
ends with it.
"""

import signal
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hopscope import __version__
from hopscope.errors import ConfigError, Interrupted
from hopscope.machine import check_threads
from hopscope.store import Store
from hopscope.workers.arrival import Arrived, Mark, log_of
from hopscope.workers.job import Job, Report, check_unnumbered
from hopscope.workers.packing import PACK, check_pack
from hopscope.workers.session import LOCAL, connected
from hopscope.workers.shipped import shipped
from hopscope.workers.task import Task

if TYPE_CHECKING:
    from hopscope.runs import Stop

MOMENT = 0.5
"""Seconds to wait for a report before whoever waits may look on."""
AHEAD = 2
"""Jobs that are handed to Ray for each that can be worked on."""


@dataclass(frozen=True)
class Cluster:
    """The machines of a Ray."""

    address: str = LOCAL
    """HOST:PORT; auto: one that runs on this machine; local: one of our own, for this call."""
    gpus: int | float = 0
    """GPUs of each job: 0, a part of one, or several."""
    cpus: int | float = 1
    """Processors of each job."""
    pack: int = PACK
    threads: int | None = None
    """Threads of each job; None: as many as it has processors."""

    def __post_init__(self) -> None:
        """Refuse what Ray would refuse, or understand otherwise."""
        check_pack(self.pack)
        check_threads(self.threads)
        if not (0 <= self.gpus <= 1 or (self.gpus > 1 and self.gpus == int(self.gpus))):
            raise ConfigError(f"gpus is {self.gpus}; expected 0 to 1, or a whole number")
        if not self.cpus > 0:
            raise ConfigError(f"cpus is {self.cpus}; expected a number above 0")
        if self.share > max(1, self.cpus):
            raise ConfigError(
                f"threads is {self.threads}, but each job asks for {self.cpus:g} processors: ask "
                "for more"
            )

    @property
    def share(self) -> int:
        """Threads of each job."""
        return self.threads or max(1, int(self.cpus))

    def reports(self, jobs: Sequence[Job], stop: "Stop") -> Generator[Report | None, None, None]:
        """The reports of all jobs as they come in; None when a moment has passed without one."""
        if not jobs:
            return
        for job in jobs:
            check_unnumbered(job.device)
        if not self.gpus and any(job.device == "cuda" for job in jobs):
            raise ConfigError("device is 'cuda', but gpus of each job is 0: ask for some")
        mark = Mark.of(Store(jobs[0].store))
        with connected(self.address) as ray, stop.listening():
            most = AHEAD * self._slots(ray)
            yield from Submitted(ray, self._task(ray), mark, stop).reports(jobs, most)
            if stop.reason in signal.Signals.__members__:
                raise Interrupted(f"stopped by {stop.reason}")

    def _task(self, ray: Any) -> Any:
        return ray.remote(
            num_cpus=self.cpus,
            num_gpus=self.gpus,
            max_retries=0,  # which deaths count, `Task` says
            retry_exceptions=False,
            max_calls=1,
        )(shipped(gpus=self.gpus > 0, threads=self.share))

    def _slots(self, ray: Any) -> int:
        """How many jobs all machines have room for; if none has, that is said."""
        nodes = [node for node in ray.nodes() if node["Alive"]]
        found = sum(self._fitting(node["Resources"]) for node in nodes)
        if found:
            return found
        told = ", ".join(
            f"{node['NodeManagerHostname']} has {node['Resources'].get('CPU', 0):g} CPUs and "
            f"{node['Resources'].get('GPU', 0):g} GPUs"
            for node in nodes
        )
        raise ConfigError(
            f"a job asks for {self.cpus:g} CPUs and {self.gpus:g} GPUs, and no machine has that: "
            f"{told}"
        )

    def _fitting(self, resources: Mapping[str, int | float]) -> int:
        fit = int(resources.get("CPU", 0) / self.cpus + 1e-6)
        if not self.gpus:
            return fit
        there = resources.get("GPU", 0)
        on_gpus = there / self.gpus if self.gpus > 1 else int(there) * int(1 / self.gpus + 1e-6)
        return min(fit, int(on_gpus))


def _gpus() -> int:
    import torch

    return torch.cuda.device_count()


class Submitted:
    """Jobs that Ray has, and what comes back."""

    def __init__(self, ray: Any, task: Any, mark: Mark, stop: "Stop") -> None:
        self.ray, self.task, self.mark, self.stop = ray, task, mark, stop
        self.running: dict[Any, Task] = {}
        self.refused: ConfigError | None = None
        self.asked = False

    def reports(self, jobs: Sequence[Job], most: int) -> Iterator[Report | None]:
        """The reports of all jobs, of which Ray never has more than so many."""
        waiting = deque(map(Task, jobs))
        while waiting or self.running:
            if self.stop.reason or self.refused:
                waiting.clear()
                self._ask()
            while waiting and len(self.running) < most:
                self._submit(waiting.popleft())
            if not self.running:
                break
            ready, _ = self.ray.wait([*self.running], num_returns=1, timeout=MOMENT)
            if not ready:
                yield None
            for reference in ready:
                yield from self._taken(reference, self.running.pop(reference), waiting)
        if self.refused:
            raise self.refused

    def _submit(self, task: Task) -> None:
        job, mark = task.handed_out().model_dump_json(), self.mark.model_dump_json()
        self.running[self.task.remote(job, mark, __version__)] = task

    def _ask(self) -> None:
        """Ask all jobs to stop, once: those that have begun write a checkpoint."""
        if not self.asked:
            self.asked = True
            for reference in self.running:
                self.ray.cancel(reference, force=False)

    def _taken(self, reference: Any, task: Task, waiting: deque[Task]) -> Sequence[Report]:
        """What came back of a job. One that was stopped before it began has nothing to report."""
        raised = self.ray.exceptions
        try:
            found = Arrived.model_validate_json(self.ray.get(reference))
        except raised.TaskCancelledError:
            return ()
        except raised.RayTaskError as error:
            raise error.as_instanceof_cause() from None
        except raised.RayError as error:  # the process, the machine or its memory
            if self.asked:
                return ()
            words = " ".join(str(error).split())[:200]
            said = f"{type(error).__name__}: {words}; what it printed is in {log_of(task.job)}"
            return task.died(waiting, said)
        if found.refused:
            self.refused = self.refused or ConfigError(found.refused)
        return found.reports
