"""The numbers by which discovery decides: what a user may choose, and what is fixed."""

from typing import Annotated, ClassVar

from pydantic import Field

from hopscope.configs.config import Config, Positive, Real

Share = Annotated[Real, Field(gt=0, le=1)]
Factor = Annotated[Real, Field(ge=1)]


class Discovery(Config):
    """The numbers by which `discover` decides; every circuit keeps those it was found with.

    A loss is *low* if the task counts as solved with it. *Chance* is the loss of an answer that
    ignores how the facts connect. Where no source is named, the value was chosen on planted
    models, whose circuits are known, and on the demo's seeds and the paper's transformer A.
    """

    examples: Positive = 128
    """Examples on which the search compares losses."""
    batches: Positive = 20
    """Batches of fresh examples on which the circuit is measured; each votes on every part. A batch
    has an eighth of `examples`."""
    quick: bool = False
    """End with the first answer, which is read off the maps. (Where a task names relations the
    search goes on only if that leaves it unsolved; everywhere else it always does.)"""
    needed: Factor = 3.0
    """A part is needed if the loss without it is at least this many times the loss with it: far
    outside of what other examples change in this ratio, which is some 15 %."""
    low_share: Share = 1 / 15
    """A mean loss is low up to this share of chance (appendix E.1 of Musat: 0.05 of 0.75), or up
    to `low_factor` times the model's own loss, whichever is more."""
    low_factor: Factor = 1.2
    """A mean loss is also low up to this many times the model's own loss: a model that is itself
    above the share `low_share` has a circuit too."""
    hop_share: Share = 1 / 8
    """The loss of each single hop must stay below this share of chance, or below `hop_factor`
    times the model's own, whichever is more. A mean over many hops would hide one that fails."""
    hop_factor: Factor = 1.5
    """The loss of a single hop may also rise to this many times the model's own loss of that hop,
    even where this is above the share `hop_share`."""

    # The numbers below are fixed. Only the search reads them.
    sketch: ClassVar = 0.25
    """Share of the examples on which the search first estimates what is cheap to remove: a quarter
    of the cost of the exact comparison that follows."""
    batch_share: ClassVar = 1 / 8
    """Size of a batch that measures the circuit, as a share of `examples`."""
    unlearned: ClassVar = 0.5
    """A model whose loss is above this share of chance has not learned the task."""
    tie: ClassVar = 1.05
    """A head without work attends evenly (uniform), unless attending to itself has a loss that is
    lower by more than this factor."""
    rough_factor: ClassVar = 1.2
    """The few examples of the sketch may overstate a loss by this factor."""
    hopeless: ClassVar = 2.0
    """A removal whose loss on the sketch is this many times the limit is not tried on all
    examples."""
    strong: ClassVar = 0.5
    """A role that gets at least this share of a row's attention is what the row looks at: it is
    the first explanation that is tried."""
    noticed: ClassVar = 0.2
    """A role that gets less than this share of a row's attention is no explanation on its own."""
    mixed: ClassVar = 0.05
    """A role that gets less than this share is left out of mixtures too."""
    path_share: ClassVar = 0.2
    """The target of an explanation is a path of the circuit if it gets at least this share."""
    loose_factor: ClassVar = 1.2
    """In the first pass an explanation is good enough if it multiplies the loss by at most this
    factor. Simple explanations that cost a little are preferred."""
    loose_share: ClassVar = 0.1
    """In the first pass an explanation is also good enough if it adds at most this share of a low
    loss to the loss."""
    tight_factor: ClassVar = 1.02
    """The same as `loose_factor` for the second pass, which is made if the first one's
    explanations together cost too much."""
    tight_share: ClassVar = 0.02
    """The same as `loose_share` for the second pass."""
    abandon: ClassVar = 1.5
    """The first pass ends early at this many times a low loss. A little above a low loss is no
    reason to stop, because explanations of later rows often lower the loss again."""
    floor: ClassVar = 1e-3
    """The loss with a part is taken to be at least this share of chance: ratios of losses that
    are nearly zero say nothing."""
    surely: ClassVar = 1.15
    """A path is surely needed from this many times `needed` on, and is weak below: fresh examples
    shift the ratio by up to 15 %."""
    margin: ClassVar = 0.9
    """A part is removed only if the loss stays below this share of its limit, for the same
    reason."""
    better: ClassVar = 0.9
    """A head without work gets its average attention back if that lowers the loss to this share
    or below."""

    @property
    def batch(self) -> int:
        """Examples in each of the batches on which the circuit is measured."""
        return max(1, int(self.examples * self.batch_share))

    @property
    def few(self) -> int:
        """The number of examples in the sketch."""
        return max(1, round(self.examples * self.sketch))

    def changed(self, **fields: int | float) -> "Discovery":
        """The same with other values for some fields."""
        return Discovery(**{**self.model_dump(), **fields})

    def differences(self, other: "Discovery") -> str:
        """Every field that has another value there, as `field here (there)`; empty if none."""
        mine, its = self.model_dump(), other.model_dump()
        return ", ".join(
            f"{name} {value:.6g} ({its[name]:.6g})"
            for name, value in mine.items()
            if value != its[name]
        )
