"""Sizes and thresholds of the search for circuits, each with its reason."""

from typing import Annotated

from pydantic import Field

from hopscope.configs.config import Config, Positive, Real

Share = Annotated[Real, Field(gt=0, le=1)]
Factor = Annotated[Real, Field(ge=1)]


class Discovery(Config):
    """Sizes and thresholds of `discover`; every circuit keeps those that it was found with.

    Shares are of the *gap*: the loss with everything ablated minus the loss of the model. The
    values were chosen on planted models, on the demo and on the paper's transformer A; a table in
    docs/trust.md says which components change if each is halved or doubled, on models that
    no value was chosen on.
    """

    examples: Positive = 128
    """Examples of the search. A quarter as many, the sketch, compare targets and removals."""
    fresh: Annotated[Positive, Field(ge=2)] = 320
    """Other examples, on which the circuit is measured."""
    searches: Positive = 1
    """Independent searches, each on other examples. The share that finds a component is its
    stability; the first search gives the circuit."""
    enough: Share = 0.95
    """A circuit is sufficient if it recovers this share of the gap."""
    aimed: Share = 0.98
    """The search aims for this share of the gap of every hop: above `enough`, since other examples
    change the share by up to 0.02."""
    needed: Share = 0.05
    """A component is needed if more than this share of the gap is lost without it, beyond the 95 %
    interval."""
    better: Share = 0.002
    """Another named target is taken if it recovers this much more: less is noise on the sketch."""
    better_table: Share = 0.02
    """A table says less than a name, and is taken only if it recovers this much more. The same
    holds for rows that are left as the model has them, and for rows that complete a circuit."""
    spent: Share = 0.01
    """Where a model's gap cannot be recovered as far as aimed for, rows are removed that cost less
    than this together. Rounds of improvement end when one gains less."""
    noticed: Share = 0.2
    """A target is named if it gets this much more of a row's attention than an even share."""
    tie: Factor = 1.05
    """An ablated head attends evenly, unless attending to itself has a loss that is lower by more
    than this factor."""
    unlearned: Share = 0.5
    """A model whose loss is above this share of chance has not learned the task."""

    @property
    def sketch(self) -> int:
        """The number of examples in the sketch."""
        return max(1, self.examples // 4)

    def differences(self, other: "Discovery") -> str:
        """Every field that has another value there, as `field here (there)`; empty if none."""
        mine, its = self.model_dump(), other.model_dump()
        return ", ".join(
            f"{name} {value:.6g} ({its[name]:.6g})"
            for name, value in mine.items()
            if value != its[name]
        )
