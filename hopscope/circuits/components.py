"""The parts of a `Circuit` as data: components, losses, scores, tables and estimates."""

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from hopscope import intervals
from hopscope.circuits.pattern import Head, Source, Target
from hopscope.configs import Config, Discovery
from hopscope.facts import FactGraph, Role
from hopscope.shapes import Float
from hopscope.theory import Path, follow

AttentionKind = Literal["prescribed", "computed"]
Rest = Literal["even", "mean", "resample", "interchange"]
ComponentKind = Literal["moves", "routes", "weak"]
PerExample = Float[np.ndarray, "example"]
KNOWN_HOP = 0.05
"""Hops whose gap is below this share of the largest gap are ignored: the model has not learned
them."""
MOST_ROWS = 0.6
"""A rule is proposed, and names rows, if it holds in at least this share of them in the model.
Heads that share a look-up may each do only some of its rows. A role that only stands where a head
looks does so in half of the examples at most."""
NEARLY_ALL = 0.9
"""A circuit lacks something if a needed rule holds in less than this share of its rows."""
LEAST_GAP = 1e-9
"""Shares are only taken of a mean loss of at least this."""


class Estimate(Config):
    """A mean over examples, and its 95 % interval."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: PerExample, cells: int = 1) -> "Estimate":
        """The mean over examples; the interval is corrected for `cells` estimates looked at
        together.
        """
        low, high = intervals.mean(values, cells)
        return cls(mean=float(values.mean()), low=low, high=high)

    @classmethod
    def of_shares(cls, values: PerExample) -> "Estimate":
        """The mean over examples of values between 0 and 1."""
        low, high = intervals.mean_share(values.tolist())
        return cls(mean=float(values.mean()), low=low, high=high)

    @classmethod
    def ratio(cls, part: PerExample, whole: PerExample, cells: int = 1) -> "Estimate | None":
        """The ratio of two means over the same examples (interval by the delta method, corrected
        for `cells` estimates looked at together); None if the mean of `whole` is not above 0
        beyond its own interval: then the ratio could be any number.
        """
        sure = intervals.mean(whole)[0] >= LEAST_GAP
        return cls.of_ratio(part, whole, cells) if sure else None

    @classmethod
    def of_ratio(cls, part: PerExample, whole: PerExample, cells: int = 1) -> "Estimate":
        """The same ratio, if the mean of `whole` is known to be above 0."""
        mean, half = map(float, intervals.ratio(part, whole, cells))
        return cls(mean=mean, low=mean - half, high=mean + half)

    def __str__(self) -> str:
        return f"{self.mean:.3f} ({self.low:.3f} … {self.high:.3f})"


def estimate_columns(name: str, estimate: Estimate | None) -> dict[str, float | None]:
    """The columns of an estimate in a data frame; their values are None without an estimate."""
    ends = ("mean", "low", "high")
    values = [getattr(estimate, end) if estimate else None for end in ends]
    return dict(zip((name, f"{name}_low", f"{name}_high"), values, strict=True))


Instead = Literal["ablated", "mean", "resample"]


class HeadAlone(Config):
    """What the model loses without one head alone, as a share of the gap. For a head that shares a
    component this is without its rows of the component, and for what a circuit leaves out without
    the rows that it leaves out.
    """

    head: Head
    lost: Estimate
    instead: Instead = "ablated"
    """What replaces the head: even attention (or its own position), what it brings on average, or
    what it brings in another example."""
    gained: Estimate | None = None
    """What the model gains with this head alone of those that share the component, over none of
    them; None for a head that shares none."""


class Component(Config):
    """Attention rows that do one thing: heads of one layer attend from some roles to one target.

    | kind   | more than a threshold of the gap is lost without it, beyond the interval        |
    | moves  | with prescribed attention: its values move content                              |
    | routes | only with computed attention: it determines where later heads look              |
    | weak   | in neither case; yet the search kept it                                         |

    In a language model a component *moves* if the answer follows its values when they are patched,
    and *routes* if the answer follows the queries or keys of later heads.
    """

    layer: int
    heads: tuple[int, ...]
    destinations: tuple[Role, ...]
    target: Target
    kind: ComponentKind | None = None
    lost: Estimate | None = None
    """The share of the gap that is lost without it, with prescribed attention."""
    lost_computed: Estimate | None = None
    """The same with computed attention."""
    holds: Estimate | None = None
    """The share of its rows in which the rule holds in the model itself: the attention there is
    what the rule says, at least in part (`Discovery.noticed`). None for tables and even rules, and
    in language models, where it is not measured."""
    gained: Estimate | None = None
    """How much one weak component brings if all other weak ones are removed, as a share of the gap
    (with the attention for which it is more). None if all weak ones can be removed together."""
    sharing: tuple[HeadAlone, ...] = ()
    """For each of several heads: what the model loses without it, and gains with it alone."""
    stability: float | None = None
    """The share of independent searches, on other examples, that find it."""

    @property
    def at(self) -> tuple[Head, ...]:
        """All its heads as (layer, head)."""
        return tuple((self.layer, head) for head in self.heads)

    @property
    def name(self) -> str:
        """Its layer and heads, as `1.2` or `1.2+3`."""
        return f"{self.layer}.{'+'.join(map(str, self.heads))}"

    @property
    def rows(self) -> tuple[tuple[Head, Role], ...]:
        """Its attention rows: (layer, head) and the role of the destination."""
        return tuple((head, role) for head in self.at for role in self.destinations)

    @property
    def sources(self) -> tuple[Source, ...]:
        """All sources that it looks at, under any condition."""
        return tuple(dict.fromkeys(self.target.every))

    @property
    def paths(self) -> tuple[Path, ...]:
        """A path for each row and each other role of its own chain that it looks at."""
        return tuple(
            Path(*head, role, source.role)
            for head, role in self.rows
            for source in self.sources
            if source.where == "own"
            and source.role
            and source.role != role
            and source.role.kind != "other"  # positions without a meaning of their own
        )

    @property
    def written(self) -> Literal["rule", "table", "model"]:
        """What describes it: a rule in the words of the task, a table, or the model itself."""
        return self.target.written

    @property
    def is_named(self) -> bool:
        """True if a rule says where its rows look, and it holds in most of them."""
        seldom = self.holds is not None and self.holds.mean < MOST_ROWS
        return self.written == "rule" and not seldom

    @property
    def only_enough(self) -> bool:
        """True if its rule is enough for the circuit, but does not hold in nearly all its rows."""
        return self.holds is not None and self.holds.mean < NEARLY_ALL

    @property
    def is_previous(self) -> bool:
        """True if it is a previous-token head: every value looks at the key of its own fact, or
        every destination at the position before it.
        """
        if all(source.where == "previous" for source in self.sources):
            return True
        return bool(self.paths) and all(
            path.destination.kind == "value"
            and path.source.kind == "key"
            and path.source.fact == path.destination.fact
            for path in self.paths
        )


class PathFlow(Config):
    """The answers that reach the query along the paths alone, according to the depth theory."""

    reached: tuple[str, ...]
    """The symbols that the model answers and that reach the query."""
    missed: tuple[str, ...]
    """The symbols that the model answers, but that do not reach the query."""
    jumps: tuple[Path, ...]
    """Paths whose source and destination share no symbol by which attention could match them."""

    @classmethod
    def along(cls, graph: FactGraph, paths: Iterable[Path], answers: Sequence[str]) -> "PathFlow":
        """The flow of these answers along the paths through a fact graph."""
        known = {*graph.roles}
        readings = {p.reading: p for p in paths if {p.destination, p.source} <= known}
        found = follow(graph, readings)
        held = found.holdings[graph.query_roles[-1]]
        return cls(
            reached=tuple(symbol for symbol in answers if symbol in held),
            missed=tuple(symbol for symbol in answers if symbol not in held),
            jumps=tuple(sorted(readings[reading] for reading in found.jumps)),
        )

    def __str__(self) -> str:
        if not self.reached:
            return "its named paths bring no answer to the query"
        missed = f", but not {', '.join(self.missed)}" if self.missed else ""
        return f"its named paths bring {', '.join(self.reached)} to the query{missed}"


class Losses(Config):
    """Mean losses of every hop, over the same fresh examples."""

    model: tuple[float, ...]
    prescribed: tuple[float, ...] | None
    """The circuit with prescribed attention; None in a language model, where no attention is
    prescribed."""
    computed: tuple[float, ...] | None = None
    """The circuit with the attention that its heads compute from what it provides (in a language
    model all other rows come from another question); None if it was not measured."""
    ablated: tuple[float, ...]
    """Everything ablated (in a language model all rows come from another question)."""
    chance: float
    """The loss of an answer that ignores how the facts connect."""
    known_ablated: float | None = None
    """The share of right answers with everything ablated (by means, where outputs can be replaced),
    beyond chance: (right - chance) / (1 - chance), with the lower end of the interval of `right`;
    for several answers their mean, in which answers below chance count as 0. None if right answers
    are not given, or outputs are not logits of several classes."""

    def mean(self, which: Literal["model", "prescribed", "computed", "ablated"]) -> float:
        """The mean loss over hops; NaN if it was not measured."""
        hops: tuple[float, ...] = getattr(self, which) or (float("nan"),)
        return sum(hops) / len(hops)

    @property
    def circuit(self) -> float:
        """The mean loss of the circuit, with prescribed attention if that was measured."""
        return self.mean("computed" if self.prescribed is None else "prescribed")

    @property
    def gap(self) -> float:
        """The loss with everything ablated minus the loss of the model."""
        return self.mean("ablated") - self.mean("model")

    @property
    def known(self) -> tuple[bool, ...]:
        """For each hop, whether the model has learned it (`KNOWN_HOP`)."""
        gaps = [ablated - its for ablated, its in zip(self.ablated, self.model, strict=True)]
        return tuple(gap > KNOWN_HOP * max(gaps) for gap in gaps)


class Score(Config):
    """How faithful the circuit is, run in one of six ways."""

    attention: AttentionKind
    rest: Rest
    """How all other rows are ablated: with even attention, or with their output replaced by its
    mean over examples (mean), by that in another example (resample), or by that in a counterfactual
    of this example (interchange)."""
    recovered: Estimate | None
    """(ablated - circuit) / (ablated - model), of the losses with everything ablated, of the
    circuit and of the model; None if the model's loss is not below the ablated one."""
    agreement: Estimate | None
    """Agreement with the model's own outputs: R² for vectors or a single number (None if the
    outputs are all the same), KL divergence in nats for classes."""
    same_answer: Estimate | None = None
    """The share of answers with the same most likely class as in the model; None for vectors or
    a single number."""

    @property
    def likeness(self) -> Estimate | None:
        """How far the answers are the model's own: the share of the same answers, or R²."""
        return self.same_answer or self.agreement


class Table(Config):
    """Mean attention of a head over the examples of the search."""

    head: Head
    by: Literal["position", "token"]
    rows: tuple[tuple[float, ...], ...]
    """A row for each destination, a column for each source (positions, or tokens)."""


class Found(Config):
    """How the circuit was found, so that every number can be measured again."""

    seed: int
    """The seed by which examples were drawn."""
    forced: bool
    """True if the search was forced, for a model that may not have learned its task."""
    settings: Discovery
    """The settings of the search."""
    version: str
    """The version of hopscope that searched."""
