"""Decide how a language model looks facts up, from the symbols that each role holds.

**Stacked or in place.** Two exchanges are compared: x_1 only as a value (from there on the chain is
the partner's), and x_2. If a role holds only x_2, answers follow both exchanges equally. If answers
follow the first at a role and not the second, the role holds x_1, or something else that points to
the next fact, before it holds x_2. If this is a role of the question, look-ups are *stacked*. If
value 0, where x_1 is printed, holds x_2, x_2 was looked up *in place*.

A third exchange swaps x_1 both as value and as key. It does not enter the verdict. It shows how
much of the role's content is the word x_1, and not, for example, the place of the next fact, which
this exchange does not change.

**By position, word or pointer.** In a donor, the last look-up has another word, in another place,
with another answer (`Binding`). If the stream at the answer comes from the donor, the model gives
the answer in that place, the answer to that word, or the donor's own answer. A second donor has an
answer that does not occur in the question: only a model that holds the answer itself can give it,
and this share is subtracted from the pointer's.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import hypot

from hopscope.circuits.components import Estimate
from hopscope.facts import FactGraph, Role
from hopscope.lm.pairs import ANSWER, ON, OPENING, OTHER
from hopscope.milestones import HALF

ASKING = (Role("query"), OPENING, OTHER, ANSWER)
"""The roles of the question and after it."""
BY = ("position", "word", "pointer")
LayerSpan = tuple[int, int]
"""The first and the last of some layers."""


@dataclass(frozen=True)
class LookUps:
    """How far answers follow each exchange at each role, before each patched layer."""

    graph: FactGraph
    roles: Sequence[Role]
    layers: Sequence[int]
    shares: Mapping[str, Sequence[Sequence[Estimate]]]
    """[exchange][role][layer]; an exchange that was not measured is absent."""
    last: Mapping[str, Sequence[Estimate]]
    """[position, word or pointer][layer]: the probability of the answer that the last look-up finds
    in this way; empty if it was not measured."""

    def held(self, role: Role, exchange: str) -> LayerSpan | None:
        """Return the first and last layer before which answers follow an exchange at a role by more
        than half (None: no layer).
        """
        return self._span(self.shares[exchange][self.roles.index(role)])

    def ahead(self, role: Role, symbol: str) -> LayerSpan | None:
        """Return the layers before which a role holds a symbol and not yet the next symbol."""
        number = self.roles.index(role)
        both = zip(
            self.shares[f"{symbol}{ON}"][number],
            self.shares[self._next(symbol)][number],
            strict=True,
        )
        return self._span([_difference(own, later) for own, later in both])

    @property
    def measured(self) -> bool:
        """Whether all exchanges that the verdict needs were measured."""
        return {self._last, *(f"{symbol}{ON}" for symbol in self._between)} <= set(self.shares)

    @property
    def way(self) -> str:
        """The verdict: one look-up, stacked, in place, both, undecided or not measured."""
        if not self.measured:
            return "not measured"
        if not self._between:
            return "one look-up"
        stacked = any(self.ahead(role, symbol) for role in self._asking for symbol in self._between)
        placed = any(self.held(Role("value", n), self._last) for n, _ in enumerate(self._between))
        if stacked and placed:
            return "both"
        return "stacked" if stacked else "in place" if placed else "undecided"

    @property
    def by(self) -> str:
        """How the last look-up finds its line: by position, word, pointer, or several of them;
        undecided, or not measured.
        """
        if not self.last:
            return "not measured"
        return " and ".join(by for by in BY if self._span(self.last[by])) or "undecided"

    def in_words(self) -> list[str]:
        """Return all findings as lines of text; the last two lines are the verdicts."""
        lines = [*self._by_role()] if self.measured else []
        for by, shares in self.last.items():
            lines += _before(f"the last look-up goes by {by}", self._span(shares))
        return [*lines, f"look-ups: {self.way}", f"the last look-up goes by: {self.by}"]

    def _by_role(self) -> Iterator[str]:
        holds = f"holds {self._last}"
        for number, symbol in enumerate(self._between):
            place = Role("value", number)
            lines = [*self._ahead_in_words(symbol)]
            lines += _before(f"{place} {holds}", self.held(place, self._last))
            nothing = f"no role of the question has {symbol} first, and {place} has no {self._last}"
            yield from lines or [f"{nothing} (by half)"]
        for role in self._asking:
            yield from _before(f"{role} {holds}", self.held(role, self._last))

    def _ahead_in_words(self, symbol: str) -> Iterator[str]:
        later = self._next(symbol).removesuffix(ON)
        as_word = self.shares.get(symbol, self.shares[f"{symbol}{ON}"])
        for role in self._asking:
            if span := self.ahead(role, symbol):
                by_layer = zip(self.layers, as_word[self.roles.index(role)], strict=True)
                most = max(share.mean for layer, share in by_layer if span[0] <= layer <= span[1])
                (line,) = _before(f"{role} has {symbol} and not yet {later}", span)
                yield f"{line} (as the word itself {most:.2f})"

    @property
    def _between(self) -> list[str]:
        return [fact.value for fact in self.graph.facts[:-1]]

    @property
    def _asking(self) -> list[Role]:
        return [role for role in ASKING if role in self.roles]

    @property
    def _last(self) -> str:
        return self.graph.facts[-1].value

    def _next(self, symbol: str) -> str:
        """Return the name of the exchange of the next symbol, as a value."""
        value = next(fact.value for fact in self.graph.facts if symbol in fact.keys)
        return value if value == self._last else f"{value}{ON}"

    def _span(self, shares: Sequence[Estimate]) -> LayerSpan | None:
        """The first and last layer whose share is above half and whose interval is above 0."""
        pairs = zip(self.layers, shares, strict=True)
        there = [layer for layer, share in pairs if share.mean > HALF and share.low > 0]
        return (there[0], there[-1]) if there else None


def _difference(own: Estimate, later: Estimate) -> Estimate:
    """The difference of two shares; the squares of the halves of their intervals add up."""
    mean, half = own.mean - later.mean, hypot(own.mean - own.low, later.high - later.mean)
    return Estimate(mean=mean, low=mean - half, high=mean + half)


def _before(what: str, span: LayerSpan | None) -> list[str]:
    """Return a line with the layers before which this is true; empty without such layers."""
    if not span:
        return []
    first, last = span
    where = f"layer {first}" if first == last else f"layers {first} … {last}"
    return [f"{what} before {where}"]
