"""Carry out a recipe of any kind: what is complete is taken as it is, what was begun goes on."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from hopscope import display
from hopscope.configs import Experiment, NgramExperiment, Recipe
from hopscope.configs.kinds import KINDS, fetched, kind_of
from hopscope.errors import ConfigError
from hopscope.machine import check_threads
from hopscope.runs.life import complete
from hopscope.runs.stop import Stop
from hopscope.runs.watcher import Watcher
from hopscope.runs.work import Begin, Work
from hopscope.store import RunFolder, Store

if TYPE_CHECKING:
    from hopscope.ngram.run import NgramRun
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
    recipe: NgramExperiment,
    store: Store | Path | str | None = None,
    device: str = "auto",
    watcher: Watcher | None = None,
    threads: int | None = None,
    stop: Stop | None = None,
) -> "NgramRun": ...
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
    """Carry out a recipe of any kind, or finish it; if its run is complete, return that. A watcher
    looks on; unset, a notebook shows how it goes.

    It computes with so many threads of the processor (None: as many as the run began with, or as
    torch would); the same number gives the same bits.
    """
    kind = kind_of(recipe)
    check_threads(threads)
    _check_watching(watcher, stop)
    store = store if isinstance(store, Store) else Store(store)
    # What cannot be carried out here is a mistake to hear of before there is a run.
    begun = None if store.has_complete(recipe) else _prepared(recipe, device)

    def begin(folder: RunFolder) -> Work:
        return (begun or _prepared(recipe, device))(folder)

    return fetched(kind.run)(
        complete(recipe, begin, store, watcher or display.watcher(), stop, threads)
    )


def _check_watching(watcher: Watcher | None, stop: Stop | None) -> None:
    if stop is not None and not hasattr(stop, "reason"):
        raise ConfigError(f"stop is {stop!r}; expected a hopscope.runs.Stop")
    if watcher is not None and not isinstance(watcher, Watcher):
        raise ConfigError(
            f"watcher is {watcher!r}; expected an object with start, advance and stop"
        )


def _prepared(recipe: Recipe, device: str) -> Begin:
    begin: Begin = fetched(kind_of(recipe).prepare)(recipe, device)
    return begin


def opened(folder: RunFolder) -> Any:
    """A run as its kind shows it: its models, its losses, its answers."""
    return fetched(KINDS[folder.recipe.kind].run)(folder)
