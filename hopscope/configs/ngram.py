"""The n-gram experiment of Chen et al. (NeurIPS 2024). Sections (§) refer to their paper."""

import math
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from hopscope.configs.config import Config, Positive, Real, Whole
from hopscope.configs.recipe import Recipe, Seeds

EPOCHS = {"C": 2_000, "W": 50_000, "a": 5_000}
"""Epochs of each parameter's stage (appendix B)."""


def _least(bound: float, why: str) -> AfterValidator:
    """A validator for a lower bound near zero; pydantic's own would print hundreds of zeros."""

    def check(value: float) -> float:
        if value < bound:
            raise ValueError(f"got {value}; {why}, so take at least {bound}")
        return value

    return AfterValidator(check)


class NgramProcess(Config):
    """Chains of symbols, each with its own transition table (§2.1).

    The next symbol depends on the symbols at the parents' lags. Parents 1 and 2::

        … 2 0 1 1 0 ?          ? is drawn from the chain's row for (0, 1)
                └─┴─ parents
    """

    alphabet: Annotated[Whole, Field(ge=2, le=100)] = 3
    """Number d of symbols (appendix B: 3)."""
    parents: Annotated[tuple[Positive, ...], Field(min_length=1)] = (1, 2)
    """Lags on which the next symbol depends (appendix B: 1 and 2)."""
    alpha: Annotated[Real, Field(gt=0), _least(1e-300, "it is divided by")] = 0.1
    """Concentration of the Dirichlet prior of every row of a table (appendix B: 0.1)."""
    length: Positive = 100
    """Symbols L given to the model, which predicts the next one (appendix B: 100)."""
    start: Literal["stationary", "uniform"] = "stationary"
    """Whether the first symbols are drawn from the chain's stationary distribution (§2.1) or
    uniformly (as in the authors' program)."""

    @field_validator("parents")
    @classmethod
    def _ascending(cls, parents: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(parents)) < len(parents):
            raise ValueError(f"parents are {parents}: each lag may appear once")
        return tuple(sorted(parents))

    @property
    def memory(self) -> int:
        """The largest lag: how many symbols determine what comes next."""
        return max(self.parents)


class InductionModel(Config):
    """The transformer with two attention layers (§2.2): copiers, a selector, a classifier."""

    heads: Positive = 3
    """Heads H of the first layer (appendix B: 3)."""
    window: Positive = 3
    """Lags M that a head can see (appendix B: 3)."""
    degree: Positive = 2
    """The selector has a coefficient for every set of at most this many heads (appendix B: 2)."""
    constant: bool = False
    """Whether the empty set also has a coefficient. It adds the same to every similarity, but is
    part of the normalisation. The authors' program: yes."""
    unit_copies: bool = False
    """Whether the heads' outputs are scaled to unit length. The paper: no; the authors' program:
    yes."""
    first: Literal["copies", "full"] = "copies"
    """First layer: attention by lag only (§2.2), or also with query, key, value and output
    matrices."""
    own: Real = 3.0
    """Initial weight w of head h at lag h (appendix B: 3)."""
    other: Real = 0.01
    """Initial weights w at all other lags (appendix B: 0.01; the authors' program: 0.1)."""
    c: Annotated[Real, Field(gt=0), _least(1e-100, "coefficients are squared")] = 0.01
    """Initial coefficient of every set (appendix B: 0.01)."""
    a: Real = 0.01
    """Initial scale of the second attention layer (appendix B: 0.01)."""
    noise: Annotated[Real, Field(ge=0)] = 0.01
    """Std of the random initial part of the matrices of a full first layer. Value and output
    matrices start at the identity plus this part, query and key matrices at this part only."""

    @model_validator(mode="after")
    def _degree_has_heads(self) -> Self:
        if self.degree > self.heads:
            raise ValueError(
                f"degree is {self.degree}, but there are {self.heads} heads: a set holds each head "
                "once, so choose a degree of at most heads"
            )
        return self


class Descent(Config):
    """Gradient descent in stages (appendix B)."""

    stages: str = "C,W,a"
    """What each stage trains: C (the selector's coefficients), W (the heads of the first layer), a
    (the classifier's scale). `CW,a` trains C and W together, `CWa` everything at once."""
    epochs: tuple[Positive, ...] | None = None
    """Epochs of each stage; default: 2,000 for C, 50,000 for W, 5,000 for a (appendix B), summed
    if a stage trains several."""
    lr: Annotated[Real, Field(gt=0)] = 1.0
    """Learning rate (appendix B: 1)."""
    chains: Positive = 9_000
    """Training chains (appendix B: 9,000)."""
    validation_chains: Positive = 1_000
    """Validation chains (appendix B: 1,000)."""
    batch: Positive | None = None
    """Chains per step; default: all chains (appendix B). An epoch visits every chain once."""
    loss: Literal["log", "softmax"] = "log"
    """Minus the logarithm of the answer's probability (§2.2), or the cross-entropy of a softmax
    over the probabilities (the authors' program)."""
    epsilon: Annotated[Real, Field(gt=0)] = 1e-6
    """Added to the probability inside the logarithm (§2.2 does not give its value)."""
    records: Annotated[Whole, Field(ge=2)] = 200
    """Number of epochs of each stage at which losses and parameters are recorded."""

    @model_validator(mode="after")
    def _stages_match(self) -> Self:
        for stage in self.stages.split(","):
            if not stage or set(stage) - set(EPOCHS):
                raise ValueError(
                    f"stages is {self.stages!r}; expected the letters C, W and a in stages with "
                    "commas between them, e.g. C,W,a or CW,a"
                )
            if len(set(stage)) < len(stage):
                raise ValueError(f"stages is {self.stages!r}: stage {stage!r} names a letter twice")
        if self.epochs is not None and len(self.epochs) != len(self.stages.split(",")):
            raise ValueError(
                f"epochs has {len(self.epochs)} entries, but stages {self.stages!r} are "
                f"{len(self.stages.split(','))}: one for each"
            )
        if self.batch is not None and self.batch > self.chains:
            raise ValueError(
                f"batch is {self.batch}, but there are {self.chains} chains: at most that many, "
                "or leave it unset for all of them"
            )
        return self

    def plan(self) -> list[tuple[str, int]]:
        """The letters and the number of epochs of each stage."""
        stages = self.stages.split(",")
        default = [sum(EPOCHS[letter] for letter in stage) for stage in stages]
        return list(zip(stages, self.epochs or default, strict=True))


class NgramExperiment(Recipe):
    """The recipe of an n-gram experiment; each seed has its own model and data."""

    kind: Literal["ngram"] = "ngram"

    process: NgramProcess = NgramProcess()
    model: InductionModel = InductionModel()
    descent: Descent = Descent()
    seeds: Seeds = (0,)
    """One model per seed; the seed determines its chains, and the initial matrices of a full first
    layer."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        window, process = self.model.window, self.process
        if window < process.memory:
            raise ValueError(
                f"window is {window}, but the largest parent is at lag {process.memory}: a window "
                f"of at least {process.memory} can see it"
            )
        if process.length <= window:
            raise ValueError(
                f"length is {process.length}; behind a window of {window} symbols at least one "
                f"must follow: make it at least {window + 1}"
            )
        return self

    @property
    def task_kind(self) -> str:
        return "ngram"

    @property
    def steps(self) -> int:
        """The number of epochs of all stages together."""
        return sum(epochs for _, epochs in self.descent.plan())

    @property
    def unit(self) -> str:
        return "epoch"

    @property
    def chance(self) -> float:
        """The loss at chance: that of a uniform distribution over the symbols."""
        return math.log(self.process.alphabet)

    def shape(self) -> dict[str, int | None]:
        return {"hops": None, "layers": 2, "heads": self.model.heads, "d_model": None}

    def title(self) -> str:
        lags = "".join(map(str, self.process.parents))
        stages = self.descent.stages.replace(",", "-")
        return f"ngram-{self.process.alphabet}-pa{lags}-{stages}"
