"""The kinds of rows in the tables of Musat (ICLR 2025).

A field whose default is None may be missing in tables that were measured before it was recorded.
"""

from collections.abc import Iterable
from typing import ClassVar, TypeVar

from pydantic import StrictBool, StrictFloat, StrictInt, model_validator

from hopscope.circuits.emergence import Emergence
from hopscope.circuits.maps import RoleMaps
from hopscope.errors import HopscopeError
from hopscope.papers.row import JsonObject, Numbers, Record, ResultRow

HeadNumbers = tuple[StrictInt, StrictInt]
"""Layer and number of a head."""


class Layers(Record):
    """The fewest layers for a number of hops, with bidirectional and with causal attention."""

    bidirectional: StrictInt
    causal: StrictInt


class DepthRow(ResultRow):
    """The fewest layers for a number of hops, by several counts."""

    hops: StrictInt
    theorem_1: StrictInt
    """The paper's lower bound on the number of layers."""
    bidirectional: StrictInt
    """The exact minimum by closed form, for attention in both directions."""
    causal: StrictInt
    """The exact minimum by closed form, for causal attention."""
    simulated: Layers
    """The same two minima, by simulating the flow of information layer by layer."""


class PlantedRow(ResultRow):
    """A transformer whose weights were written by hand."""

    planted: StrictInt
    """The number of hops that the transformer solves."""
    layers: StrictInt
    heads: StrictInt
    error: StrictFloat
    """The mean loss of the transformer on fresh examples."""


class AnswerRow(ResultRow):
    """A language model's answers to one kind of question (see hopscope.lm.results)."""

    activity: ClassVar[str] = "asking"
    model: str
    parameters: StrictInt | None = None
    """The number of the model's parameters; None if unknown."""
    protocol: str
    dtype: str | None
    seconds: StrictFloat
    """Duration of the whole benchmark in seconds."""
    kind: str
    """The formulation, with the number of hops if it can be chosen."""
    hops: StrictInt
    count: StrictInt
    """The number of questions of this kind."""
    accuracy_over: StrictInt
    """The number of them with an acceptable answer (with the greedy protocol: all)."""
    accuracy: StrictFloat | None
    """None if no answer was acceptable."""
    interval: tuple[StrictFloat, StrictFloat] | None
    """The 95 % interval of the accuracy, over questions."""
    chance: StrictFloat
    first: StrictFloat
    acceptance: StrictFloat
    best: StrictFloat
    tries: StrictFloat | None
    """Samples per accepted answer; None if none was accepted."""

    @property
    def answered(self) -> float:
        """The share of questions that the accuracy is averaged over."""
        return self.accuracy_over / self.count

    @property
    def asked(self) -> str:
        """The model's name; with the answer's first words given (our addition), another name."""
        return f"{self.model}{' (opened)' * self.kind.endswith('opened')}"


class LossCourse(Record):
    """The loss of every hop during training, at a few steps."""

    steps: tuple[StrictInt, ...]
    losses: tuple[Numbers, ...]
    """Validation loss: for each hop, a number per step."""
    train: tuple[Numbers, ...]
    """Training loss, a mean over the steps before."""


class LossRow(ResultRow):
    """A trained transformer: its training, its losses, and when it learned each hop."""

    seed: StrictInt
    hops: StrictInt | None
    curriculum: StrictBool | None
    layers: StrictInt
    heads: StrictInt
    init: str
    """The rule of the initial weights."""
    position: str
    """Whether each token or each pair has a position code."""
    steps: StrictInt
    batch: StrictInt
    examples: StrictInt
    seconds: StrictFloat
    precision: str | None = None
    """The arithmetic of the training (the one that `auto` chose)."""
    chance: StrictFloat
    """The loss of the best answer that ignores how facts connect."""
    final: Numbers
    """The validation loss of every hop, a mean over the last 100 steps."""
    learned_at: tuple[StrictInt | None, ...]
    """The step at which every hop was learned (`Run.learned`); None if it was not."""
    course: LossCourse

    @property
    def asked(self) -> tuple[int, ...]:
        """The hop that each final loss belongs to."""
        if self.hops is not None and not self.curriculum:
            return (self.hops,)
        return tuple(range(1, len(self.final) + 1))

    @property
    def loss(self) -> float:
        """The final loss, over all hops."""
        return sum(self.final) / len(self.final)

    @property
    def wait(self) -> tuple[int, int] | None:
        """The step at which x₁ was learned, and the steps from then to x₂, if both were."""
        steps = [step for step in self.learned_at[:2] if step is not None]
        return (steps[0], steps[1] - steps[0]) if len(steps) == 2 else None

    @property
    def trained(self) -> tuple[object, ...]:
        """The settings of the training without its length.

        Rows with equal settings are of the same model, after more or fewer steps.
        """
        return (
            self.hops, self.curriculum, self.layers, self.heads, self.init, self.batch,
            self.examples, self.seed, self.position,
        )  # fmt: skip


Known = TypeVar("Known", bound=LossRow)


def longest(rows: Iterable[Known]) -> list[Known]:
    """Return every model once, with its longest training."""
    found: dict[tuple[object, ...], Known] = {}
    for row in rows:
        known = found.setdefault(row.trained, row)
        if row.steps > known.steps:
            found[row.trained] = row
    return [*found.values()]


class Removal(Record):
    """The loss without one path of a circuit, that is, without one attention row of a head.

    A row with two source roles is removed as a whole.
    """

    head: HeadNumbers
    what: str
    """The row as text: source roles (of the own chain), an arrow, and the destination role."""
    joins_pair: StrictBool
    """Whether a value attends to the key of its own pair, and to no other role."""
    kind: str
    """The kind of its component: moves, routes, or weak."""
    prescribed: StrictFloat
    """The loss of the circuit without this row, with the attention of all others prescribed."""
    alone: StrictFloat
    """The loss of the model with only this row ablated."""


class WholeHead(Record):
    """The circuit's loss without one whole head, as the paper removes a first layer.

    The head's attention is uniform, and all other heads follow the circuit.
    """

    head: HeadNumbers
    loss: StrictFloat


class SharedStep(Record):
    """The circuit's loss without a step that several heads share.

    All rows by which these heads attend from the one role to the other are ablated.
    """

    what: str
    heads: tuple[HeadNumbers, ...]
    loss: StrictFloat


class CircuitRow(LossRow):
    """A trained transformer with the circuit that was found in it."""

    step: StrictInt
    """The checkpoint that was examined."""
    model: StrictFloat
    """The loss of the model."""
    prescribed: StrictFloat
    """The loss of the circuit with prescribed attention."""
    computed: StrictFloat | None = None
    """The loss of the circuit with computed attention."""
    ablated: StrictFloat
    """The loss with everything ablated."""
    sufficient: StrictBool
    """Whether the circuit recovers enough with prescribed attention."""
    useful: tuple[HeadNumbers, ...]
    """The heads with a path in the circuit."""
    needed: tuple[HeadNumbers, ...]
    """All heads of the circuit."""
    removals: tuple[Removal, ...]
    whole: tuple[WholeHead, ...] = ()
    """The losses without each whole head that has a path."""
    shared: tuple[SharedStep, ...] = ()
    """The losses without each step that several heads share."""
    unnamed: StrictInt
    """The number of components that follow a table, or keep the model's attention."""
    circuit: JsonObject
    """The circuit as `Circuit.to_dict` gives it."""
    maps: JsonObject
    """Mean attention between roles, as `RoleMaps.to_dict` gives it."""
    emergence: JsonObject | None = None
    """The emergence of the circuit, as `Emergence.to_dict` gives it; None if it was not followed
    through training."""

    @model_validator(mode="after")
    def _has_readable_findings(self) -> "CircuitRow":
        try:
            _ = self.role_maps, self.story
        except (KeyError, TypeError, ValueError, HopscopeError) as error:
            raise ValueError(f"maps or emergence cannot be read ({error!r:.100})") from error
        return self

    @property
    def role_maps(self) -> RoleMaps:
        """Mean attention between roles."""
        return RoleMaps.from_dict(self.maps)

    @property
    def story(self) -> Emergence | None:
        """The emergence of the circuit, with the steps at which this row's hops were learned."""
        if self.emergence is None:
            return None
        return Emergence.from_dict({**self.emergence, "learned_at": self.learned_at})


class VariantRow(CircuitRow):
    """A model of transformers A, B or C under one variant of what the paper leaves open."""

    variant: str
    """The variant's name, in the format of `hopscope.papers.musat.variants`."""
    flop: StrictFloat
    """The operations of the training's matrix products."""
