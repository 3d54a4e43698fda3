"""A target: what can be reproduced by name, from the runs it needs to the rows it leaves."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from hopscope.configs import Recipe
from hopscope.papers.row import Row
from hopscope.papers.table import PROTOCOLS, Protocol
from hopscope.store import RunFolder


def no_rows(*_: object) -> Sequence[Row]:
    """Measure nothing: for targets without runs, or without rows beside those of their runs."""
    return ()


@dataclass(frozen=True)
class Target:
    """A figure or table of a paper."""

    name: str
    """The name of the target as paper/figure, e.g. musat/fig4-ic; also the name of its results."""
    shows: str
    """What of the paper it is, in a few words."""
    rows: tuple[type[Row], ...]
    """The kinds of rows in its table."""
    measure: Callable[[RunFolder, Protocol], Sequence[Row]] = no_rows
    """A function that measures the rows of one complete run."""
    recipes: Mapping[Protocol, Callable[[], tuple[Recipe, ...]]] = field(default_factory=dict)
    """The runs it needs; nothing where it is computed without."""
    compute: Callable[[Protocol], Sequence[Row]] = no_rows
    """A function that computes the rows that need no run."""
    method: str = ""
    """How it is measured, in a paragraph."""
    remarks: Mapping[Protocol, str] = field(default_factory=dict)
    """What is not as in the paper, for each protocol but the full one."""

    def runs(self, protocol: Protocol) -> tuple[Protocol, tuple[Recipe, ...]]:
        """The recipes of a protocol; where it has none, those of the nearest better one, or else of
        the nearest lesser, and which that is. What is computed without runs knows no half measures.
        """
        if not self.recipes:
            return ("smoke" if protocol == "smoke" else "full"), ()
        wanted = PROTOCOLS[protocol]
        near = min(self.recipes, key=lambda p: (PROTOCOLS[p] < wanted, abs(PROTOCOLS[p] - wanted)))
        return near, self.recipes[near]()
