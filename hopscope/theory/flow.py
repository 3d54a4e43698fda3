"""Information flow through any fact graph, by sets of pieces of information.

`flow` computes what any attention can move to the query, `follow` what given readings alone move.

One chain is simulated, since chains share nothing. A position starts with its symbol and the code
of its fact. With unlimited heads, every position reads all possible sources in every layer. With
one head it reads the one that adds most; this is one possible strategy, so its number of layers is
an upper bound (and exact if it equals the number for unlimited heads).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hopscope.errors import ConfigError
from hopscope.facts import FactGraph, Role


@dataclass(frozen=True, order=True)
class Code:
    """The positional code that the positions of one fact, or of the question, have in common. It
    never equals a symbol, whatever the symbols are called.
    """

    of: str


Content = str | Code
Contents = frozenset[Any]
"""Symbols, by their names, and codes: each is a `Content`."""


@dataclass(frozen=True, order=True)
class Reading:
    """A position reads another in some layer."""

    layer: int
    destination: Role
    source: Role

    def __str__(self) -> str:
        return f"layer {self.layer}: {self.destination} reads {self.source}"


@dataclass(frozen=True, order=True)
class Path:
    """A path of a circuit: in one head, positions of one role attend to those of another.

    Information flows from the source to the destination, as the arrow points.

    >>> print(Path(1, 0, Role("query"), Role("value", 0)))
    layer 1 head 0: value 0 → query
    """

    layer: int
    head: int
    destination: Role
    source: Role

    def __str__(self) -> str:
        return f"layer {self.layer} head {self.head}: {self.source} → {self.destination}"

    __repr__ = __str__  # also for paths in a list

    @property
    def reading(self) -> Reading:
        """The path as a reading, without the head."""
        return Reading(self.layer, self.destination, self.source)


@dataclass(frozen=True)
class Flow:
    """The pieces of information that every position has after every layer."""

    graph: FactGraph
    roles: tuple[Role, ...]
    """The positions, in the order of the sequence."""
    causal: bool
    holdings: tuple[tuple[Contents, ...], ...]
    """[layer][position]; layer 0 is the input."""
    read: tuple[tuple[tuple[int, ...], ...], ...]
    """[layer - 1][position]: the positions that it reads in that layer."""

    @property
    def layers(self) -> int:
        """The number of layers; `holdings` has one entry more, since layer 0 is the input."""
        return len(self.read)

    @cached_property
    def minimum(self) -> dict[str, int | None]:
        """For every symbol, the number of layers after which the query has it (None: never)."""
        found: dict[str, int | None] = dict.fromkeys(self.graph.symbols)
        for layer in reversed(range(self.layers + 1)):
            for symbol in self.holdings[layer][-1] & found.keys():
                found[symbol] = layer
        return found

    def schedule(self, symbol: str) -> list[Reading]:
        """Readings that move a symbol to the query in the fewest layers; raises ConfigError if it
        never gets there.
        """
        layer = self.minimum.get(symbol)
        if layer is None:
            known = ", ".join(name for name, when in self.minimum.items() if when is not None)
            raise ConfigError(f"the query never holds {symbol!r}; it comes to hold {known}")
        readings: set[Reading] = set()
        self._trace(len(self.roles) - 1, layer, symbol, readings)
        return sorted(readings)

    def _trace(self, place: int, layer: int, piece: Content, readings: set[Reading]) -> None:
        """Add the readings that move a piece to a place by a layer, and those that allow them."""
        while layer and piece in self.holdings[layer - 1][place]:
            layer -= 1
        if not layer:
            return
        before = self.holdings[layer - 1]
        sources = [j for j in self.read[layer - 1][place] if piece in before[j]]
        # The source that had the piece first.
        source = min(sources, key=lambda j: self._age(j, piece))
        # Prefer a shared symbol to a code, as circuits found in trained models do.
        shared = min(
            before[place] & before[source],
            key=lambda p: (isinstance(p, Code), self._age(place, p) + self._age(source, p), p),
        )
        readings.add(Reading(layer, self.roles[place], self.roles[source]))
        self._trace(source, layer - 1, piece, readings)
        self._trace(source, layer - 1, shared, readings)
        self._trace(place, layer - 1, shared, readings)

    def _age(self, place: int, piece: Content) -> int:
        """The layer after which the place first has the piece."""
        return next(n for n, holding in enumerate(self.holdings) if piece in holding[place])


def flow(
    graph: FactGraph,
    order: Sequence[int] | None = None,
    causal: bool = True,
    heads: int | None = None,
) -> Flow:
    """Simulate layers until no position receives anything new.

    `order` lists the facts by number, in the order of the sequence (default: last hop first); the
    query comes last. `heads` is 1, or None for unlimited heads.
    """
    if heads not in (1, None):
        raise ConfigError(f"heads is {heads}; expected 1, or none given for unlimited heads")
    roles, start = positions(graph, order)
    holdings = [start]
    read: list[tuple[tuple[int, ...], ...]] = []
    while True:
        sources = _sources(holdings[-1], causal)
        if heads == 1:
            sources = [
                _best(place, found, roles, holdings[-1]) for place, found in enumerate(sources)
            ]
        after = tuple(
            holding.union(*(holdings[-1][j] for j in found))
            for holding, found in zip(holdings[-1], sources, strict=True)
        )
        if after == holdings[-1]:
            return Flow(graph, roles, causal, tuple(holdings), tuple(read))
        holdings.append(after)
        read.append(tuple(tuple(found) for found in sources))


def positions(
    graph: FactGraph, order: Sequence[int] | None = None
) -> tuple[tuple[Role, ...], tuple[Contents, ...]]:
    """The roles of one chain's positions in the order of the sequence, and the pieces that each has
    in the input.
    """
    numbers = list(range(len(graph.facts)))
    order = numbers[::-1] if order is None else list(order)
    if sorted(order) != numbers:
        raise ConfigError(f"order is {order}; expected each of the facts {numbers} once")
    roles: list[Role] = []
    pieces: list[Contents] = []
    for number in order:
        fact = graph.facts[number]
        roles += graph.roles_of(number)
        code = Code(f"fact {number}")
        pieces += [frozenset({name, code}) for name in (*fact.keys, fact.value)]
    roles += graph.query_roles
    pieces += [frozenset({name, Code("question")}) for name in graph.known]
    return tuple(roles), tuple(pieces)


def _sources(holding: Sequence[Contents], causal: bool) -> list[list[int]]:
    """For each position, the positions that it can read and that have something new for it."""
    places = range(len(holding))
    return [
        [
            j
            for j in (range(i) if causal else places)
            if holding[j] & holding[i] and not holding[j] <= holding[i]
        ]
        for i in places
    ]


def _best(
    place: int, found: list[int], roles: Sequence[Role], holding: Sequence[Contents]
) -> list[int]:
    """The source that adds most pieces (if equal, one of the same fact), in a list; empty if there
    is none.
    """

    def gain(j: int) -> tuple[int, bool, int]:
        return len(holding[j] - holding[place]), roles[j].fact == roles[place].fact, j

    return [max(found, key=gain)] if found else []


@dataclass(frozen=True)
class Followed:
    """The pieces that every role has in the end, and the readings without a shared piece."""

    holdings: dict[Role, Contents]
    jumps: tuple[Reading, ...]
    """Readings whose destination and source had no common piece by which attention could match."""


def follow(graph: FactGraph, readings: Iterable[Reading]) -> Followed:
    """Move information along the given readings, layer by layer."""
    roles, pieces = positions(graph)
    holding = dict(zip(roles, pieces, strict=True))
    jumps: list[Reading] = []
    by_layer: dict[int, list[Reading]] = {}
    for reading in sorted(set(readings)):
        by_layer.setdefault(reading.layer, []).append(reading)
    for layer in sorted(by_layer):
        before = dict(holding)
        for reading in by_layer[layer]:
            found, source = before[reading.destination], before[reading.source]
            if not found & source:
                jumps.append(reading)
            holding[reading.destination] |= source
    return Followed(holding, tuple(jumps))
