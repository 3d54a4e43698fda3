"""A state of the search: what every head does, and everything that can be done to it.

The unit of all changes is a *row*: one head's attention from the positions of one role. A row can
keep the model's attention, look at something given (an aim), look everywhere but at its source
(which removes it while other rows still find their way by themselves), or do nothing (which
removes it once all attention is written down). Every change gives a new state.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hopscope.circuits.ablation import Ablation, Head
from hopscope.circuits.mechanism import AS_IS, Aim, Mechanism, aim
from hopscope.facts import Role

Row = tuple[Head, Role]
"""One head's attention from the positions of one role, the reader."""
Sources = Mapping[Row, Role]
"""What a row looks at in the model, for rows that look mostly at one role of their own chain."""


@dataclass(frozen=True)
class State:
    """The mechanism of every head; heads without one do what the model does."""

    mechanisms: Mapping[Head, Mechanism] = field(default_factory=dict)

    def __getitem__(self, head: Head) -> Mechanism:
        return self.mechanisms[head]

    @property
    def ablation(self) -> Ablation:
        """The state as an ablation of the model."""
        return Ablation.of(self.mechanisms)

    @property
    def live(self) -> list[Row]:
        """The rows that do something: those with an aim that is not to look elsewhere."""
        return [
            (head, role)
            for head, mechanism in self.mechanisms.items()
            for role, its in mechanism.aims
            if its.targets[0].where != "elsewhere"
        ]

    @property
    def idle(self) -> list[Head]:
        """The heads none of whose rows has an aim."""
        return [head for head, mechanism in self.mechanisms.items() if not mechanism.aims]

    @property
    def computed(self) -> "State":
        """The state in which the rows that do something compute their attention themselves, from
        what this state provides; all else does nothing, as here.
        """
        return self.looking_at(self.live, AS_IS)

    def looking_at(self, rows: Iterable[Row], new: Aim) -> "State":
        """The state with this aim for some rows."""
        changed = dict(self.mechanisms)
        for head, role in rows:
            changed[head] = changed[head].with_aim(role, new)
        return State(changed)

    def looking_elsewhere(self, rows: Iterable[Row], sources: Sources) -> "State":
        """The state with some rows removed, while others keep the model's attention.

        A row with a source looks evenly at everything but that source. Attention to everything
        would leave a little of it, by which sharp heads still find their way. A row without a
        source does nothing.
        """
        changed = dict(self.mechanisms)
        for head, role in rows:
            source = sources.get((head, role))
            mechanism = changed[head]
            changed[head] = (
                mechanism.without(role)
                if source is None
                else mechanism.with_aim(role, aim("elsewhere", source))
            )
        return State(changed)

    def doing_nothing(self, rows: Iterable[Row]) -> "State":
        """The state with some rows removed: they do what their head does without work."""
        changed = dict(self.mechanisms)
        for head, role in rows:
            changed[head] = changed[head].without(role)
        return State(changed)

    def only(self, rows: Iterable[Row]) -> "State":
        """The state in which every other row does nothing."""
        kept = set(rows)
        every = ((h, role) for h, its in self.mechanisms.items() for role in its.readers)
        return self.doing_nothing([row for row in every if row not in kept])

    def given_back(self, head: Head) -> "State":
        """The state in which one head does what the model does."""
        return State({at: its for at, its in self.mechanisms.items() if at != head})
