"""The sampler of vector tasks (retrieval, induction, conditional retrieval), and their losses.

An example has an order of the layout's entries, a vector for every symbol, and positional codes.
The order and the vectors are drawn from the example's key; the codes are always the same.

In words, a symbol is the letter of its chain followed by its name. Symbols that a user types form
new facts, entry by entry. Each question is then followed from fact to fact; it has no true answer
if no fact, or more than one, leads on.
"""

import math
import re
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from hopscope.configs import VectorTask
from hopscope.tasks import counter
from hopscope.tasks.batch import Batch, Roles, partners
from hopscope.tasks.counter import Keys
from hopscope.tasks.rendering import QueryPosition, RenderedExample, letters

ORDER_BITS = 40
"""The number of random bits by which the entries of one group are sorted."""
PAD = -1
"""The content of a cell without a symbol, in entries shorter than the longest."""
SYMBOL_NAME = re.compile(r"x(\d+)", re.ASCII)


class VectorSampler:
    """Draws examples of a vector task from keys.

    Entries are rows of a table as wide as the longest entry. A *cell* of the table contains the
    number of a symbol, or PAD after the end of a shorter entry.
    """

    def __init__(self, task: VectorTask, device: torch.device) -> None:
        self.task = task
        self.device = device
        self.layout = task.layout()
        self.known = len(self.layout.graph.known)
        self.asked = len(task.asked_hops())
        self.read = task.chains * self.known
        self.length = self.layout.length
        self.example_bytes = 16 * self.length * task.interface().inputs
        own = [_short(name) for name in self.layout.graph.symbols]
        own += [f".decoy{number}" for number in range(self.layout.symbols - len(own))]
        self.names = tuple(
            f"{letters(chain)}{name}" for chain in range(task.chains) for name in own
        )
        self.candidates = self.names
        self._tabulate()

    def batch(self, key: Keys, swapped: Sequence[str] = ()) -> Batch:
        """One example per key; pairs of chains (see `partners`) have swapped the symbols in
        `swapped`.
        """
        entry, column = self._order(counter.keys(key, 0))
        symbols = self._symbols(counter.keys(key, 1))
        if swapped:
            symbols = symbols[:, self._owner(swapped)]
        cell = entry * self.width + column % self.width
        place = column // self.width if self.task.position == "pair" else self.place
        codes = self.code[place].expand(len(key), -1, -1)
        inputs = torch.cat((_pick(symbols, self.symbol[cell]), codes), dim=-1)
        chain = self.chain[entry]
        asker = self._askers(entry)
        targets = _pick(symbols, self.answers[asker].flatten(1))
        targets = targets.unflatten(1, (self.task.chains, self.asked))
        return Batch(inputs, targets, Roles(self.role[cell], chain))

    def spelling(self, key: Keys) -> Int[Tensor, "rows seq"]:
        """The number of the symbol at every position. Symbols are numbered chain by chain, with the
        values of decoys.
        """
        entry, column = self._order(counter.keys(key, 0))
        found: Tensor = self.symbol[entry * self.width + column % self.width]
        return found

    def vectors(self, key: Keys) -> Float[Tensor, "rows symbol dim"]:
        """The vector of every symbol, by its number."""
        return self._symbols(counter.keys(key, 1))

    def symbols(self, key: Keys) -> Float[Tensor, "rows chain symbol dim"]:
        """The vectors of every chain's symbols, in the order of the graph's symbols."""
        of_chain: Tensor = self.vectors(key).unflatten(1, (self.task.chains, -1))
        return of_chain[:, :, : len(self.layout.graph.symbols)]

    def askers(self, key: Keys) -> Int[Tensor, "rows answer"]:
        """The chain of every query."""
        return self._askers(self._order(counter.keys(key, 0))[0])

    def rendered(self, key: Keys, order: Keys | None, typed: list[int] | None) -> RenderedExample:
        """The example in words, with the vectors of its key."""
        place = key if order is None else order
        batch, vectors = self.batch(place), self.vectors(key)[0]
        symbols = self.spelling(place)[0].tolist() if typed is None else typed
        role, chain = batch.roles.role[0], batch.roles.chain[0]
        questions, told = self._followed(symbols, role, self.askers(place)[0].tolist())
        return RenderedExample(
            inputs=torch.cat([vectors[symbols], batch.inputs[0, :, self.task.dim :]], dim=-1),
            roles=Roles(role, chain if typed is None else told),
            texts=tuple(self.names[symbol] for symbol in symbols),
            questions=questions,
            candidates=self.names,
            vectors=vectors,
        )

    def _followed(
        self, symbols: list[int], role: Int[Tensor, "seq"], askers: list[int]
    ) -> tuple[tuple[QueryPosition, ...], Int[Tensor, "seq"]]:
        """Every question with its true answers, and the chain of each position; a fact belongs to
        the chain of the first question that leads through it.
        """
        graph, facts = self.layout.graph, self._told(symbols, role)
        chain = torch.full_like(role, self.task.chains)
        questions = []
        for number, asker in enumerate(askers):
            first = self.length - self.read + number * self.known
            chain[first : first + self.known] = asker
            value: dict[str, int | None] = dict(zip(graph.known, symbols[first:], strict=False))
            for n, fact in enumerate(graph.facts):
                entries = facts.get((n, *(value[name] for name in fact.keys)), [])
                value[fact.value] = symbols[entries[0][-1]] if len(entries) == 1 else None
                if entries and chain[entries[0][0]] == self.task.chains:
                    chain[entries[0]] = asker
            truth = tuple(value[graph.facts[hop - 1].value] for hop in self.task.asked_hops())
            questions.append(QueryPosition(first + self.known - 1, asker, truth))
        return tuple(questions), chain

    def _told(
        self, symbols: list[int], role: Int[Tensor, "seq"]
    ) -> dict[tuple[int | None, ...], list[list[int]]]:
        """The positions of every entry, by the number of its fact and the symbols of its keys."""
        table, places = self.task.roles(), list[int]()
        facts: dict[tuple[int | None, ...], list[list[int]]] = {}
        for place, number in enumerate(role.tolist()):
            places.append(place)
            if table[number].kind.endswith("value"):
                keys = (symbols[key] for key in places[:-1])
                facts.setdefault((table[number].fact, *keys), []).append(places)
                places = []
        return facts

    def _askers(self, entry: Int[Tensor, "rows seq"]) -> Int[Tensor, "rows answer"]:
        chain: Tensor = self.chain[entry]
        return chain[:, self.length - self.read :: self.known].long()

    def _owner(self, swapped: Sequence[str]) -> Int[Tensor, "symbol"]:
        """For each symbol, its replacement when pairs of chains swap the symbols in `swapped`."""
        names = self.layout.graph.symbols
        owner = torch.arange(self.task.chains * self.layout.symbols, device=self.device)
        of_chain = owner.view(self.task.chains, -1)
        columns = [names.index(name) for name in swapped]
        other = of_chain[partners(self.task.chains, self.device)]
        owner = of_chain.clone()
        owner[:, columns] = other[:, columns]
        return owner.flatten()

    def _tabulate(self) -> None:
        """Set the tables indexed by entry, by cell, or by position."""
        entries = self.layout.entries
        number = {role: n for n, role in enumerate(self.layout.roles)}
        self.width = max(len(entry.symbols) for entry in entries)

        def table(numbers: Sequence[int], dtype: torch.dtype = torch.int64) -> Tensor:
            return torch.tensor(numbers, dtype=dtype, device=self.device)

        def cells(rows: list[list[int]]) -> list[int]:
            return [n for row in rows for n in row + [PAD] * (self.width - len(row))]

        self.group = table([entry.group for entry in entries])
        self.chain = table([entry.chain for entry in entries], torch.int16)
        self.symbol = table(cells([list(entry.symbols) for entry in entries]))
        self.role = table(cells([[number[r] for r in e.roles] for e in entries]), torch.int16)
        self.columns = (self.symbol != PAD).nonzero().flatten()
        # If facts of different lengths are shuffled, their positions vary between examples.
        lengths = {len(fact.keys) for fact in self.layout.graph.facts}
        self.mixed = self.task.order == "shuffled" and len(lengths) > 1
        self.place = torch.arange(self.length, device=self.device)
        self.code = _rotary(self.length, self.task.rates()).to(self.device)
        answers = self.layout.answers(self.task.asked_hops())
        self.answers = table([n for row in answers for n in row]).view(-1, self.asked)

    def _order(self, key: Tensor) -> tuple[Int[Tensor, "rows seq"], Int[Tensor, "rows seq"]]:
        """The entry of every position, and its column among the cells of the ordered entries."""
        shuffle = counter.bits(key, len(self.group)) & ((1 << ORDER_BITS) - 1)
        order = (shuffle | (self.group << ORDER_BITS)).argsort(dim=-1, stable=True)
        if not self.mixed:
            return order[:, self.columns // self.width], self.columns.expand(len(key), -1)
        empty = self.symbol.view(-1, self.width)[order].flatten(1) == PAD
        column = empty.byte().argsort(dim=-1, stable=True)[:, : self.length]  # filled cells first
        return order.gather(1, column // self.width), column

    def _symbols(self, key: Tensor) -> Float[Tensor, "rows symbol dim"]:
        count, dim = self.task.chains * self.layout.symbols, self.task.dim
        if self.task.symbols == "one-hot":
            hot = counter.bits(key, dim).argsort(dim=-1, stable=True)[:, :count]
            return one_hot(hot, dim).float()
        vectors = counter.normals(key, count * dim).view(-1, count, dim)
        if self.task.symbols == "sphere":
            # Added one by one: a library's sum may order the terms differently on other machines.
            square = torch.zeros_like(vectors[..., 0])
            for x in vectors.unbind(-1):
                square = square + x * x
            vectors = vectors / counter.root(square.double()).float()[..., None]
        return vectors

    @staticmethod
    def answer_losses(
        task: VectorTask, outputs: Float[Tensor, "*model batch read width"], batch: Batch
    ) -> Float[Tensor, "*model batch answer hop"]:
        """The mean squared error. A query of several known symbols is answered at the last one."""
        known = len(task.graph().known)
        answers = outputs[..., known - 1 :: known, :].float()
        answers = answers.unflatten(-1, batch.targets.shape[-2:])
        losses: Tensor = (answers - batch.targets).square().mean(-1)
        return losses


def _pick(symbols: Float[Tensor, "rows symbol dim"], index: Int[Tensor, "rows count"]) -> Tensor:
    """symbols[row, index[row]] for all rows at once."""
    rows, count, dim = symbols.shape
    start = torch.arange(rows, device=index.device)[:, None] * count
    return symbols.reshape(-1, dim).index_select(0, (index + start).flatten()).view(rows, -1, dim)


def _short(name: str) -> str:
    """The name of a symbol after its chain's letter: "2" for x2, ".name" for any other name."""
    match = SYMBOL_NAME.fullmatch(name)
    return match[1] if match else f".{name}"


def _rotary(length: int, rates: list[float]) -> Float[Tensor, "length dim"]:
    """The positional codes: cosines, then sines, of position × rate (Su et al. 2023)."""
    rows = [
        [math.cos(p * rate) for rate in rates] + [math.sin(p * rate) for rate in rates]
        for p in range(length)
    ]
    return torch.tensor(rows, dtype=torch.float32)
