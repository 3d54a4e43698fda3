"""What other methods say of a model, as data: arrows by score, held against those of a circuit.

Numbers are measured in `hopscope.circuits.baselines`.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from hopscope.circuits.circuit import Circuit
from hopscope.configs import Config, Positive
from hopscope.display import Displayed, data_frame
from hopscope.facts import Role

Method = Literal["EAP-IG", "activation patching", "direct logit attribution", "every arrow patched"]
By = Literal["arrow", "row"]


class Arrow(NamedTuple):
    """What one head brings from one role, of the destination's own chain or of all others; or its
    whole row (without a source).
    """

    layer: int
    head: int
    destination: Role
    source: Role | None
    chain: Literal["own", "others"] = "own"

    @property
    def row(self) -> tuple[int, int, Role]:
        """The head's row that it belongs to: layer, head, destination."""
        return self[:3]

    def __str__(self) -> str:
        others = " of other chains" if self.chain == "others" else ""
        source = self.source or "everything"
        return f"{self.layer}.{self.head} {source}{others} → {self.destination}"


class ScoredArrow(Config):
    """An arrow, or a whole row of a head (without a source), and how far it moves an answer."""

    layer: int
    head: int
    destination: Role
    source: Role | None = None
    chain: Literal["own", "others"] = "own"
    score: float
    """The most that it moves any answer, 0 (own symbol) to 1 (the other chain's), among the hops
    of which the model has an answer of its own."""
    symbol: str
    """The symbol that was exchanged then."""
    hop: int
    """The answer that moved, by the number of its hop."""

    @property
    def arrow(self) -> Arrow:
        """The arrow or row itself."""
        return Arrow(self.layer, self.head, self.destination, self.source, self.chain)

    def __str__(self) -> str:
        return str(self.arrow)


SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Shares of all arrows that are kept, as in MIB."""


class Switches(Config):
    """How methods are measured; the defaults are those of MIB."""

    rest: Literal["counterfactual", "mean"] = "counterfactual"
    """What ablated arrows bring: what they bring in the counterfactual, or their mean."""
    signed: bool = False
    """Are the best arrows those of the largest scores, or (False) of the largest absolute ones?"""
    greedy: bool = False
    """Is an arrow taken only if what it brings reaches the output through arrows taken before?"""
    steps: Positive = 5
    """EAP-IG: interpolations between own and counterfactual inputs over which gradients are
    averaged (5 as in Hanna et al. 2024)."""
    exact: bool = False
    """Is every single arrow patched as well? This takes long."""


class CurvePoint(Config):
    """So many arrows are kept, and every other is ablated."""

    arrows: int
    hits: int
    """How many of these are arrows of the circuit."""
    faithfulness: float


class Grade(NamedTuple):
    """What stands above a threshold, against what is in the circuit."""

    threshold: float
    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


class Measures(NamedTuple):
    """The measures of MIB (Mueller et al. 2025): areas by trapezoids over `SHARES`, linear in the
    share of arrows.
    """

    cpr: float
    """Area under the faithfulness curve: high is good."""
    cmd: float
    """Area between that curve and 1: low is good."""
    auroc: float | None
    """Area under the rates of true and false arrows at these shares; None if only rows are
    scored, or all possible arrows are in the circuit.
    """


class Ranking(Config):
    """All that one method says."""

    method: Method
    by: By
    """Does it tell arrows, or only whole rows of heads?"""
    scored: tuple[ScoredArrow, ...]
    """Everything that moves an answer at all, the most important first."""
    kept: tuple[CurvePoint, ...]
    """The best arrows are kept, one entry for each of `SHARES`."""
    as_many: CurvePoint
    """As many of the best arrows are kept as the circuit has."""

    def grades(self, circuit: Iterable[Arrow], by: By) -> tuple[Grade, ...]:
        """For every threshold, precision and recall of the circuit's arrows or rows."""
        if by == "arrow" and self.by == "row":
            return ()
        truth = {arrow if by == "arrow" else arrow.row for arrow in circuit}
        best: dict[object, float] = {}
        for its in self.scored:
            what = its.arrow if by == "arrow" else its.arrow.row
            best[what] = max(best.get(what, 0.0), its.score)
        found = []
        for score in sorted(set(best.values()), reverse=True):
            above = {what for what, its in best.items() if its >= score}
            hits = len(above & truth)
            found.append(Grade(score, hits / len(above), hits / max(1, len(truth))))
        return tuple(found)

    def best(self, circuit: Iterable[Arrow], by: By) -> Grade:
        """The grade at the threshold that is best, chosen by knowing the circuit."""
        grades = self.grades(circuit, by)
        return max(grades, key=lambda its: its.f1, default=Grade(1.0, 0.0, 0.0))


class Baselines(Displayed, Config):
    """What several methods say of one model, and a circuit beside them."""

    model: str
    """SHA-256 of the model's weights."""
    examples: int
    """Minimal pairs on which scores and shares were measured."""
    switches: Switches
    possible: int
    """Arrows along which anything can come at all."""
    circuit: tuple[Arrow, ...]
    """The arrows of the circuit; of rows that form no path, all of them."""
    circuit_kept: CurvePoint
    """The circuit's arrows are kept."""
    rankings: tuple[Ranking, ...]

    def __repr__(self) -> str:
        return f"Baselines({', '.join(each.method for each in self.rankings)})"

    def measures(self, ranking: Ranking) -> Measures:
        """CPR, CMD and AUROC of a ranking."""
        points = [
            (share, kept.faithfulness) for share, kept in zip(SHARES, ranking.kept, strict=True)
        ]
        true = len(self.circuit)
        false = self.possible - true
        auroc = None
        if ranking.by == "arrow" and true and false:
            rates = [((k.arrows - k.hits) / false, k.hits / true) for k in ranking.kept]
            auroc = _area([(0.0, 0.0), *rates, (1.0, 1.0)])
        return Measures(_area(points), _area([(x, abs(1 - f)) for x, f in points]), auroc)

    def frame(self) -> Any:
        """A data frame (pandas) of the faithfulness curves: a row for each method and number of
        arrows kept, and one for the circuit. `hits` counts the arrows that are the circuit's.
        """
        curves = {each.method: each.kept for each in self.rankings}
        return data_frame(
            {"method": method, **point.model_dump()}
            for method, points in (*curves.items(), ("circuit", (self.circuit_kept,)))
            for point in points
        )


def _area(points: Sequence[tuple[float, float]]) -> float:
    """The area under a line through these points."""
    return sum((end - start) * (low + high) / 2 for (start, low), (end, high) in pairwise(points))


def arrows_of(circuit: Circuit) -> tuple[Arrow, ...]:
    """The arrows of a circuit; of rows that form no path, all that can come to them."""
    found: set[Arrow] = set()
    for component in circuit.components:
        found |= {Arrow(p.layer, p.head, p.destination, p.source) for p in component.paths}
        if not component.paths:
            found |= {
                Arrow(*head, destination, source, chain)
                for head, destination in component.rows
                for source in circuit.roles
                for chain in ("own", "others")
            }
    return tuple(sorted(found))
