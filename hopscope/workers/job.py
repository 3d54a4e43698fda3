"""Jobs (the runs that one worker trains together) and reports (one for each run).

Jobs and reports are sent as JSON, so a worker may be a process on another machine. Errors that a
user can cause are returned in a report; only bugs are raised.
"""

import json
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, SerializeAsAny

from hopscope import errors
from hopscope.configs import Config, Recipe, read_recipe
from hopscope.errors import ConfigError, HopscopeError, Interrupted, RunWarning, StoreError
from hopscope.store import RunFolder, Store
from hopscope.workers.fleets import jobs_of, together, train_fleet

if TYPE_CHECKING:
    from hopscope.runs import Stop, Watcher


def _recipe(given: object) -> Recipe:
    return given if isinstance(given, Recipe) else read_recipe(json.dumps(given))


class Job(Config):
    """The runs that one worker trains together: one, or several that train as a fleet."""

    recipes: tuple[Annotated[SerializeAsAny[Recipe], BeforeValidator(_recipe)], ...]
    """The recipes, which differ only in their seeds."""
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
        path = str(store.root.absolute())
        return cls(recipes=recipes, store=path, device=device, threads=threads)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the job's runs."""
        return tuple(recipe.run_name() for recipe in self.recipes)

    @cached_property
    def fleet(self) -> str | None:
        """The name of the fleet in which the runs train; None for a single run."""
        return together(self.recipes).run_name() if len(self.recipes) > 1 else None


def check_unnumbered(device: str) -> None:
    """Raise ConfigError for a numbered GPU: each worker gets a GPU from the pool."""
    if ":" in device:
        raise ConfigError(
            f"device is {device!r}, but each worker is given its own GPU: use --device cuda, and "
            "choose the GPUs with CUDA_VISIBLE_DEVICES"
        )


class Report(Config):
    """The end of one run; an error is stored as its class, text and reason (of an Interrupted)."""

    name: str
    """The name of the run."""
    error: str = ""
    """The name of the error's class in `hopscope.errors`; empty if the run is complete."""
    text: str = ""
    """Why the run is not complete."""
    reason: str = ""
    """Why the run was stopped: a signal's name or the time limit."""
    notes: tuple[str, ...] = ()
    """Warnings, a line each."""

    @classmethod
    def of(cls, name: str, error: HopscopeError | Interrupted | None = None) -> "Report":
        """The report on a run that ended with this error, or is complete."""
        if error is None:
            return cls(name=name)
        reason = getattr(error, "reason", "")
        return cls(name=name, error=type(error).__name__, text=str(error), reason=reason)

    @property
    def state(self) -> Literal["complete", "stopped", "busy", "failed"]:
        """How the run ended, in a word; busy if another process holds it."""
        if not self.error:
            return "complete"
        others: dict[str, Literal["stopped", "busy"]] = {
            "Interrupted": "stopped",
            "RunBusy": "busy",
        }
        return others.get(self.error, "failed")

    def trouble(self) -> HopscopeError:
        """Return the error of an incomplete run as an exception."""
        kind = getattr(errors, self.error, HopscopeError)
        if not (isinstance(kind, type) and issubclass(kind, HopscopeError)):
            kind = HopscopeError
        return kind(self.text)


def reports_from(text: str | bytes) -> list[Report]:
    """The reports in the JSON list of a worker."""
    return [Report(**fields) for fields in json.loads(text)]


def do(job: Job, watcher: "Watcher | None" = None, stop: "Stop | None" = None) -> list[Report]:
    """Train the runs of a job in this process; returns a report for each recipe, in their order."""
    from hopscope.runs import train  # torch

    store = Store(job.store)
    wanted = dict(zip(job.names, job.recipes, strict=True))
    ended = dict[str, HopscopeError | Interrupted | None]()
    for pack in jobs_of(job.recipes, job.recipes, store, len(job.recipes)):
        options = (store, job.device, watcher, job.threads, stop)
        failed = _error(partial(train_fleet, pack, *options)) if len(pack) > 1 else None
        for name in [each.run_name() for each in pack if each.run_name() in wanted]:
            if failed is None:  # a member whose fleet diverged continues alone
                ended[name] = _error(partial(train, wanted[name], *options))
            elif not is_complete(wanted[name], store):
                ended[name] = failed
    return [Report.of(name, ended.get(name)) for name in wanted]


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


def complete_run(recipe: Recipe, store: Store) -> RunFolder | None:
    """Return the run of this recipe if it is complete, else None (also for a damaged run)."""
    with suppress(StoreError):
        found = store.of(recipe)
        return found if found is not None and found.manifest.complete else None
    return None


def is_complete(recipe: Recipe, store: Store) -> bool:
    """Return whether the run of this recipe is complete."""
    return complete_run(recipe, store) is not None


def _error(act: Callable[[], object]) -> HopscopeError | Interrupted | None:
    """Call the function; return an error that a user can cause, or None."""
    try:
        act()
    except (HopscopeError, Interrupted) as error:
        error.__cause__ = error.__context__ = None  # their frames keep the model in memory
        return error.with_traceback(None)
    return None
