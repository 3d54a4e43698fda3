"""Are look-ups stacked where the question is asked, or made in place? Told from what roles hold.

Two exchanges are held against each other: x_1 as a value alone, behind which the whole chain is the
partner's, and x_2. A role that has x_2 and nothing else follows both alike. A role that the answer
follows in the first and not in the second has x_1, or something else that tells where x_1 leads,
before it has x_2. If a role that asks is such a one, its look-ups are *stacked*. If value 0, where
x_1 was told, holds x_2, this was looked up *in place*.

How far the answer follows x_1 wherever it stands decides nothing: it says how much of what the role
has is the word x_1, and not, say, where its next fact stands, which that exchange leaves alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hopscope.circuits.components import Estimate
from hopscope.facts import FactGraph, Role
from hopscope.llm.exchange import ON
from hopscope.llm.weighing import ASKING
from hopscope.milestones import HALF

Span = tuple[int, int]
"""The first and the last of some layers."""


@dataclass(frozen=True)
class LookUps:
    """How far answers follow each exchange at each role, before each layer that was patched."""

    graph: FactGraph
    roles: Sequence[Role]
    layers: Sequence[int]
    shares: Mapping[str, Sequence[Sequence[Estimate]]]
    """[exchange][role][layer]; an exchange that was not measured is absent."""

    def held(self, role: Role, exchange: str) -> Span | None:
        """Before which layers the answer follows an exchange at a role by more than half."""
        return self._span(self._means(role, exchange))

    def ahead(self, role: Role, symbol: str) -> Span | None:
        """Before which layers a role has a symbol and not yet the one that it leads to."""
        pairs = zip(self._means(role, f"{symbol}{ON}"), self._means(role, self._next(symbol)),
                    strict=True)  # fmt: skip
        return self._span([own - later for own, later in pairs])

    @property
    def measured(self) -> bool:
        """False if answers cannot follow some exchange that the verdict needs."""
        between = [fact.value for fact in self.graph.facts[:-1]]
        return {self._last, *(f"{symbol}{ON}" for symbol in between)} <= set(self.shares)

    def way(self) -> str:
        """One of: stacked, in place, both, undecided, not measured."""
        if not self.measured:
            return "not measured"
        between = [fact.value for fact in self.graph.facts[:-1]]
        stacked = any(self.ahead(role, symbol) for role in self._asking for symbol in between)
        placed = any(self.held(Role("value", n), self._last) for n, _ in enumerate(between))
        if stacked and placed:
            return "both"
        return "stacked where it is asked" if stacked else "in place" if placed else "undecided"

    def told(self) -> list[str]:
        """All of it in words, the way last."""
        if not self.measured:
            return [f"look-ups: {self.way()}"]
        told = []
        for number, fact in enumerate(self.graph.facts[:-1]):
            place = Role("value", number)
            its = [*self._told_ahead(fact.value), *self._told_held(place, self._last)]
            nothing = (
                f"no asking role has {fact.value} first, nor has {place} {self._last}, by half"
            )
            told += its or [nothing]
        for role in self._asking:
            told += self._told_held(role, self._last)
        return [*told, f"look-ups: {self.way()}"] if len(self.graph.facts) > 1 else told

    def _told_ahead(self, symbol: str) -> list[str]:
        later = self._next(symbol).removesuffix(ON)
        told = []
        for role in self._asking:
            if its := self.ahead(role, symbol):
                by_layer = zip(self.layers, self._means(role, symbol), strict=True)
                word = max(mean for layer, mean in by_layer if its[0] <= layer <= its[1])
                told.append(
                    f"{role} has {symbol} and not yet {later} before layers {its[0]} … {its[1]} "
                    f"(as the word itself {word:.2f})"
                )
        return told

    def _told_held(self, role: Role, symbol: str) -> list[str]:
        its = self.held(role, symbol)
        return [f"{role} holds {symbol} before layers {its[0]} … {its[1]}"] if its else []

    @property
    def _asking(self) -> list[Role]:
        return [role for role in ASKING if role in self.roles]

    @property
    def _last(self) -> str:
        return self.graph.facts[-1].value

    def _next(self, symbol: str) -> str:
        """The exchange of what a symbol leads to, as a value."""
        value = next(fact.value for fact in self.graph.facts if symbol in fact.keys)
        return value if value == self._last else f"{value}{ON}"

    def _means(self, role: Role, exchange: str) -> list[float]:
        return [share.mean for share in self.shares[exchange][self.roles.index(role)]]

    def _span(self, shares: Sequence[float]) -> Span | None:
        there = [n for n, share in zip(self.layers, shares, strict=True) if share > HALF]
        return (there[0], there[-1]) if there else None
