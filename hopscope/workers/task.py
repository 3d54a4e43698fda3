"""A job in the hands of a pool, and which deaths of workers count against it.

Workers are killed for many reasons: memory that others took, a machine that was cleared, a node
that is gone. The job itself is suspected only if workers die again and again that had begun its run
(they left its lock marked) and that brought it no further.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from hopscope.configs import read_recipe
from hopscope.errors import TrainingError
from hopscope.store.lock import marks
from hopscope.workers.job import Job, Report, Trouble, report_of
from hopscope.workers.progress import places, steps_of

ATTEMPTS = 5
"""How many workers may die in a row of a job that they had begun and brought no further: where one
of two workers is killed every five seconds, a run of three seconds would fail at three in one case
of forty."""
STARTS = 20
"""How many may die in a row before they began: then no worker can be started here."""


@dataclass
class Task:
    """A job, and how its workers died since it last came further."""

    job: Job
    deaths: int = 0
    unborn: int = 0
    """Of those who died before they had begun."""
    marks: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.steps = steps_of(self.job)

    def handed_out(self) -> Job:
        """The job, which a worker gets now."""
        self.marks = _marks(self.job)
        return self.job

    def died(self, waiting: "deque[Task]", why: str) -> Sequence[Report]:
        """Its worker died: it waits for another one, unless it seems to be the job that kills."""
        steps = steps_of(self.job)
        if steps > self.steps:
            self.steps, self.deaths, self.unborn = steps, 0, 0
        elif _marks(self.job) == self.marks:
            self.unborn += 1
        else:
            self.deaths += 1
        if self.deaths < ATTEMPTS and self.unborn < STARTS:
            waiting.append(self)
            return ()
        at = "and came no further" if self.deaths == ATTEMPTS else "before the run began"
        times = max(self.deaths, self.unborn)
        names = [read_recipe(recipe).run_name() for recipe in self.job.recipes]
        text = f"its worker died {times} times {at} ({why})"
        troubles = [Trouble.of(TrainingError(f"{name}: {text}")) for name in names]
        return [report_of(*each) for each in zip(names, [0.0] * len(names), troubles, strict=True)]


def _marks(job: Job) -> list[bytes]:
    """Who wrote to each folder of its runs last: who is killed leaves a mark, no two alike."""
    return [marks(place) for place in places(job)]
