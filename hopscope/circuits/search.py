"""What every step of discovery needs: a model on its examples, and the losses of states of it."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from jaxtyping import Float

from hopscope.circuits.ablation import Ablation
from hopscope.circuits.ablator import Ablator
from hopscope.circuits.attention import role_maps
from hopscope.circuits.glances import read_off
from hopscope.circuits.hypotheses import strongest
from hopscope.circuits.limits import Limits
from hopscope.circuits.mechanism import AS_IS, ITSELF, UNIFORM, Aim, Mechanism
from hopscope.circuits.progress import Progress
from hopscope.circuits.state import Row, Sources, State
from hopscope.configs import Discovery
from hopscope.facts import Role

DEFAULT = Discovery()
HopLosses = Float[np.ndarray, "hop"]


class Search:
    """A model on its examples (and on a few of them, the *sketch*), and what is known of it."""

    def __init__(
        self,
        ablator: Ablator,
        sketch: Ablator | None = None,
        settings: Discovery = DEFAULT,
        progress: Progress | None = None,
    ) -> None:
        self.ablator, self.sketch, self.settings = ablator, sketch or ablator, settings
        self.progress = progress or Progress(lambda _: None)
        self._known: dict[tuple[Ablator, Ablation], HopLosses] = {}
        adapter = ablator.adapter
        self.maps = role_maps(adapter, ablator.exam)
        self.heads = [(at, head) for at in range(adapter.layers) for head in range(adapter.heads)]

    @property
    def guess(self) -> float:
        """The loss of an answer that ignores how the facts connect."""
        return self.ablator.exam.guess

    @property
    def floor(self) -> float:
        """The lowest loss that others are compared with."""
        return self.settings.floor * self.guess

    @cached_property
    def clean(self) -> HopLosses:
        """The losses of the model as it is."""
        found: np.ndarray = self.losses([State()])[0]
        return found

    @cached_property
    def limits(self) -> Limits:
        """The losses up to which the task counts as solved by a state of this model."""
        return Limits.of(self.clean, self.guess, self.settings)

    @cached_property
    def sources(self) -> Sources:
        """For each row that looks mostly at one role of its own chain, that role."""
        found = {
            (head, role): strongest(self.maps, (head, role), self.settings.strong)
            for head in self.heads
            for role in self.maps.roles
        }
        return {row: source for row, source in found.items() if source is not None}

    @cached_property
    def glances(self) -> dict[Row, list[Aim]]:
        """What every row looks at, in the words of the task's relations and roles."""
        its = self.sketch
        return read_off(its.exam, its.adapter, self.settings.noticed)

    def losses(
        self, states: Sequence[State], roughly: bool = False
    ) -> Float[np.ndarray, "state hop"]:
        """Mean losses over the examples (roughly: over a few of them)."""
        ablator = self.sketch if roughly else self.ablator
        keys = [(ablator, state.ablation) for state in states]
        new = [key for key in dict.fromkeys(keys) if key not in self._known]
        if new:
            found = ablator.losses([ablation for _, ablation in new])
            self._known |= zip(new, found.mean(1).double().cpu().numpy(), strict=True)
        return np.stack([self._known[key] for key in keys])

    def readers_of(self, layer: int) -> tuple[Role, ...]:
        """The roles whose rows can matter: in the last layer, those at which answers are read."""
        exam, adapter = self.ablator.exam, self.ablator.adapter
        if layer < adapter.layers - 1:
            return exam.table
        read = exam.roles.role[:, -self.ablator.read :].unique().tolist()
        return tuple(exam.table[number] for number in read)

    def rows(self) -> list[list[Row]]:
        """Every row that can matter, head by head."""
        return [[(head, role) for role in self.readers_of(head[0])] for head in self.heads]

    def untouched(self) -> State:
        """Every row as the model has it; beside it, what each head does without work.

        That is to look everywhere, or to stay where it is, whichever costs less.
        """
        variants = [
            State({head: Mechanism(rest=rest)}) for head in self.heads for rest in (UNIFORM, ITSELF)
        ]
        uniform, itself = self.losses(variants, roughly=True).mean(-1).reshape(-1, 2).T
        even = uniform <= self.settings.tie * itself
        return State(
            {
                head: Mechanism(tuple((role, AS_IS) for _, role in rows), UNIFORM if u else ITSELF)
                for head, rows, u in zip(self.heads, self.rows(), even, strict=True)
            }
        )
