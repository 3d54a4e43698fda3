"""A state of the search: the attention pattern of every head, and all that can be done to it.

The unit of all changes is a *row*: one head's attention from the positions of one role. A row can
keep the model's attention, look at a target, or be ablated. Every change gives a new state.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hopscope.circuits.ablation import Ablation
from hopscope.circuits.pattern import AS_IN_MODEL, Head, Pattern, Target
from hopscope.facts import Role

Row = tuple[Head, Role]
"""One head's attention from the positions of one role, its destination."""


@dataclass(frozen=True)
class State:
    """The pattern of every head; heads without one do what the model does."""

    patterns: Mapping[Head, Pattern] = field(default_factory=dict)

    def __getitem__(self, head: Head) -> Pattern:
        return self.patterns[head]

    @property
    def ablation(self) -> Ablation:
        """The state as an ablation of the model."""
        return Ablation.of(self.patterns)

    @property
    def live(self) -> list[Row]:
        """The rows that have a target; all others are ablated."""
        return [(head, role) for head, its in self.patterns.items() for role, _ in its.targets]

    @property
    def computed(self) -> "State":
        """The state in which live rows compute their attention from what this state provides; all
        else is ablated, as here.
        """
        return self.looking_at(self.live, AS_IN_MODEL)

    def looking_at(self, rows: Iterable[Row], target: Target) -> "State":
        """The state with this target for some rows."""
        changed = dict(self.patterns)
        for head, role in rows:
            changed[head] = changed[head].with_target(role, target)
        return State(changed)

    def without(self, rows: Iterable[Row]) -> "State":
        """The state with some rows ablated."""
        changed = dict(self.patterns)
        for head, role in rows:
            changed[head] = changed[head].without(role)
        return State(changed)
