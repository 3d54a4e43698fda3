"""Which symbols stand side by side: the entries of a vector task, before any vector is drawn.

Every chain contributes one *entry* per fact (its keys, then its value), one per decoy, and one
for its query. Entries of one group are shuffled among themselves; groups follow one another.
Symbols are numbered chain by chain.
"""

from dataclasses import dataclass
from functools import cached_property

from hopscope.configs import VectorTask
from hopscope.facts import Role


@dataclass(frozen=True)
class Entry:
    """A run of neighbouring positions: a fact of one chain, or its query."""

    group: int
    chain: int
    symbols: tuple[int, ...]
    roles: tuple[Role, ...]


class Layout:
    """The entries of a task, group by group, and the roles they use."""

    def __init__(self, task: VectorTask) -> None:
        self.task = task
        self.graph = task.graph()

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        chains, facts = range(self.task.chains), range(len(self.graph.facts))
        of_facts = [self._fact(number, chain) for number in facts for chain in chains]
        decoys = [
            self._decoy(number, chain, decoy)
            for number in self.task.joint_facts()
            for chain in chains
            for decoy in range(self.task.decoy_count)
        ]
        queries = [self._query(chain) for chain in chains]
        return tuple(sorted((*of_facts, *decoys, *queries), key=lambda entry: entry.group))

    @cached_property
    def roles(self) -> tuple[Role, ...]:
        """Every role that occurs: those of the graph, then those of decoys."""
        used = (role for entry in self.entries for role in entry.roles)
        return tuple(dict.fromkeys((*self.graph.roles, *sorted(used))))

    @cached_property
    def answers(self) -> list[list[int]]:
        """For each chain, the symbols that its query asks for."""
        asked = [fact.value for fact in self.graph.facts]
        asked = asked if self.task.curriculum else asked[-1:]
        return [[self._symbol(c, name) for name in asked] for c in range(self.task.chains)]

    def _fact(self, number: int, chain: int) -> Entry:
        fact = self.graph.facts[number]
        symbols = tuple(self._symbol(chain, name) for name in (*fact.keys, fact.value))
        keys = (Role("key", number, slot) for slot, _ in enumerate(fact.keys))
        return Entry(self._group(number), chain, symbols, (*keys, Role("value", number)))

    def _decoy(self, number: int, chain: int, decoy: int) -> Entry:
        """A fact's first key, with other keys from a chain further on, and a value of its own."""
        first, *others = self.graph.facts[number].keys
        lender = (chain + decoy + 1) % self.task.chains
        keys = (self._symbol(chain, first), *(self._symbol(lender, name) for name in others))
        nth = self.task.joint_facts().index(number) * self.task.decoy_count + decoy
        value = chain * self.task.symbols_per_chain() + len(self.graph.symbols) + nth
        roles = (Role("decoy key", number, slot) for slot, _ in enumerate(keys))
        return Entry(
            self._group(number), chain, (*keys, value), (*roles, Role("decoy value", number))
        )

    def _query(self, chain: int) -> Entry:
        symbols = tuple(self._symbol(chain, name) for name in self.graph.known)
        roles = tuple(Role("query", number) for number, _ in enumerate(self.graph.known))
        return Entry(len(self.graph.facts), chain, symbols, roles)

    def _group(self, number: int) -> int:
        last = len(self.graph.facts) - 1
        return {"backward": last - number, "forward": number, "shuffled": 0}[self.task.order]

    def _symbol(self, chain: int, name: str) -> int:
        return chain * self.task.symbols_per_chain() + self.graph.symbols.index(name)
