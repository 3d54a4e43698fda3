"""Which symbols stand side by side: the entries of a vector task, before any vector is drawn.

Every chain contributes one *entry* per fact (its keys, then its value), one per decoy, and one
for its query. Entries of one group are shuffled among themselves; groups follow one another.
Symbols are numbered chain by chain.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from hopscope.facts import FactGraph, Role

Order = Literal["backward", "forward", "shuffled"]


@dataclass(frozen=True)
class Entry:
    """Neighbouring positions: a fact of one chain, a decoy, or the chain's query."""

    group: int
    chain: int
    symbols: tuple[int, ...]
    roles: tuple[Role, ...]


@dataclass(frozen=True)
class Layout:
    """The entries of a sequence, group by group, and the roles they use."""

    graph: FactGraph
    """The facts of one chain."""
    chains: int
    order: Order
    """Order of the facts; the queries come last."""
    decoys: int = 0
    """Decoys per chain of each fact with several keys."""

    @cached_property
    def symbols(self) -> int:
        """The number of symbols of one chain, with the values of its decoys."""
        return len(self.graph.symbols) + self.decoys * len(self._joint)

    @cached_property
    def length(self) -> int:
        """The number of positions of the sequence."""
        return sum(len(entry.symbols) for entry in self.entries)

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """All entries of all chains, in the order of their groups."""
        chains, facts = range(self.chains), range(len(self.graph.facts))
        of_facts = [self._fact(number, chain) for number in facts for chain in chains]
        decoys = [
            self._decoy(number, chain, decoy)
            for number in self._joint
            for chain in chains
            for decoy in range(self.decoys)
        ]
        queries = [self._query(chain) for chain in chains]
        return tuple(sorted((*of_facts, *decoys, *queries), key=lambda entry: entry.group))

    @cached_property
    def roles(self) -> tuple[Role, ...]:
        """Every role that occurs: those of the graph, then those of decoys."""
        used = (role for entry in self.entries for role in entry.roles)
        return tuple(dict.fromkeys((*self.graph.roles, *sorted(used))))

    def answers(self, asked: Iterable[int]) -> list[list[int]]:
        """For each chain, the symbols that its query asks for: the values of these facts."""
        names = [self.graph.facts[number - 1].value for number in asked]
        return [[self._symbol(chain, name) for name in names] for chain in range(self.chains)]

    @cached_property
    def _joint(self) -> list[int]:
        """The facts with several keys, by number."""
        return [number for number, fact in enumerate(self.graph.facts) if len(fact.keys) > 1]

    def _fact(self, number: int, chain: int) -> Entry:
        fact = self.graph.facts[number]
        symbols = tuple(self._symbol(chain, name) for name in (*fact.keys, fact.value))
        return Entry(self._group(number), chain, symbols, self.graph.roles_of(number))

    def _decoy(self, number: int, chain: int, decoy: int) -> Entry:
        """A fact's first key, with other keys from a chain further on, and a value of its own."""
        first, *others = self.graph.facts[number].keys
        lender = (chain + decoy + 1) % self.chains
        keys = (self._symbol(chain, first), *(self._symbol(lender, name) for name in others))
        nth = self._joint.index(number) * self.decoys + decoy
        value = chain * self.symbols + len(self.graph.symbols) + nth
        roles = (Role("decoy key", number, slot) for slot, _ in enumerate(keys))
        return Entry(
            self._group(number), chain, (*keys, value), (*roles, Role("decoy value", number))
        )

    def _query(self, chain: int) -> Entry:
        symbols = tuple(self._symbol(chain, name) for name in self.graph.known)
        return Entry(len(self.graph.facts), chain, symbols, self.graph.query_roles)

    def _group(self, number: int) -> int:
        last = len(self.graph.facts) - 1
        return {"backward": last - number, "forward": number, "shuffled": 0}[self.order]

    def _symbol(self, chain: int, name: str) -> int:
        return chain * self.symbols + self.graph.symbols.index(name)
