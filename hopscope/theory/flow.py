"""Information flow through any fact graph, by sets of pieces.

`flow` gives what any attention can bring to the query, `follow` what given readings alone bring.

One chain is enough: chains share nothing. A position starts with its symbol and the code of its
fact. With heads unlimited, every position reads in every layer all that it may; with one head
it reads one position, the one that adds most, which is a way to do it and therefore an upper
bound (where it equals the count for unlimited heads, it is exact).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hopscope.errors import ConfigError
from hopscope.facts import FactGraph, Role


@dataclass(frozen=True, order=True)
class Code:
    """What the positions of one fact have in common, or those of the question: no symbol, whatever
    symbols are called.
    """

    of: str


Piece = str | Code
Pieces = frozenset[Any]
"""Symbols, by their names, and codes: each is a `Piece`."""


@dataclass(frozen=True, order=True)
class Reading:
    """In a layer, a position reads another."""

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

    __repr__ = __str__  # in a list, too

    @property
    def reading(self) -> Reading:
        """The same without the head."""
        return Reading(self.layer, self.destination, self.source)


@dataclass(frozen=True)
class Flow:
    """What every position holds after every layer."""

    graph: FactGraph
    roles: tuple[Role, ...]
    """The positions, in the order of the sequence."""
    causal: bool
    holdings: tuple[tuple[Pieces, ...], ...]
    """[layer][position]; layer 0 is the input."""
    read: tuple[tuple[tuple[int, ...], ...], ...]
    """[layer - 1][position]: the positions it read."""

    @property
    def layers(self) -> int:
        """The number of layers; `holdings` has one entry more, since layer 0 is the input."""
        return len(self.read)

    @cached_property
    def minimum(self) -> dict[str, int | None]:
        """For every symbol, after how many layers the query holds it (None: never)."""
        found: dict[str, int | None] = dict.fromkeys(self.graph.symbols)
        for layer in reversed(range(self.layers + 1)):
            for symbol in self.holdings[layer][-1] & found.keys():
                found[symbol] = layer
        return found

    def schedule(self, symbol: str) -> list[Reading]:
        """Readings that bring the symbol to the query as early as it can get there."""
        layer = self.minimum.get(symbol)
        if layer is None:
            known = ", ".join(name for name, when in self.minimum.items() if when is not None)
            raise ConfigError(f"the query never holds {symbol!r}; it comes to hold {known}")
        readings: set[Reading] = set()
        self._trace(len(self.roles) - 1, layer, symbol, readings)
        return sorted(readings)

    def _trace(self, place: int, layer: int, piece: Piece, readings: set[Reading]) -> None:
        """Why the place holds the piece after the layer: what was read, and what allowed it."""
        while layer and piece in self.holdings[layer - 1][place]:
            layer -= 1
        if not layer:
            return
        before = self.holdings[layer - 1]
        sources = [j for j in self.read[layer - 1][place] if piece in before[j]]
        # The source that needs the least history itself.
        source = min(sources, key=lambda j: self._age(j, piece))
        # Circuits that were found in trained models match symbols where they can.
        shared = min(
            before[place] & before[source],
            key=lambda p: (isinstance(p, Code), self._age(place, p) + self._age(source, p), p),
        )
        readings.add(Reading(layer, self.roles[place], self.roles[source]))
        self._trace(source, layer - 1, piece, readings)
        self._trace(source, layer - 1, shared, readings)
        self._trace(place, layer - 1, shared, readings)

    def _age(self, place: int, piece: Piece) -> int:
        """After which layer the place first holds the piece."""
        return next(n for n, holding in enumerate(self.holdings) if piece in holding[place])


def flow(
    graph: FactGraph,
    order: Sequence[int] | None = None,
    causal: bool = True,
    heads: int | None = None,
) -> Flow:
    """Let information flow until nothing changes.

    `order` lists the facts by number as they stand in the sequence (last hop first, unless
    told); the query comes last. `heads` is 1, or None for as many as it takes.
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
) -> tuple[tuple[Role, ...], tuple[Pieces, ...]]:
    """The positions of one chain in the order of the sequence, and what each holds at first."""
    numbers = list(range(len(graph.facts)))
    order = numbers[::-1] if order is None else list(order)
    if sorted(order) != numbers:
        raise ConfigError(f"order is {order}; expected each of the facts {numbers} once")
    roles: list[Role] = []
    pieces: list[Pieces] = []
    for number in order:
        fact = graph.facts[number]
        roles += graph.roles_of(number)
        code = Code(f"fact {number}")
        pieces += [frozenset({name, code}) for name in (*fact.keys, fact.value)]
    roles += graph.query_roles
    pieces += [frozenset({name, Code("question")}) for name in graph.known]
    return tuple(roles), tuple(pieces)


def _sources(holding: Sequence[Pieces], causal: bool) -> list[list[int]]:
    """For each position, those it may read and from which it would learn something."""
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
    place: int, found: list[int], roles: Sequence[Role], holding: Sequence[Pieces]
) -> list[int]:
    """The one source that adds most; among equals one of the same fact."""

    def gain(j: int) -> tuple[int, bool, int]:
        return len(holding[j] - holding[place]), roles[j].fact == roles[place].fact, j

    return [max(found, key=gain)] if found else []


@dataclass(frozen=True)
class Followed:
    """What every role holds in the end, and the readings that came from nowhere."""

    holdings: dict[Role, Pieces]
    jumps: tuple[Reading, ...]
    """Reader and source had nothing in common by which the one could find the other."""


def follow(graph: FactGraph, readings: Iterable[Reading]) -> Followed:
    """Let information flow along the readings, layer by layer."""
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
