"""What a pool of workers is: whoever takes jobs, and tells how each of their runs went."""

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from hopscope.workers.job import Job, Report

if TYPE_CHECKING:
    from hopscope.runs import Stop


@runtime_checkable
class Pool(Protocol):
    """Whoever takes jobs, and tells how each of their runs went."""

    @property
    def pack(self) -> int:
        """How many models of one shape become one fleet at most; 1: none do."""

    @property
    def share(self) -> int | None:
        """Threads of each job; None: as many as a run began with, or as torch would take."""

    def reports(self, jobs: Sequence[Job], stop: "Stop") -> Generator[Report | None, None, None]:
        """The reports of all jobs as they come in, in any order; None when a moment has passed
        without one, so that whoever waits can look on.

        When the stop has a reason, no further job is begun, and those that are begun end with a
        checkpoint. A generator that is closed, or left by an exception, leaves nobody at work.
        """
