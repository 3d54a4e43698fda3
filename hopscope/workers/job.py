"""A job: the runs that one worker trains together, and a report on each of them.

Jobs and reports are sent as JSON, so a worker may be a process on another machine. Errors that a
user can cause are data in a report. Only bugs are raised.
"""

import json
import socket
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Literal

from hopscope import errors
from hopscope.configs import Config, Recipe, read_recipe
from hopscope.errors import ConfigError, HopscopeError, Interrupted, RunWarning, StoreError
from hopscope.store import Store

if TYPE_CHECKING:
    from hopscope.runs import Stop, Watcher

State = Literal["complete", "stopped", "failed"]


class Job(Config):
    """The runs that one worker trains together: one, or several that train as a fleet."""

    recipes: tuple[str, ...]
    """The recipes as JSON (`Recipe.written`), which differ in their seeds alone."""
    store: str
    """The path of the store, the same for every worker."""
    device: str = "auto"
    threads: int | None = None
    """CPU threads; None: as many as the run began with, or torch's default."""

    @classmethod
    def of(
        cls, recipes: tuple[Recipe, ...], store: Store, device: str, threads: int | None
    ) -> "Job":
        """The job of these recipes."""
        written = tuple(recipe.written().decode() for recipe in recipes)
        path = str(store.root.absolute())
        return cls(recipes=written, store=path, device=device, threads=threads)

    def read(self) -> list[Recipe]:
        """The recipes of the job."""
        return [read_recipe(text) for text in self.recipes]


def check_unnumbered(device: str) -> None:
    """Refuse a numbered GPU: each worker is given a GPU of its own."""
    if ":" in device:
        raise ConfigError(
            f"device is {device!r}, but each worker is given its own GPU: use --device cuda, and "
            "choose the GPUs with CUDA_VISIBLE_DEVICES"
        )


class Trouble(Config):
    """An error as data."""

    kind: str
    """The name of the error's class in `hopscope.errors`."""
    text: str
    reason: str = ""
    """The reason of an `Interrupted`."""

    @classmethod
    def of(cls, error: HopscopeError | Interrupted) -> "Trouble":
        """The error as data."""
        return cls(kind=type(error).__name__, text=str(error), reason=getattr(error, "reason", ""))

    def error(self) -> HopscopeError:
        """The data as an error."""
        kind = getattr(errors, self.kind, HopscopeError)
        if not (isinstance(kind, type) and issubclass(kind, HopscopeError)):
            kind = HopscopeError
        return kind(self.text)


class Report(Config):
    """How one run ended."""

    name: str
    state: State
    seconds: float
    """The time of the worker, or a share of the time of the fleet."""
    host: str
    """The machine that the run was trained on."""
    trouble: Trouble | None = None
    """Why the run is not complete."""
    notes: tuple[str, ...] = ()
    """Warnings, a line each."""

    @classmethod
    def of(cls, name: str, seconds: float, trouble: Trouble | None) -> "Report":
        """The report on a run that ended on this machine."""
        stopped = trouble is not None and trouble.kind == Interrupted.__name__
        state: State = "stopped" if stopped else "failed" if trouble else "complete"
        return cls(
            name=name, state=state, seconds=seconds, host=socket.gethostname(), trouble=trouble
        )


def reports_from(text: str | bytes) -> list[Report]:
    """The reports in the JSON list of a worker."""
    return [Report(**fields) for fields in json.loads(text)]


def do(job: Job, watcher: "Watcher | None" = None, stop: "Stop | None" = None) -> list[Report]:
    """Train the runs of a job in this process; returns a report for each recipe, in their order."""
    from hopscope.runs import train  # torch
    from hopscope.workers.fleets import jobs_of, train_fleet

    recipes, store = job.read(), Store(job.store)
    wanted = {recipe.run_name(): recipe for recipe in recipes}
    troubles = dict[str, Trouble | None]()
    begun = time.monotonic()
    for pack in jobs_of(recipes, recipes, store, len(recipes)):
        options = (store, job.device, watcher, job.threads, stop)
        failed = _trouble(partial(train_fleet, pack, *options)) if len(pack) > 1 else None
        for name in [each.run_name() for each in pack if each.run_name() in wanted]:
            if failed is None:  # a member whose fleet diverged goes on alone
                troubles[name] = _trouble(partial(train, wanted[name], *options))
            elif not is_complete(wanted[name], store):
                troubles[name] = failed
    seconds = round((time.monotonic() - begun) / len(recipes), 3)
    return [Report.of(name, seconds, troubles.get(name)) for name in wanted]


def do_remote(text: str) -> str:
    """Train the runs of a job in JSON; returns reports in JSON, with warnings as notes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        first, *others = do(Job.from_json(text))
    notes = []
    for each in caught:
        if issubclass(each.category, RunWarning):
            notes.append(str(each.message))
        else:
            sys.stderr.write(f"{each.message}\n")
    reports = [first.model_copy(update={"notes": tuple(notes)}), *others]
    return json.dumps([report.model_dump(mode="json") for report in reports])


def is_complete(recipe: Recipe, store: Store) -> bool:
    """Is the run of this recipe complete? False for a damaged run, which is reported when it
    is needed.
    """
    with suppress(StoreError):
        return store.has_complete(recipe)
    return False


def _trouble(act: Callable[[], object]) -> Trouble | None:
    """Call the function; returns an error that a user can cause as data."""
    try:
        act()
    except (HopscopeError, Interrupted) as error:
        return Trouble.of(error)
    return None
