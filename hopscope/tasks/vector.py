"""From a fact graph to sequences of vectors: retrieval, induction, conditional retrieval.

Every chain contributes one *entry* per fact (its keys, then its value) and one for its query.
An example is a random order of the entries, a vector for every symbol, and the positional
codes; all three come from the example's key alone.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from hopscope.configs import ConditionalRetrieval, Interface, VectorTask
from hopscope.facts import Fact, Role
from hopscope.tasks import counter
from hopscope.tasks.batch import Batch, Roles

ORDER_BITS = 40
PAD = -1


@dataclass(frozen=True)
class Entry:
    """A run of neighbouring positions: a fact of one chain, or its query."""

    group: int
    chain: int
    symbols: tuple[int, ...]
    roles: tuple[Role, ...]


class VectorSampler:
    """Draws examples of a vector task from keys."""

    def __init__(self, task: VectorTask, device: torch.device) -> None:
        self.task = task
        self.device = device
        self.graph = task.graph()
        self.decoys = task.decoys if isinstance(task, ConditionalRetrieval) else 0
        self.roles = self._role_table()
        entries = self._entries()
        self.width = max(len(entry.symbols) for entry in entries)
        self.read = task.chains * len(self.graph.known)
        self.length = sum(len(entry.symbols) for entry in entries)
        self._tabulate(entries)

    def interface(self) -> Interface:
        return Interface(
            tokens=False,
            inputs=2 * self.task.dim,
            length=self.length,
            read=self.read,
            outputs=self.asked * self.task.dim,
        )

    @property
    def asked(self) -> int:
        """How many values a query asks for."""
        return len(self.graph.facts) if self.task.curriculum else 1

    @property
    def per_chain(self) -> int:
        """Symbols of one chain, values of its decoys included."""
        joint = sum(len(fact.keys) > 1 for fact in self.graph.facts)
        return len(self.graph.symbols) + joint * self.decoys

    def batch(self, key: Int[Tensor, "rows"]) -> Batch:
        """One example per key."""
        entry, column = self._layout(counter.keys(key, 0))
        symbols = self._symbols(counter.keys(key, 1))
        cell = entry * self.width + column % self.width
        token = self.token[cell]
        place = column // self.width if self.task.position == "pair" else self.place
        inputs = torch.cat((_pick(symbols, token), self._codes(place, len(key))), dim=-1)
        chain = self.chain[entry]
        asker = chain[:, self.length - self.read :: len(self.graph.known)].long()
        targets = _pick(symbols, self.answers[asker].flatten(1))
        targets = targets.unflatten(1, (self.task.chains, self.asked))
        return Batch(inputs, targets, Roles(self.role[cell], chain))

    def _role_table(self) -> tuple[Role, ...]:
        facts = (n for n, fact in enumerate(self.graph.facts) if len(fact.keys) > 1)
        decoys = [
            role
            for number in (facts if self.decoys else ())
            for role in (
                *(
                    Role("decoy key", number, s)
                    for s, _ in enumerate(self.graph.facts[number].keys)
                ),
                Role("decoy value", number),
            )
        ]
        return (*self.graph.roles, *decoys)

    def _entries(self) -> list[Entry]:
        facts = range(len(self.graph.facts))
        backward = self.task.order == "backward"
        entries = [
            entry
            for number in (reversed(facts) if backward else facts)
            for chain in range(self.task.chains)
            for entry in self._fact_entries(number, chain)
        ]
        queries = [self._query_entry(chain) for chain in range(self.task.chains)]
        return entries + queries

    def _fact_entries(self, number: int, chain: int) -> list[Entry]:
        fact = self.graph.facts[number]
        last = len(self.graph.facts) - 1
        group = {"backward": last - number, "forward": number, "shuffled": 0}[self.task.order]
        slots = range(len(fact.keys))
        true = (*(Role("key", number, slot) for slot in slots), Role("value", number))
        entries = [Entry(group, chain, self._fact_symbols(fact, chain), true)]
        for decoy in range(self.decoys if len(fact.keys) > 1 else 0):
            first = self._symbol(chain, fact.keys[0])
            other = (chain + decoy + 1) % self.task.chains
            rest = tuple(self._symbol(other, key) for key in fact.keys[1:])
            roles = (*(Role("decoy key", number, slot) for slot in slots),)
            value = self._decoy_value(number, chain, decoy)
            roles = (*roles, Role("decoy value", number))
            entries.append(Entry(group, chain, (first, *rest, value), roles))
        return entries

    def _query_entry(self, chain: int) -> Entry:
        known = self.graph.known
        symbols = tuple(self._symbol(chain, name) for name in known)
        roles = tuple(Role("query", slot) for slot, _ in enumerate(known))
        return Entry(len(self.graph.facts), chain, symbols, roles)

    def _symbol(self, chain: int, name: str) -> int:
        return chain * self.per_chain + self.graph.symbols.index(name)

    def _fact_symbols(self, fact: Fact, chain: int) -> tuple[int, ...]:
        return tuple(self._symbol(chain, name) for name in (*fact.keys, fact.value))

    def _decoy_value(self, number: int, chain: int, decoy: int) -> int:
        earlier = sum(len(fact.keys) > 1 for fact in self.graph.facts[:number])
        place = len(self.graph.symbols) + earlier * self.decoys + decoy
        return chain * self.per_chain + place

    def _tabulate(self, entries: list[Entry]) -> None:
        """Tables indexed by entry, by cell (entry × slot), or by position."""

        def table(rows: Sequence[Sequence[int]], dtype: torch.dtype) -> Tensor:
            return torch.tensor(rows, dtype=dtype, device=self.device).flatten()

        def padded(numbers: list[int]) -> list[int]:
            return numbers + [PAD] * (self.width - len(numbers))

        index = {role: number for number, role in enumerate(self.roles)}
        self.group = table([[entry.group for entry in entries]], torch.int64)
        self.chain = table([[entry.chain for entry in entries]], torch.int16)
        self.token = table([padded(list(entry.symbols)) for entry in entries], torch.int64)
        self.role = table([padded([index[r] for r in e.roles]) for e in entries], torch.int16)
        # Facts of unequal length in mixed order: positions shift from example to example.
        self.ragged = self.task.order == "shuffled" and self.token.eq(PAD).any().item()
        ordered = sorted(entries, key=lambda entry: entry.group)
        filled = [[s < len(entry.symbols) for s in range(self.width)] for entry in ordered]
        self.columns = table(filled, torch.bool).nonzero().flatten()
        self.place = torch.arange(self.length, device=self.device)
        self.code = _rotary(self.length, self.task.dim, self.task.base).to(self.device)
        values = [fact.value for fact in self.graph.facts][-self.asked :]
        chains = range(self.task.chains)
        answers = [[self._symbol(chain, value) for value in values] for chain in chains]
        self.answers = table(answers, torch.int64).view(self.task.chains, self.asked)

    def _layout(self, key: Tensor) -> tuple[Int[Tensor, "rows seq"], Int[Tensor, "rows seq"]]:
        """Which entry each position belongs to, and its cell among the ordered entries."""
        shuffle = counter.bits(key, len(self.group)) & ((1 << ORDER_BITS) - 1)
        order = (shuffle | (self.group << ORDER_BITS)).argsort(dim=-1, stable=True)
        if not self.ragged:
            return order[:, self.columns // self.width], self.columns.expand(len(key), -1)
        filled = self.token.view(-1, self.width)[order].flatten(1) != PAD
        column = filled.nonzero()[:, 1].view(len(key), self.length)
        return order.gather(1, column // self.width), column

    def _symbols(self, key: Tensor) -> Float[Tensor, "rows symbol dim"]:
        count, dim = self.task.chains * self.per_chain, self.task.dim
        if self.task.symbols == "one-hot":
            hot = counter.bits(key, dim).argsort(dim=-1, stable=True)[:, :count]
            return torch.nn.functional.one_hot(hot, dim).float()
        vectors = counter.normals(key, count * dim).view(-1, count, dim)
        if self.task.symbols == "sphere":
            # Added one by one: a library's sum may group the terms differently elsewhere.
            square = sum(x * x for x in vectors.unbind(-1))
            vectors = vectors / torch.sqrt(torch.as_tensor(square))[..., None]
        return vectors

    def _codes(self, place: Tensor, rows: int) -> Float[Tensor, "rows seq dim"]:
        return self.code[place].expand(rows, -1, -1)


def _pick(symbols: Float[Tensor, "rows symbol dim"], index: Int[Tensor, "rows count"]) -> Tensor:
    """symbols[row, index[row]] for all rows at once."""
    rows, count, dim = symbols.shape
    start = torch.arange(rows, device=index.device)[:, None] * count
    return symbols.reshape(-1, dim).index_select(0, (index + start).flatten()).view(rows, -1, dim)


def _rotary(length: int, dim: int, base: float) -> Float[Tensor, "length dim"]:
    """Cosines, then sines, of position × base^(-2i/dim) (Su et al. 2023)."""
    rates = [base ** (-2 * i / dim) for i in range(dim // 2)]
    rows = [
        [math.cos(p * rate) for rate in rates] + [math.sin(p * rate) for rate in rates]
        for p in range(length)
    ]
    return torch.tensor(rows, dtype=torch.float32)
