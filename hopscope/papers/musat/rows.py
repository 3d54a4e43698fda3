"""The kinds of rows in the tables of Musat (ICLR 2025).

A field whose default is None may be missing in tables that were measured before it was recorded.
"""

from collections.abc import Iterable
from typing import ClassVar, TypeVar

from pydantic import StrictBool, StrictFloat, StrictInt

from hopscope.papers.row import JsonObject, Numbers, Record, Row

Head = tuple[StrictInt, StrictInt]
"""Layer and number of a head."""
PerHead = tuple[tuple[Numbers, ...], ...]
"""A number for each layer, head and role."""
PerPair = tuple[tuple[tuple[Numbers, ...], ...], ...]
"""A number for each layer, head, query role and key role."""


class Layers(Record):
    """The fewest layers for a number of hops, for attention in both directions and causal."""

    bidirectional: StrictInt
    causal: StrictInt


class DepthRow(Row):
    """How many layers a number of hops needs."""

    hops: StrictInt
    theorem_1: StrictInt
    """The paper's lower bound on the number of layers."""
    bidirectional: StrictInt
    """The exact minimum by closed form, for attention in both directions."""
    causal: StrictInt
    """The exact minimum by closed form, for causal attention."""
    simulated: Layers
    """The same two numbers, found by following information layer by layer."""


class PlantedRow(Row):
    """A transformer whose weights were written by hand."""

    planted: StrictInt
    """The number of hops that the transformer solves."""
    layers: StrictInt
    heads: StrictInt
    error: StrictFloat
    """The mean loss of the transformer on fresh examples."""


class AnswerRow(Row):
    """How a language model answers one kind of question; hopscope.lm.results says how."""

    activity: ClassVar[str] = "asking"
    model: str
    parameters: StrictInt | None = None
    """The number of the model's parameters; None where it is not known."""
    protocol: str
    dtype: str | None
    seconds: StrictFloat
    """The seconds that the whole benchmark took."""
    kind: str
    """The formulation, with the number of hops where it can be chosen."""
    hops: StrictInt
    count: StrictInt
    """The number of questions of this kind."""
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
    def asked(self) -> str:
        """The model; with the answer begun for it (which is ours) it counts as another."""
        return f"{self.model}{' (opened)' * self.kind.endswith('opened')}"


class LossCourse(Record):
    """The loss of every hop during training, at a few steps."""

    steps: tuple[StrictInt, ...]
    losses: tuple[Numbers, ...]
    """Validation loss: for each hop, a number per step."""
    train: tuple[Numbers, ...]
    """Training loss, a mean over the steps before."""


class LossRow(Row):
    """A trained transformer: how it was trained, and what it learned when."""

    seed: StrictInt
    hops: StrictInt | None
    curriculum: StrictBool | None
    layers: StrictInt
    heads: StrictInt
    init: str
    """The rule of the initial weights."""
    position: str
    """Whether each token or each pair has a code of its place."""
    steps: StrictInt
    batch: StrictInt
    examples: StrictInt
    seconds: StrictFloat
    precision: str | None = None
    """The arithmetic of the training: what `auto` came to on its machine."""
    chance: StrictFloat
    """The loss of the best answer that ignores how facts connect."""
    final: Numbers
    """The validation loss of every hop, a mean over the last 100 steps."""
    learned_at: tuple[StrictInt | None, ...]
    """The step at which every hop was learned (`Run.learned`); None if it never was."""
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
        """What tells one training from another, but for its length: models that agree in it are the
        same one, looked at after more or fewer steps.
        """
        return (
            self.hops, self.curriculum, self.layers, self.heads, self.init, self.batch,
            self.examples, self.seed, self.position,
        )  # fmt: skip


Known = TypeVar("Known", bound=LossRow)


def longest(rows: Iterable[Known]) -> list[Known]:
    """Every model once: of one that was trained for several lengths, the longest."""
    found: dict[tuple[object, ...], Known] = {}
    for row in rows:
        known = found.setdefault(row.trained, row)
        if row.steps > known.steps:
            found[row.trained] = row
    return [*found.values()]


class Removal(Record):
    """What the loss becomes without one path of a circuit: one attention row of a head. (A row
    that looks at two roles is removed whole.)
    """

    head: Head
    what: str
    """The roles of its own chain that it looks at, an arrow, and from which role."""
    joins_pair: StrictBool
    """Does it let a value look at the key of its own pair, and at no other role?"""
    kind: str
    """What its component is needed for: moves, routes, or weak."""
    prescribed: StrictFloat
    """The loss of the circuit without this row, with the attention of all others prescribed."""
    alone: StrictFloat
    """The loss of the model with this row alone ablated."""


class WholeHead(Record):
    """What the circuit's loss becomes without one whole head, as the paper removes a first layer:
    its attention is uniform, and all other heads follow the circuit.
    """

    head: Head
    loss: StrictFloat


class SharedStep(Record):
    """What the circuit's loss becomes without a step that several heads take: all of their rows by
    which one role attends to another are ablated.
    """

    what: str
    heads: tuple[Head, ...]
    loss: StrictFloat


class Maps(Record):
    """Mean attention between roles, as RoleMaps writes it."""

    roles: tuple[str, ...]
    own: PerPair
    others: PerPair
    itself: PerHead
    previous: PerHead


class PathCourse(Record):
    """The attention along one path during training."""

    layer: StrictInt
    head: StrictInt
    destination: str
    source: str
    attention: Numbers
    emerged_at_step: StrictFloat | None
    emerged_at_epoch: StrictFloat | None


class Story(Record):
    """When the paths of a circuit appeared, as Emergence writes it."""

    steps: tuple[StrictInt, ...]
    steps_per_epoch: StrictFloat | None
    chance: StrictFloat
    losses: tuple[Numbers, ...]
    learned_at: tuple[StrictInt | None, ...] | None = None
    hops: tuple[StrictInt, ...] | None = None
    paths: tuple[PathCourse, ...]


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
    """Does the circuit recover enough with prescribed attention?"""
    useful: tuple[Head, ...]
    """The heads with a path in the circuit."""
    needed: tuple[Head, ...]
    """All heads of the circuit."""
    removals: tuple[Removal, ...]
    whole: tuple[WholeHead, ...] = ()
    """The same of whole heads, of every head with a path."""
    shared: tuple[SharedStep, ...] = ()
    """The same of every step that several heads take."""
    unnamed: StrictInt
    """The number of components that follow a table, or are left as the model has them."""
    circuit: JsonObject
    """The circuit as `Circuit.to_dict` gives it."""
    maps: Maps
    emergence: Story | None = None
    """Only of models whose circuit was followed through training."""


class VariantRow(CircuitRow):
    """A model of transformers A, B or C under one variant of what the paper leaves open."""

    variant: str
    """Its name, as `hopscope.papers.musat.variants` writes it."""
    flop: StrictFloat
    """The operations of the training's matrix products."""
