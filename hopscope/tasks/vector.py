"""Draws and marks sequences of vectors: retrieval, induction, conditional retrieval.

An example is an order of the layout's entries, a vector for every symbol, and the positional
codes; the first two come from the example's key, the third is always the same.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from hopscope.configs import VectorTask
from hopscope.tasks import counter
from hopscope.tasks.batch import Batch, Roles
from hopscope.tasks.loss import squared_errors
from hopscope.tasks.pairs import partners

ORDER_BITS = 40
"""Random bits by which the entries of one group are sorted."""
PAD = -1
"""What a cell holds that no symbol fills, in an entry shorter than the longest."""


class VectorSampler:
    """Draws examples of a vector task from keys.

    A *cell* is a slot of an entry: all entries have as many slots as the longest, and the
    cells that a shorter one leaves empty hold PAD.
    """

    def __init__(self, task: VectorTask, device: torch.device) -> None:
        self.task = task
        self.device = device
        self.layout = task.layout()
        self.known = self.layout.size.known
        self.asked = len(task.asked_hops())
        self.read = task.chains * self.known
        self.length = task.chains * self.layout.size.positions
        self.example_bytes = 16 * self.length * task.interface().inputs
        self._tabulate()

    def batch(self, key: Int[Tensor, "rows"], exchanged: Sequence[str] = ()) -> Batch:
        """One example per key; of these symbols, every two chains have each other's."""
        entry, column = self._order(counter.keys(key, 0))
        symbols = self._symbols(counter.keys(key, 1))
        if exchanged:
            symbols = symbols[:, self._owner(exchanged)]
        cell = entry * self.slots + column % self.slots
        place = column // self.slots if self.task.position == "pair" else self.place
        codes = self.code[place].expand(len(key), -1, -1)
        inputs = torch.cat((_pick(symbols, self.symbol[cell]), codes), dim=-1)
        chain = self.chain[entry]
        asker = self._askers(entry)
        targets = _pick(symbols, self.answers[asker].flatten(1))
        targets = targets.unflatten(1, (self.task.chains, self.asked))
        return Batch(inputs, targets, Roles(self.role[cell], chain))

    def spelling(self, key: Int[Tensor, "rows"]) -> Int[Tensor, "rows seq"]:
        """The number of the symbol at every position: chain by chain, with the values of decoys."""
        entry, column = self._order(counter.keys(key, 0))
        found: Tensor = self.symbol[entry * self.slots + column % self.slots]
        return found

    def vectors(self, key: Int[Tensor, "rows"]) -> Float[Tensor, "rows symbol dim"]:
        """The vectors of the symbols by these numbers."""
        return self._symbols(counter.keys(key, 1))

    def symbols(self, key: Int[Tensor, "rows"]) -> Float[Tensor, "rows chain symbol dim"]:
        """The symbols of every chain, as they are named in the graph."""
        every = self._symbols(counter.keys(key, 1))
        of_chain: Tensor = every.unflatten(1, (self.task.chains, -1))
        return of_chain[:, :, : len(self.layout.graph.symbols)]

    def askers(self, key: Int[Tensor, "rows"]) -> Int[Tensor, "rows answer"]:
        """The chain of every query."""
        return self._askers(self._order(counter.keys(key, 0))[0])

    def _askers(self, entry: Int[Tensor, "rows seq"]) -> Int[Tensor, "rows answer"]:
        chain: Tensor = self.chain[entry]
        return chain[:, self.length - self.read :: self.known].long()

    def _owner(self, exchanged: Sequence[str]) -> Int[Tensor, "symbol"]:
        """Whose symbol stands for each, when every two chains exchange these."""
        names = self.layout.graph.symbols
        owner = torch.arange(self.task.chains * self.layout.size.symbols, device=self.device)
        of_chain = owner.view(self.task.chains, -1)
        columns = [names.index(name) for name in exchanged]
        swapped = of_chain[partners(self.task.chains, self.device)]
        owner = of_chain.clone()
        owner[:, columns] = swapped[:, columns]
        return owner.flatten()

    def _tabulate(self) -> None:
        """Tables indexed by entry, by cell, or by position."""
        entries = self.layout.entries
        number = {role: n for n, role in enumerate(self.layout.roles)}
        self.slots = max(len(entry.symbols) for entry in entries)

        def table(numbers: Sequence[int], dtype: torch.dtype = torch.int64) -> Tensor:
            return torch.tensor(numbers, dtype=dtype, device=self.device)

        def cells(rows: list[list[int]]) -> list[int]:
            return [n for row in rows for n in row + [PAD] * (self.slots - len(row))]

        self.group = table([entry.group for entry in entries])
        self.chain = table([entry.chain for entry in entries], torch.int16)
        self.symbol = table(cells([list(entry.symbols) for entry in entries]))
        self.role = table(cells([[number[r] for r in e.roles] for e in entries]), torch.int16)
        self.columns = (self.symbol != PAD).nonzero().flatten()
        # Facts of unequal length in mixed order: positions shift from example to example.
        lengths = {len(fact.keys) for fact in self.layout.graph.facts}
        self.ragged = self.task.order == "shuffled" and len(lengths) > 1
        self.place = torch.arange(self.length, device=self.device)
        self.code = _rotary(self.length, self.task.rates()).to(self.device)
        answers = self.layout.answers(self.task.asked_hops())
        self.answers = table([n for row in answers for n in row]).view(-1, self.asked)

    def _order(self, key: Tensor) -> tuple[Int[Tensor, "rows seq"], Int[Tensor, "rows seq"]]:
        """For every position its entry, and its column among the cells of the ordered entries."""
        shuffle = counter.bits(key, len(self.group)) & ((1 << ORDER_BITS) - 1)
        order = (shuffle | (self.group << ORDER_BITS)).argsort(dim=-1, stable=True)
        if not self.ragged:
            return order[:, self.columns // self.slots], self.columns.expand(len(key), -1)
        filled = self.symbol.view(-1, self.slots)[order].flatten(1) != PAD
        column = filled.nonzero()[:, 1].view(len(key), self.length)
        return order.gather(1, column // self.slots), column

    def _symbols(self, key: Tensor) -> Float[Tensor, "rows symbol dim"]:
        count, dim = self.task.chains * self.layout.size.symbols, self.task.dim
        if self.task.symbols == "one-hot":
            hot = counter.bits(key, dim).argsort(dim=-1, stable=True)[:, :count]
            return one_hot(hot, dim).float()
        vectors = counter.normals(key, count * dim).view(-1, count, dim)
        if self.task.symbols == "sphere":
            # Added one by one: a library's sum may group the terms differently elsewhere.
            square = torch.zeros_like(vectors[..., 0])
            for x in vectors.unbind(-1):
                square = square + x * x
            vectors = vectors / counter.root(square.double()).float()[..., None]
        return vectors

    @staticmethod
    def answer_losses(
        task: VectorTask, outputs: Float[Tensor, "*model batch read width"], batch: Batch
    ) -> Float[Tensor, "*model batch answer hop"]:
        """Mean squared error; a query of several known symbols is answered at the last."""
        known = task.size().known
        answers = outputs[..., known - 1 :: known, :].float()
        return squared_errors(answers.unflatten(-1, batch.targets.shape[-2:]), batch.targets)


def _pick(symbols: Float[Tensor, "rows symbol dim"], index: Int[Tensor, "rows count"]) -> Tensor:
    """symbols[row, index[row]] for all rows at once."""
    rows, count, dim = symbols.shape
    start = torch.arange(rows, device=index.device)[:, None] * count
    return symbols.reshape(-1, dim).index_select(0, (index + start).flatten()).view(rows, -1, dim)


def _rotary(length: int, rates: list[float]) -> Float[Tensor, "length dim"]:
    """Cosines, then sines, of position × rate (Su et al. 2023)."""
    rows = [
        [math.cos(p * rate) for rate in rates] + [math.sin(p * rate) for rate in rates]
        for p in range(length)
    ]
    return torch.tensor(rows, dtype=torch.float32)
