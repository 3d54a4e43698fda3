"""Carry out recipes of any kind: what is complete is taken as it is, what was begun goes on.

Nothing is kept about a sweep itself. Runs are named by what they are, so the same call after a
stop, a kill or a reboot does the rest.
"""

import signal
from collections.abc import Sequence
from dataclasses import dataclass

from hopscope.configs import Experiment, LlmBench, MarkovExperiment, Recipe
from hopscope.errors import OF_ONE_RUN, HopscopeError, Interrupted
from hopscope.store import RunFolder, Store
from hopscope.training import Watcher
from hopscope.training.signals import time_is_over, time_limit


@dataclass(frozen=True)
class Outcome:
    """How far a sweep came."""

    folders: tuple[RunFolder, ...]
    """Complete runs, in the order of the recipes."""
    wanted: int
    troubles: tuple[HopscopeError, ...] = ()
    """Why runs are missing, beside the time."""

    @property
    def complete(self) -> bool:
        return len(self.folders) == self.wanted


def carry_out(
    recipes: Sequence[Recipe],
    store: Store,
    watcher: Watcher | None = None,
    seconds: float | None = None,
    device: str = "auto",
    threads: int | None = None,
) -> Outcome:
    """Complete every recipe's run, for as long as there is time.

    A run that another process trains, or that fails, is left out: the others need not wait for it.
    """
    done: list[RunFolder] = []
    troubles: list[HopscopeError] = []
    with time_limit(seconds):
        for recipe in recipes:
            if time_is_over() and not store.has_complete(recipe):
                continue
            try:
                done.append(run_of(recipe, store, watcher, device, threads))
            except Interrupted as error:
                if error.exit_code != 128 + signal.SIGALRM:  # a person asked, not the clock
                    raise
            except OF_ONE_RUN as error:
                troubles.append(error)
    return Outcome(tuple(done), len(recipes), tuple(troubles))


def run_of(
    recipe: Recipe,
    store: Store,
    watcher: Watcher | None,
    device: str,
    threads: int | None = None,
) -> RunFolder:
    """The complete run of a recipe, whatever it is a recipe of."""
    if isinstance(recipe, MarkovExperiment):
        from hopscope.markov.training import train as train_markov

        return train_markov(recipe, store, watcher=watcher, threads=threads).folder
    if isinstance(recipe, LlmBench):
        from hopscope.llm.backends import backend_of
        from hopscope.llm.bench import ask

        return ask(recipe, lambda: backend_of(recipe), store, watcher=watcher)
    from hopscope.training import train

    assert isinstance(recipe, Experiment)
    return train(recipe, store, device=device, watcher=watcher, threads=threads).folder
