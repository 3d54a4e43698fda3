"""A job: what one worker does in one go; and its report, run by run.

Both travel as text, so that a worker may be another process on another machine. A job does not
fail: what went wrong with a run is in its report, as data. Only what nobody foresaw is raised.
"""

import socket
import time
from typing import TYPE_CHECKING, Literal

from hopscope import errors
from hopscope.configs import Config, Recipe, read_recipe
from hopscope.errors import HopscopeError, Interrupted
from hopscope.store import Store

if TYPE_CHECKING:
    from hopscope.runs import Stop, Watcher

State = Literal["complete", "stopped", "failed"]


class Job(Config):
    """What one worker does in one go: the run of one recipe."""

    recipes: tuple[str, ...]
    """The recipes as JSON that names their kind (`Recipe.written`)."""
    store: str
    """The path of the store, the same for every worker."""
    device: str = "auto"
    threads: int | None = None
    """Threads of the processor; None: as many as the run began with, or as torch would take."""

    @classmethod
    def of(
        cls, recipes: tuple[Recipe, ...], store: Store, device: str, threads: int | None
    ) -> "Job":
        """The job of these recipes."""
        written = tuple(recipe.written().decode() for recipe in recipes)
        path = str(store.root.absolute())
        return cls(recipes=written, store=path, device=device, threads=threads)


class Trouble(Config):
    """An error as data."""

    kind: str
    """The name of its class in `hopscope.errors`."""
    text: str
    reason: str = ""
    """Of an interruption: who asked to stop."""

    @classmethod
    def of(cls, error: HopscopeError | Interrupted) -> "Trouble":
        """The error, without what only its process knows."""
        return cls(kind=type(error).__name__, text=str(error), reason=getattr(error, "reason", ""))

    def error(self) -> HopscopeError:
        """The error again; of a kind that this hopscope does not know, one that says the same."""
        kind = getattr(errors, self.kind, HopscopeError)
        known = isinstance(kind, type) and issubclass(kind, HopscopeError)
        return kind(self.text) if known else HopscopeError(self.text)


class Report(Config):
    """What became of one run."""

    name: str
    state: State
    seconds: float
    """How long the worker was at it."""
    host: str
    """The machine that it was on."""
    trouble: Trouble | None = None
    """Why it is not complete."""
    notes: tuple[str, ...] = ()
    """What else should be known of it, a line each."""

    @property
    def failed(self) -> bool:
        """Could it not go on, though nobody asked it to stop?"""
        return self.state == "failed"


def done(job: Job, watcher: "Watcher | None" = None, stop: "Stop | None" = None) -> list[Report]:
    """Do the job in this process; a report for each of its recipes, in their order."""
    from hopscope.runs import train  # torch

    reports = []
    for recipe in map(read_recipe, job.recipes):
        begun, trouble = time.monotonic(), None
        state: State = "complete"
        try:
            train(recipe, job.store, job.device, watcher, job.threads, stop)
        except Interrupted as error:
            state, trouble = "stopped", Trouble.of(error)
        except HopscopeError as error:
            state, trouble = "failed", Trouble.of(error)
        seconds = round(time.monotonic() - begun, 3)
        reports.append(
            Report(
                name=recipe.run_name(), state=state, seconds=seconds, host=socket.gethostname(),
                trouble=trouble,
            )
        )  # fmt: skip
    return reports
