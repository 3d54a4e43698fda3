"""Carry out recipes of any kind: what is complete is taken as it is, what was begun goes on.

Nothing is kept about several runs together. Runs are named by what they are, so the same call after
a stop, a kill or a reboot does the rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from hopscope.configs import Experiment, MarkovExperiment, Recipe
from hopscope.configs.kinds import KINDS, fetched, kind_of
from hopscope.errors import OF_ONE_RUN, HopscopeError, Interrupted
from hopscope.runs.computing import check_threads
from hopscope.runs.life import complete
from hopscope.runs.stop import TIME, Stop
from hopscope.runs.watcher import Watcher
from hopscope.runs.work import Begin, Work
from hopscope.store import RunFolder, Store

if TYPE_CHECKING:
    from hopscope.markov.run import MarkovRun
    from hopscope.training.run import Run


@overload
def train(
    recipe: Experiment,
    store: Store | Path | str | None = None,
    device: str = "auto",
    watcher: Watcher | None = None,
    threads: int | None = None,
    stop: Stop | None = None,
) -> "Run": ...
@overload
def train(
    recipe: MarkovExperiment,
    store: Store | Path | str | None = None,
    device: str = "auto",
    watcher: Watcher | None = None,
    threads: int | None = None,
    stop: Stop | None = None,
) -> "MarkovRun": ...
@overload
def train(
    recipe: Recipe, store: Store | Path | str | None = None, device: str = "auto",
    watcher: Watcher | None = None, threads: int | None = None, stop: Stop | None = None,
) -> Any: ...  # fmt: skip
def train(
    recipe: Recipe,
    store: Store | Path | str | None = None,
    device: str = "auto",
    watcher: Watcher | None = None,
    threads: int | None = None,
    stop: Stop | None = None,
) -> Any:
    """Carry out a recipe of any kind, or finish it; if its run is complete, return that.

    It computes with so many threads of the processor (None: as many as the run began with, or as
    torch would); the same number gives the same bits.
    """
    kind = kind_of(recipe)
    check_threads(threads)
    store = store if isinstance(store, Store) else Store(store)
    # What cannot be carried out here is a mistake to hear of before there is a run.
    begun = None if store.has_complete(recipe) else _prepared(recipe, device)

    def begin(folder: RunFolder) -> Work:
        return (begun or _prepared(recipe, device))(folder)

    return fetched(kind.run)(complete(recipe, begin, store, watcher, stop, threads))


def _prepared(recipe: Recipe, device: str) -> Begin:
    begin: Begin = fetched(kind_of(recipe).prepare)(recipe, device)
    return begin


def opened(folder: RunFolder) -> Any:
    """A run as its kind shows it: its models, its losses, its answers."""
    return fetched(KINDS[folder.experiment.kind].run)(folder)


@dataclass(frozen=True)
class Outcome:
    """How far a sweep over several recipes came."""

    folders: tuple[RunFolder, ...]
    """Complete runs, in the order of the recipes."""
    wanted: int
    troubles: tuple[HopscopeError, ...] = ()
    """Why runs are missing, beside the time."""

    @property
    def complete(self) -> bool:
        """True if every recipe has a complete run."""
        return len(self.folders) == self.wanted


def carry_out(
    recipes: Sequence[Recipe],
    store: Store,
    watcher: Watcher | None = None,
    stop: Stop | None = None,
    device: str = "auto",
    threads: int | None = None,
) -> Outcome:
    """Complete every recipe's run, until the stop's time is over.

    A run that another process trains, or that fails, is left out: the others need not wait for it.
    A signal ends all of it.
    """
    done: list[RunFolder] = []
    troubles: list[HopscopeError] = []
    stop = stop or Stop()
    for recipe in recipes:
        if stop.reason and not store.has_complete(recipe):
            continue
        try:
            done.append(train(recipe, store, device, watcher, threads, stop).folder)
        except Interrupted as error:
            if error.reason != TIME:  # a person asked, not the clock
                raise
        except OF_ONE_RUN as error:
            troubles.append(error)
    return Outcome(tuple(done), len(recipes), tuple(troubles))
