"""Examples of vector tasks in words: a symbol is called by the letter of its chain and its name.

Whoever types symbols writes new facts, entry by entry. What is true then follows from them alone:
a question is followed from fact to fact, and where none, or more than one, says how to go on, there
is no truth. A fact belongs to the chain of the first question that comes by.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from hopscope.configs import VectorTask
from hopscope.tasks.batch import Roles
from hopscope.tasks.spelled import Asked, Spelled, letters, numbers, row
from hopscope.tasks.vector import VectorSampler

NUMBERED = re.compile(r"x(\d+)", re.ASCII)
Places = tuple[int, ...]
"""The positions of one entry."""
Table = dict[tuple[int, ...], list[Places]]
"""The entries of one fact that have these keys."""


class VectorSpeller:
    """Spells the examples of one vector task."""

    def __init__(self, task: VectorTask) -> None:
        self.task, self.graph = task, task.graph()
        self.sampler = VectorSampler(task, torch.device("cpu"))
        self.each = task.size().symbols

    def drawn(self, key: Int[Tensor, "rows"], order: Int[Tensor, "rows"] | None = None) -> Spelled:
        """The example of a key; of another key, its order alone."""
        place = key if order is None else order
        batch = self.sampler.batch(place)
        spelling = self.sampler.spelling(place)[0]
        askers = self.sampler.askers(place)[0].tolist()
        names, vectors = self.names, self.sampler.vectors(key)[0]
        return Spelled(
            inputs=self._inputs(vectors, spelling, batch.inputs[0]),
            roles=row(batch.roles),
            texts=tuple(names[number] for number in spelling.tolist()),
            asked=tuple(self._asked(n, chain) for n, chain in enumerate(askers)),
            candidates=names,
            vectors=vectors,
        )

    def tables(self) -> dict[str, Any]:
        """How examples are drawn and marked, as plain data."""
        sampler, task, graph = self.sampler, self.task, self.graph
        facts = [{"keys": list(fact.keys), "value": fact.value} for fact in graph.facts]
        names = ("group", "chain", "symbol", "role", "columns", "code")
        return {
            "way": "vector",
            "dim": task.dim,
            "symbols": task.symbols,
            "position": task.position,
            "chains": task.chains,
            "known": sampler.known,
            "answers": task.chains,
            "count": task.chains * self.each,
            "slots": sampler.slots,
            "ragged": sampler.ragged,
            "wanted": sampler.answers.tolist(),
            "graph": {"known": list(graph.known), "facts": facts},
            "hops": list(task.asked_hops()),
            **{name: getattr(sampler, name).tolist() for name in names},
        }

    def typed(self, words: Sequence[str], shown: Spelled) -> Spelled:
        """The same example with other symbols in its places."""
        found = numbers(words, shown.candidates, self.sampler.length)
        assert shown.vectors is not None
        inputs = self._inputs(shown.vectors, torch.tensor(found), shown.inputs)
        tables = self._tables(found, shown)
        chain = torch.full_like(shown.roles.chain, self.task.chains)
        asked = tuple(self._followed(found, tables, each, chain) for each in shown.asked)
        roles = Roles(shown.roles.role, chain)
        return replace(shown, inputs=inputs, roles=roles, texts=tuple(words), asked=asked)

    @property
    def names(self) -> tuple[str, ...]:
        """What every symbol is called, by its number."""
        own = [_short(name) for name in self.graph.symbols]
        own += [f".decoy{number}" for number in range(self.each - len(own))]
        return tuple(f"{letters(chain)}{name}" for chain in range(self.task.chains) for name in own)

    def _inputs(self, vectors: Tensor, spelling: Int[Tensor, "seq"], coded: Tensor) -> Tensor:
        """Symbols beside the positional codes of these inputs."""
        return torch.cat([vectors[spelling], coded[:, self.task.dim :]], dim=-1)

    def _asked(self, number: int, chain: int) -> Asked:
        known = self.sampler.known
        position = self.sampler.length - self.sampler.read + number * known + known - 1
        return Asked(position, chain, tuple(self.sampler.answers[chain].tolist()))

    def _entries(self, shown: Spelled) -> Iterator[tuple[int, Places]]:
        """The number of every fact that is told, and its places: keys, then the value."""
        table, keys = self.task.roles(), list[int]()
        for place, number in enumerate(shown.roles.role.tolist()):
            role = table[number]
            if role.kind.endswith("key"):
                keys.append(place)
            elif role.kind.endswith("value"):
                yield role.fact, (*keys, place)
                keys = []

    def _tables(self, found: list[int], shown: Spelled) -> list[Table]:
        """For each fact, what its entries say now."""
        tables: list[Table] = [{} for _ in self.graph.facts]
        for fact, places in self._entries(shown):
            keys = tuple(found[place] for place in places[:-1])
            tables[fact].setdefault(keys, []).append(places)
        return tables

    def _followed(
        self, found: list[int], tables: list[Table], asked: Asked, chain: Int[Tensor, "seq"]
    ) -> Asked:
        """A question with the truth that follows; its facts get its chain."""
        known = self.sampler.known
        places = range(asked.position - known + 1, asked.position + 1)
        chain[list(places)] = asked.chain
        value: dict[str, int | None] = {
            name: found[place] for name, place in zip(self.graph.known, places, strict=True)
        }
        for fact, table in zip(self.graph.facts, tables, strict=True):
            keys = tuple(value[name] for name in fact.keys)
            entries = [] if None in keys else table.get(keys, [])  # type: ignore[arg-type]
            value[fact.value] = found[entries[0][-1]] if len(entries) == 1 else None
            for entry in entries[:1]:
                if int(chain[entry[0]]) == self.task.chains:
                    chain[list(entry)] = asked.chain
        hops = self.task.asked_hops()
        return replace(asked, truth=tuple(value[self.graph.facts[n - 1].value] for n in hops))


def _short(name: str) -> str:
    """x2 of chain b is b2; a symbol of another name keeps it behind a dot."""
    match = NUMBERED.fullmatch(name)
    return match[1] if match else f".{name}"
