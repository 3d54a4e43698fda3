"""A job: what one worker does in one go; and its report, run by run.

Both travel as text, so that a worker may be another process on another machine. A job does not
fail: what went wrong with a run is in its report, as data. Only what nobody foresaw is raised.
"""

import json
import socket
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Literal

from hopscope import errors
from hopscope.configs import Config, Recipe, read_recipe
from hopscope.errors import ConfigError, HopscopeError, Interrupted, StoreError
from hopscope.store import Store

if TYPE_CHECKING:
    from hopscope.runs import Stop, Watcher

State = Literal["complete", "stopped", "failed"]


class Job(Config):
    """What one worker does in one go: the run of one recipe, or a fleet of several."""

    recipes: tuple[str, ...]
    """The recipes as JSON that names their kind (`Recipe.written`). Several differ in their seeds
    alone, and are trained as one fleet (`hopscope.workers.fleet`)."""
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


def check_unnumbered(device: str) -> None:
    """Refuse to name one GPU where each worker is given its own, and sees no other."""
    if ":" in device:
        raise ConfigError(
            f"device is {device!r}, but each worker is given a GPU of its own: use --device cuda; "
            "CUDA_VISIBLE_DEVICES says of which"
        )


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
    """How long the worker was at it, or its share of the time of a fleet."""
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
    from hopscope.workers.fleet import train_fleet
    from hopscope.workers.packing import fleets_of, packable

    recipes, store = [read_recipe(text) for text in job.recipes], Store(job.store)
    rest, troubles = recipes, dict[str, Trouble | None]()
    begun = time.monotonic()
    alike = [found for recipe in recipes if (found := packable(recipe))]
    for fleet in fleets_of(alike, store):
        act = partial(train_fleet, fleet, store, job.device, watcher, job.threads, stop)
        trouble, names = _trouble(act), {each.run_name() for each in fleet}
        its = [recipe for recipe in rest if recipe.run_name() in names]
        left = [recipe for recipe in its if not _is_complete(recipe, store)]
        troubles |= {recipe.run_name(): trouble for recipe in left}
        again = [] if trouble else left
        rest = [recipe for recipe in rest if recipe not in its or recipe in again]
    for recipe in rest:
        act = partial(train, recipe, store, job.device, watcher, job.threads, stop)
        troubles[recipe.run_name()] = _trouble(act)
    seconds = round((time.monotonic() - begun) / len(recipes), 3)
    return [
        report_of(recipe.run_name(), seconds, troubles.get(recipe.run_name())) for recipe in recipes
    ]


def _is_complete(recipe: Recipe, store: Store) -> bool:
    try:
        return store.has_complete(recipe)
    except StoreError:
        return False


def _trouble(act: Callable[[], object]) -> Trouble | None:
    """What a user can cause goes wrong, as data."""
    try:
        act()
    except (HopscopeError, Interrupted) as error:
        return Trouble.of(error)
    return None


def report_of(name: str, seconds: float, trouble: Trouble | None) -> Report:
    """What became of a run on this machine."""
    stopped = trouble is not None and trouble.kind == Interrupted.__name__
    state: State = "stopped" if stopped else "failed" if trouble else "complete"
    host = socket.gethostname()
    return Report(name=name, state=state, seconds=seconds, host=host, trouble=trouble)


def reports_of(line: str | bytes) -> list[Report]:
    """The reports that a worker wrote as a line."""
    return [Report(**fields) for fields in json.loads(line)]
