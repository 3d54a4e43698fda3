"""`Baselines`: rankings of arrows by other methods, compared with a circuit's arrows, as data.

`hopscope.circuits.baselines` measures them.
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
    """The part of one head's output that comes from one role, in the destination's own chain or in
    all others; without a source, the head's whole row.
    """

    layer: int
    head: int
    destination: Role
    source: Role | None
    chain: Literal["own", "others"] = "own"

    @property
    def row(self) -> tuple[int, int, Role]:
        """The attention row of the arrow: layer, head, destination."""
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
    """How far the arrow moves the answer that it moves most, in either direction: 0 is the own
    symbol, 1 the other chain's. Only hops that the model answers count."""
    symbol: str
    """The exchanged symbol for which the score is highest."""
    hop: int
    """The number of the hop whose answer moves most."""

    @property
    def arrow(self) -> Arrow:
        """The arrow or row itself."""
        return Arrow(self.layer, self.head, self.destination, self.source, self.chain)

    def __str__(self) -> str:
        return str(self.arrow)


SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""The shares of all arrows that are kept, as in MIB."""


class Switches(Config):
    """How methods are measured; the defaults are those of MIB."""

    rest: Literal["counterfactual", "mean"] = "counterfactual"
    """What replaces ablated arrows: their value in the counterfactual, or their mean."""
    signed: bool = False
    """Whether arrows are ranked by score (True) or by absolute score (False)."""
    greedy: bool = False
    """Whether an arrow is taken only if it reaches the output through arrows taken before."""
    steps: Positive = 5
    """EAP-IG: the number of interpolations between own and counterfactual inputs over which
    gradients are averaged (5 as in Hanna et al. 2024)."""
    exact: bool = False
    """Whether every single arrow is also patched, which takes long."""


class CurvePoint(Config):
    """The result of keeping some arrows and ablating all others."""

    arrows: int
    hits: int
    """How many of the kept arrows are in the circuit."""
    faithfulness: float


class Grade(NamedTuple):
    """Precision and recall of the circuit's arrows or rows among those with a score of at least
    `threshold`.
    """

    threshold: float
    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


class Measures(NamedTuple):
    """The measures of MIB (Mueller et al. 2025): areas by trapezoids over `SHARES`, linear in the
    share of arrows.
    """

    cpr: float
    """Area under the faithfulness curve: higher is better."""
    cmd: float
    """Area between that curve and 1: lower is better."""
    auroc: float | None
    """Area under the curve of true and false positive rates at these shares; None if only rows are
    scored, or if none or all of the possible arrows are in the circuit.
    """


class Ranking(Config):
    """The ranking of arrows by one method."""

    method: Method
    by: By
    """Whether the method scores single arrows, or only whole rows of heads."""
    scored: tuple[ScoredArrow, ...]
    """All arrows or rows that move an answer, the highest score first."""
    kept: tuple[CurvePoint, ...]
    """The results of keeping the best arrows, one for each of `SHARES`."""
    as_many: CurvePoint
    """The result of keeping as many of the best arrows as the circuit has."""

    def grades(self, circuit: Iterable[Arrow], by: By) -> tuple[Grade, ...]:
        """Precision and recall of the circuit's arrows or rows, for every threshold. Empty for
        arrows if the method scores only rows.
        """
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
        """The grade with the highest F1, at a threshold chosen with knowledge of the circuit."""
        grades = self.grades(circuit, by)
        return max(grades, key=lambda its: its.f1, default=Grade(1.0, 0.0, 0.0))


class Baselines(Displayed, Config):
    """The rankings of several methods for one model, compared with a circuit."""

    model: str
    """SHA-256 of the model's weights."""
    examples: int
    """The number of minimal pairs."""
    switches: Switches
    possible: int
    """The number of arrows with attention above 0 in some example."""
    circuit: tuple[Arrow, ...]
    """The arrows of the circuit; for rows without paths, all their possible arrows."""
    circuit_kept: CurvePoint
    """The result of keeping the circuit's arrows."""
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
    """The area under the straight lines between successive points."""
    return sum((end - start) * (low + high) / 2 for (start, low), (end, high) in pairwise(points))


def arrows_of(circuit: Circuit) -> tuple[Arrow, ...]:
    """The arrows of a circuit; for rows without paths, the arrows from all roles."""
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
