"""The pool of one: this process does one job after another."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hopscope.machine import check_threads
from hopscope.workers.job import Job, Report, done
from hopscope.workers.packing import PACK, check_pack

if TYPE_CHECKING:
    from hopscope.runs import Stop, Watcher


@dataclass(frozen=True)
class Here:
    """One job after another, in this process."""

    pack: int = PACK
    threads: int | None = None
    """Threads of the processor; None: as many as a run began with, or as torch would take."""
    watcher: "Watcher | None" = None
    """Who is told of every step."""

    def __post_init__(self) -> None:
        check_pack(self.pack)
        check_threads(self.threads)

    @property
    def share(self) -> int | None:
        """Threads of each job."""
        return self.threads

    def reports(self, jobs: Sequence[Job], stop: "Stop") -> Generator[Report, None, None]:
        """The reports of all jobs, in their order."""
        for job in jobs:
            if stop.reason:
                return
            yield from done(job, self.watcher, stop)
