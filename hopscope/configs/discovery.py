"""`Discovery`: sizes and thresholds of the search for circuits, each with its reason."""

from typing import Annotated

from pydantic import Field

from hopscope.configs.config import Config, Positive, Real

Share = Annotated[Real, Field(gt=0, le=1)]
Factor = Annotated[Real, Field(ge=1)]


class Discovery(Config):
    """Sizes and thresholds of `discover`; every circuit is saved with those of its search.

    Shares are of the *gap*: the loss with everything ablated minus the loss of the model. The
    values were chosen on planted models, on the demo and on the paper's transformer A. A table in
    docs/trust.md shows which components change if each value is halved or doubled, on other
    models.
    """

    examples: Positive = 128
    """Number of examples for the search, which decide whether a circuit is enough. Targets and
    removals are compared on a quarter of this number (the sketch)."""
    fresh: Annotated[Positive, Field(ge=2)] = 320
    """Number of other examples, on which the circuit is measured."""
    searches: Positive = 1
    """Number of independent searches, each on other examples. The first gives the circuit; the
    share of searches that find a component is its stability."""
    enough: Share = 0.95
    """A circuit is sufficient if it recovers this share of the gap."""
    aimed: Share = 0.98
    """The search aims for this share of the gap of every hop. It is above `enough`, since the share
    changes by up to 0.02 on other examples."""
    needed: Share = 0.05
    """A component is needed if more than this share of the gap is lost without it, beyond the 95 %
    interval."""
    better: Share = 0.002
    """Another named target is taken if it recovers this much more; less is noise on the sketch."""
    better_table: Share = 0.02
    """A table explains less than a named target, so it is taken only if it recovers this much more.
    The same holds for rows as in the model, and for rows that complete a circuit."""
    spent: Share = 0.01
    """If the search cannot reach `aimed`, removed rows may together cost up to this share. Rounds
    of improvement end when one gains less than this."""
    noticed: Share = 0.2
    """A target is proposed if it gets this share of the attention that an even share leaves, in
    six of ten rows."""
    tie: Factor = 1.05
    """An ablated head attends evenly, unless attention to its own position gives a loss that is
    lower by more than this factor."""
    unlearned: Share = 0.5
    """A model whose loss is above this share of chance has not learned the task."""

    @property
    def sketch(self) -> int:
        """The number of examples in the sketch."""
        return max(1, self.examples // 4)

    def differences(self, other: "Discovery") -> str:
        """The fields with different values, as `field own (other)`; empty if there are none."""
        mine, its = self.model_dump(), other.model_dump()
        return ", ".join(
            f"{name} {value:.6g} ({its[name]:.6g})"
            for name, value in mine.items()
            if value != its[name]
        )
