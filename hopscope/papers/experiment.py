"""An experiment of a paper: what can be reproduced by name, from its runs to the rows they give."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from hopscope.configs import Recipe
from hopscope.configs.kinds import fetched
from hopscope.papers.row import Row
from hopscope.store import RunFolder

COMMAND = "hopscope papers run"
"""The command that runs an experiment."""

Protocol = Literal["full", "reduced"]
"""full: what the paper ran; reduced: fewer seeds and steps, which two processor cores can do."""
PROTOCOLS: tuple[Protocol, ...] = ("full", "reduced")


def no_rows(*_: object) -> Sequence[Row]:
    """Measure nothing: for experiments without runs, or without rows beside those of their runs."""
    return ()


def measured_by(function: str) -> Callable[[RunFolder], Sequence[Row]]:
    """A function of a run (`module:name` in hopscope.papers), imported when it is called: the list
    of experiments is there without torch.
    """

    def measure(folder: RunFolder) -> Sequence[Row]:
        run = fetched("hopscope.runs.api:opened")(folder)
        rows: Sequence[Row] = fetched(f"hopscope.papers.{function}")(run)
        return rows

    return measure


@dataclass(frozen=True)
class PaperExperiment:
    """A figure or table of a paper."""

    name: str
    """paper/figure, e.g. musat/fig4-ic; also the name of the file of its results."""
    shows: str
    """What of the paper it is, in a few words."""
    rows: tuple[type[Row], ...]
    """The kinds of rows that it gives."""
    measure: Callable[[RunFolder], Sequence[Row]] = no_rows
    """A function that measures the rows of one complete run."""
    recipes: Mapping[Protocol, Callable[[], tuple[Recipe, ...]]] = field(default_factory=dict)
    """The runs it needs; empty where rows are computed without runs."""
    compute: Callable[[], Sequence[Row]] = no_rows
    """A function that computes the rows that need no run."""
    method: str = ""
    """How it is measured, in a paragraph."""
    reduced: str = ""
    """What the reduced protocol leaves out."""

    def nearest(self, protocol: Protocol) -> Protocol:
        """The protocol asked for, or the only one there is."""
        return protocol if protocol in self.recipes else next(iter(self.recipes), "full")

    def runs(self, protocol: Protocol) -> dict[str, Recipe]:
        """The recipes of a protocol by the names of their runs; none of a protocol it lacks."""
        if protocol not in self._runs:
            make = self.recipes.get(protocol, tuple)
            self._runs[protocol] = {recipe.run_name(): recipe for recipe in make()}
        return self._runs[protocol]

    @cached_property
    def _runs(self) -> dict[Protocol, dict[str, Recipe]]:
        return {}
