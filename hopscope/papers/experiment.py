"""An experiment of a paper: its name, its runs, and the rows measured from them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from hopscope.configs import Recipe
from hopscope.configs.kinds import fetched
from hopscope.papers.row import ResultRow
from hopscope.store import RunFolder

COMMAND = "hopscope papers run"
"""The command that runs an experiment."""

Protocol = Literal["full", "reduced"]
"""full: as in the paper; reduced: fewer seeds and steps, feasible on two processor cores."""
PROTOCOLS: tuple[Protocol, ...] = ("full", "reduced")


def no_rows(*_: object) -> Sequence[ResultRow]:
    """Return no rows: for experiments without runs, or without rows beyond those of runs."""
    return ()


def measured_by(function: str) -> Callable[[RunFolder], Sequence[ResultRow]]:
    """Return a function that measures a run by `module:name` in hopscope.papers.

    The module is imported only when it is called, so that listing experiments needs no torch.
    """

    def measure(folder: RunFolder) -> Sequence[ResultRow]:
        run = fetched("hopscope.runs.api:opened")(folder)
        rows: Sequence[ResultRow] = fetched(f"hopscope.papers.{function}")(run)
        return rows

    return measure


@dataclass(frozen=True)
class PaperExperiment:
    """A figure or table of a paper."""

    name: str
    """paper/figure, e.g. musat/fig4-ic; also the name of the file of its results."""
    shows: str
    """What the experiment shows, in a few words."""
    rows: tuple[type[ResultRow], ...]
    """The kinds of the experiment's rows."""
    measure: Callable[[RunFolder], Sequence[ResultRow]] = no_rows
    """A function that measures the rows of one complete run."""
    recipes: Mapping[Protocol, Callable[[], tuple[Recipe, ...]]] = field(default_factory=dict)
    """Makes the recipes of each protocol; empty if rows are computed without runs."""
    compute: Callable[[], Sequence[ResultRow]] = no_rows
    """A function that computes the rows that need no run."""
    method: str = ""
    """A paragraph on how the experiment is measured."""
    reduced: str = ""
    """What the reduced protocol leaves out."""

    def nearest(self, protocol: Protocol) -> Protocol:
        """Return this protocol if the experiment has it, otherwise the one that it has."""
        return protocol if protocol in self.recipes else next(iter(self.recipes), "full")

    def runs(self, protocol: Protocol) -> dict[str, Recipe]:
        """Return the recipes of a protocol by the names of their runs (unknown protocol: empty)."""
        if protocol not in self._runs:
            make = self.recipes.get(protocol, tuple)
            self._runs[protocol] = {recipe.run_name(): recipe for recipe in make()}
        return self._runs[protocol]

    @cached_property
    def _runs(self) -> dict[Protocol, dict[str, Recipe]]:
        return {}
