"""What other methods say of a model, as data: arrows by score, held against those of a circuit.

Numbers are measured in `hopscope.circuits.baselines`.
"""

from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple

from hopscope.circuits.circuit import Circuit
from hopscope.configs import Config
from hopscope.display import Displayed
from hopscope.facts import Role

Method = Literal["EAP-IG", "activation patching", "direct logit attribution", "every arrow patched"]
By = Literal["arrow", "row"]


class Arrow(NamedTuple):
    """What one head brings from one role, of the reader's own chain or of all others."""

    layer: int
    head: int
    reader: Role
    source: Role
    chain: Literal["own", "others"] = "own"

    @property
    def row(self) -> tuple[int, int, Role]:
        """The head's row that it belongs to: layer, head, reader."""
        return self[:3]

    def __str__(self) -> str:
        others = " of other chains" if self.chain == "others" else ""
        return f"{self.layer}.{self.head} {self.source}{others} → {self.reader}"


class Scored(Config):
    """An arrow, or a whole row of a head (without a source), and how far it moves an answer."""

    layer: int
    head: int
    reader: Role
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
    def row(self) -> tuple[int, int, Role]:
        """The head's row: layer, head, reader."""
        return (self.layer, self.head, self.reader)

    def __str__(self) -> str:
        if self.source is None:
            return f"{self.layer}.{self.head} everything → {self.reader}"
        return str(Arrow(*self.row, self.source, self.chain))


class Kept(Config):
    """So many arrows go on as they are, and every other brings its mean."""

    arrows: int
    share: float
    """The share of the gap between model and guessing that is left then."""


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
    """A ranking of arrows in the measures of MIB (Mueller et al. 2025), as areas over the sizes
    that were measured here: not to be put beside the numbers of its tables.
    """

    cpr: float
    """Area under the faithfulness curve, over the share of arrows kept: high is good."""
    cmd: float
    """Area between that curve and 1: low is good."""
    auroc: float | None
    """Chance that an arrow of the circuit scores above another; None if only rows are scored."""


class Ranking(Config):
    """All that one method says."""

    method: Method
    by: By
    """Does it tell arrows, or only whole rows of heads?"""
    scored: tuple[Scored, ...]
    """Everything that moves an answer at all, the most important first."""
    kept: tuple[Kept, ...] = ()

    def grades(self, circuit: Iterable[Arrow], by: By) -> tuple[Grade, ...]:
        """For every threshold, precision and recall of the circuit's arrows or rows."""
        truth = {arrow if by == "arrow" else arrow.row for arrow in circuit}
        if by == "arrow" and self.by == "row":
            return ()
        best: dict[object, float] = {}
        for its in self.scored:
            what = its.row if its.source is None or by == "row" else _arrow(its)
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


def _arrow(its: Scored) -> Arrow:
    assert its.source is not None
    return Arrow(*its.row, its.source, its.chain)


class Baselines(Displayed, Config):
    """What several methods say of one model, and a circuit beside them."""

    model: str
    """SHA-256 of the model's weights."""
    examples: int
    """Minimal pairs on which scores and shares were measured."""
    steps: int
    """Interpolations between own and counterfactual inputs over which gradients were averaged."""
    possible: int
    """Arrows along which anything can come at all."""
    circuit: tuple[Arrow, ...]
    """The arrows of the circuit; of rows that form no path, all of them."""
    circuit_kept: Kept
    """What is left with the circuit's arrows alone, measured as for the methods."""
    rankings: tuple[Ranking, ...]
    empty_share: float | None = None
    """The share of the gap that is left when no arrow is kept; None: not measured."""

    def __repr__(self) -> str:
        return f"Baselines({', '.join(each.method for each in self.rankings)})"

    def measures(self, ranking: Ranking) -> Measures | None:
        """CPR, CMD and AUROC of a ranking; None where the empty circuit was not measured, or is as
        good as the model. Faithfulness is 0 with no arrow, 1 with all, and linear in between.
        """
        if self.empty_share is None or self.empty_share >= 1:
            return None
        gap = 1 - self.empty_share
        curve = [(0.0, 0.0)]
        curve += [(k.arrows / self.possible, (k.share - self.empty_share) / gap)
                  for k in ranking.kept if 0 < k.arrows < self.possible]  # fmt: skip
        curve.append((1.0, 1.0))
        cpr = cmd = 0.0
        for (start, low), (end, high) in pairwise(curve):
            cpr += (end - start) * (low + high) / 2
            cmd += (end - start) * (abs(1 - low) + abs(1 - high)) / 2
        return Measures(cpr, cmd, self._auroc(ranking))

    def _auroc(self, ranking: Ranking) -> float | None:
        """All possible arrows are ranked; those without a score are last, and equal."""
        if ranking.by == "row":
            return None
        truth, scores = {*self.circuit}, {_arrow(its): its.score for its in ranking.scored}
        inside = [scores.get(arrow, 0.0) for arrow in truth]
        outside = [score for arrow, score in scores.items() if arrow not in truth]
        outside += [0.0] * (self.possible - len(truth) - len(outside))
        if not inside or not outside:
            return None
        wins = sum((x > y) + (x == y) / 2 for x in inside for y in outside)
        return wins / (len(inside) * len(outside))

    @cached_property
    def by_method(self) -> dict[str, Ranking]:
        """The rankings by the names of their methods."""
        return {its.method: its for its in self.rankings}


def arrows_of(circuit: Circuit) -> tuple[Arrow, ...]:
    """The arrows of a circuit; of rows that form no path, all that can come to them."""
    found: set[Arrow] = set()
    for component in circuit.components:
        found |= {Arrow(p.layer, p.head, p.reader, p.source) for p in component.paths}
        if not component.paths:
            found |= {
                Arrow(*head, reader, source, chain)
                for head, reader in component.rows
                for source in circuit.roles
                for chain in ("own", "others")
            }
    return tuple(sorted(found))
