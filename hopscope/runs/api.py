"""Train a recipe of any kind, and open its run."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from hopscope.configs import Experiment, NgramExperiment, Recipe
from hopscope.configs.kinds import KINDS, fetched, kind_of
from hopscope.errors import ConfigError
from hopscope.runs.runner import prepared
from hopscope.runs.stepper import Watcher
from hopscope.runs.stop import Stop
from hopscope.store import RunFolder, Store

if TYPE_CHECKING:
    from hopscope.ngram.run import NgramRun
    from hopscope.training.run import Run


@overload
def train(
    recipe: Experiment, store: Store | Path | str | None = None, device: str = "auto",
    watcher: Watcher | None = None, threads: int | None = None, stop: Stop | None = None,
) -> "Run": ...  # fmt: skip
@overload
def train(
    recipe: NgramExperiment, store: Store | Path | str | None = None, device: str = "auto",
    watcher: Watcher | None = None, threads: int | None = None, stop: Stop | None = None,
) -> "NgramRun": ...  # fmt: skip
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
    """Complete the run of a recipe and return it (a `Run` for an `Experiment`, an `NgramRun` for an
    `NgramExperiment`). A complete run is returned unchanged; an interrupted one continues.

    `watcher` receives the losses (default: in a notebook, a progress view). `threads` is the number
    of CPU threads (default: as many as the run began with, or torch's default). Results are
    bit-identical for the same number of threads.
    """
    if stop is not None and not isinstance(stop, Stop):
        raise ConfigError(f"stop is {stop!r}; expected a hopscope.runs.Stop")
    if watcher is not None and not isinstance(watcher, Watcher):
        raise ConfigError(
            f"watcher is {watcher!r}; expected an object with start, advance and stop"
        )
    prepare = partial(fetched(kind_of(recipe).prepare), recipe, device)
    return opened(prepared(recipe, prepare, store, watcher, stop, threads))


def opened(folder: RunFolder) -> Any:
    """Open the run of a folder as an object of its kind, with its models, losses or answers."""
    return fetched(KINDS[folder.recipe.kind].run)(folder)
