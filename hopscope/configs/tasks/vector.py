"""Retrieval, induction and conditional retrieval: the tasks over real-valued vectors.

Every chain has one *entry* per fact (its keys, then its value), one per decoy, and one for its
query. Entries are shuffled within their group; the groups have a fixed order. Symbols are numbered
chain by chain. Sections (§) refer to Musat (ICLR 2025).
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hopscope.configs.config import Hops, Positive, Real, Whole
from hopscope.configs.model import Interface
from hopscope.configs.tasks.task import FactTask, Order
from hopscope.facts import FactGraph, Role, chain_of_facts, parse_facts


@dataclass(frozen=True)
class Entry:
    """Adjacent positions: a fact of one chain, a decoy, or the chain's query."""

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
    """Decoys per chain, for each fact with several keys."""

    @cached_property
    def symbols(self) -> int:
        """The number of symbols of one chain, including the values of its decoys."""
        return len(self.graph.symbols) + self.decoys * len(self._joint)

    @cached_property
    def length(self) -> int:
        """The number of positions of the sequence, computed without creating the entries."""
        numbers = [*range(len(self.graph.facts)), *self._joint * self.decoys]
        of_facts = sum(len(self.graph.roles_of(number)) for number in numbers)
        return self.chains * (of_facts + len(self.graph.known))

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
        """Every role that occurs: first the roles of the graph, then those of decoys."""
        used = (role for entry in self.entries for role in entry.roles)
        return tuple(dict.fromkeys((*self.graph.roles, *sorted(used))))

    def answers(self, asked: Iterable[int]) -> list[list[int]]:
        """For each chain, the values of the facts with these numbers (from 1)."""
        names = [self.graph.facts[number - 1].value for number in asked]
        return [[self._symbol(chain, name) for name in names] for chain in range(self.chains)]

    @cached_property
    def _joint(self) -> list[int]:
        """The numbers of the facts with several keys."""
        return [number for number, fact in enumerate(self.graph.facts) if len(fact.keys) > 1]

    def _fact(self, number: int, chain: int) -> Entry:
        fact = self.graph.facts[number]
        symbols = tuple(self._symbol(chain, name) for name in (*fact.keys, fact.value))
        return Entry(self._group(number), chain, symbols, self.graph.roles_of(number))

    def _decoy(self, number: int, chain: int, decoy: int) -> Entry:
        """A decoy of a fact: its first key, the other keys from another chain, and a new value."""
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


class VectorTask(FactTask):
    """Base of the tasks over real-valued vectors."""

    chains: Positive = 4
    """Number N of chains interleaved in every sequence (§6: 4)."""
    dim: Positive = 4
    """Symbol dimension K, even (§6: 4)."""
    symbols: Literal["gaussian", "sphere", "one-hot"] = "gaussian"
    """How a symbol's vector is drawn: i.i.d. standard normal (§6), the same scaled to unit
    length, or distinct one-hot vectors."""
    position: Literal["token", "pair"] = "token"
    """Whether each token has its own positional code (§6), or all tokens of a fact share one (the
    variant for which Theorem 1 is proved)."""
    base: Annotated[Real, Field(gt=1)] = 10_000.0
    """Base of the rotary frequencies (Su et al.: 10000, which gives 1 and 0.01 for K = 4)."""
    order: Order = "backward"
    """Order of the facts: last hop first (§6), first hop first, or all shuffled together.
    The queries always come last."""
    curriculum: bool = True
    """Implicit curriculum (§7): ask for the values of all hops, not only of the last."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.dim % 2:
            raise ValueError(
                f"dim is {self.dim}; a rotary code pairs cosines and sines: make it even"
            )
        wanted = self.chains * self.layout().symbols
        if self.symbols == "one-hot" and self.dim < wanted:
            raise ValueError(
                f"dim is {self.dim}; {wanted} distinct one-hot symbols need dim >= {wanted}"
            )
        return self

    @abstractmethod
    def graph(self) -> FactGraph:
        """The facts of one chain."""

    def layout(self) -> Layout:
        """The entries and roles of a sequence."""
        return Layout(self.graph(), self.chains, self.order)

    def roles(self) -> tuple[Role, ...]:
        return self.layout().roles

    def interface(self) -> Interface:
        return Interface(
            tokens=False,
            inputs=2 * self.dim,
            length=self.layout().length,
            read=self.chains * len(self.graph().known),
            outputs=self.dim * len(self.asked_hops()),
        )

    def chances(self, asking: int | None = None) -> tuple[float, ...]:  # noqa: ARG002
        """The loss of answering with the mean of the N candidates: 1 - 1/N of a symbol's mean
        square.

        The mean square of a symbol's components is 1 for gaussian symbols and 1/dim for symbols of
        unit length. (Distinct one-hot symbols are orthogonal, as independent ones are on average.)
        With a single candidate the loss is 0: there is nothing to look up.
        """
        square = 1.0 if self.symbols == "gaussian" else 1 / self.dim
        return tuple(square * (1 - 1 / self.candidates(hop)) for hop in self.asked_hops())

    def candidates(self, hop: int) -> int:
        """The number of values of an example that may be the answer of a hop: of its fact in all
        chains, and of decoys.

        If facts are shuffled, a position does not determine the fact. Yet without a look-up it is
        known how many keys the fact of each value has, and which keys the value is: the sum of the
        first (second, …) keys minus the queries shows it.
        """
        layout, facts = self.layout(), self.graph().facts
        decoys = {fact: layout.decoys * (len(fact.keys) > 1) for fact in facts}
        uses = {fact: Counter[tuple[int, int]]() for fact in facts}
        for fact, other in product(facts, facts):
            if fact.value in other.keys:
                place = len(other.keys), other.keys.index(fact.value)
                uses[fact][place] += 1 + decoys[other]
        asked = facts[hop - 1]
        placed = facts if self.order == "shuffled" else (asked,)
        placed = tuple(fact for fact in placed if len(fact.keys) == len(asked.keys))
        alike = sum(uses[fact] == uses[asked] for fact in placed)
        if not uses[asked]:  # as for the value of a decoy
            alike += sum(decoys[fact] for fact in placed)
        return self.chains * alike

    def asks_every_hop(self) -> bool:
        return self.curriculum

    def asked_hops(self) -> tuple[int, ...]:
        last = len(self.graph().facts)
        return tuple(range(1, last + 1)) if self.curriculum else (last,)

    def fact_order(self) -> tuple[int, ...] | None:
        """The order of the facts in a sequence; None if they are shuffled."""
        facts = tuple(range(len(self.graph().facts)))
        return {"backward": facts[::-1], "forward": facts, "shuffled": None}[self.order]

    def swap_obstacle(self) -> str | None:
        return None if self.chains > 1 else "it has 1 chain, which has none to swap with"

    def ordered(self, order: Order) -> Self:
        """The same questions with their facts in another order."""
        return self.replace(order=order)

    def rates(self) -> list[float]:
        """The frequencies of the rotary code, fastest first."""
        return [float(self.base ** (-2 * pair / self.dim)) for pair in range(self.dim // 2)]


class Retrieval(VectorTask):
    """Retrieval over D hops (§6). Two chains, D = 2, shuffled inside each hop::

        b1 b2 · a1 a2 · a0 a1 · b0 b1 · b0 · a0
        └── last hop ──┘ └── first hop ─┘ └ queries ┘      targets: (b1 b2), (a1 a2)

    The model reads both queries and answers with x_1 … x_D of each query's chain (implicit
    curriculum), or with x_D alone.
    """

    kind: Literal["retrieval"] = "retrieval"
    hops: Hops = 3
    """Number D of look-ups from x_0 to x_D (§8: 3, §7: 5, §9: 4)."""

    def graph(self) -> FactGraph:
        return chain_of_facts(self.hops)

    def chosen_hops(self) -> int:
        return self.hops


class Induction(VectorTask):
    """Induction: retrieval with a single hop (Olsson et al. 2022). Two chains::

        b0 b1 · a0 a1 · a0 · b0          targets: a1, b1

    Two causal layers are enough, one is not.
    """

    kind: Literal["induction"] = "induction"

    def graph(self) -> FactGraph:
        return chain_of_facts(1)


class ConditionalRetrieval(VectorTask):
    """Retrieval where a look-up may need several earlier results (§3.1). One chain of three::

        x y z · a y · a x · a            targets: x, y, z
        └ triple ┘                       (x, y) together lead to z

    Any acyclic set of look-ups is a task: write one fact per entry, `"x,y->z"`. With `decoys = m`,
    every fact with several keys gets m decoys per chain. A decoy has the fact's first key, but the
    other keys of one of the next m chains, so that the first key alone does not determine the
    value.
    """

    kind: Literal["conditional"] = "conditional"
    facts: Annotated[tuple[str, ...], Field(max_length=127)] = ("a->x", "a->y", "x,y->z")
    """The look-ups of one chain, each `key[,key…]->value`. They are sorted by how many look-ups
    must come one after another to reach their value. `order`, the numbers of hops and the last hop
    follow this order."""
    decoys: Annotated[Whole, Field(ge=0)] = 0
    """Facts per chain that share the first key of a fact with several keys."""

    @model_validator(mode="after")
    def _decoys_have_chains(self) -> Self:
        if self.decoys >= self.chains:
            raise ValueError(
                f"decoys is {self.decoys}; they borrow keys of other chains: at most "
                f"chains - 1 = {self.chains - 1}"
            )
        return self

    def graph(self) -> FactGraph:
        return parse_facts(self.facts)

    def layout(self) -> Layout:
        return Layout(self.graph(), self.chains, self.order, self.decoys)
