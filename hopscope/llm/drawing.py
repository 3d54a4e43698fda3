"""Drawing a question: which words every chain gets, and in which order its facts are told.

Everything random happens here, and nothing is worded here. All formulations tell the last hop
first, one block of lines for each fact of the graph. Words are dealt to chains at random in
every block, so the number of a chain says nothing about its words or lines.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from hopscope.configs.prompts import Prompts
from hopscope.facts import FactGraph
from hopscope.llm import words

T = TypeVar("T")


@dataclass(frozen=True)
class Line:
    """One fact with its words: the fact's number in the graph, and the chain it belongs to."""

    fact: int
    chain: int
    keys: tuple[str, ...]
    value: str
    decoy: bool = False
    """True of a fact that shares keys with its chain, and is not the one its chain looks up."""


@dataclass(frozen=True)
class Drawn:
    """The lines of a question in the order they are told, and the chain asked about."""

    lines: tuple[Line, ...]
    chain: int

    def words(self, graph: FactGraph) -> dict[str, str]:
        """For each symbol of the graph, its word in the chain asked about."""
        own = {
            line.fact: line for line in self.lines if line.chain == self.chain and not line.decoy
        }
        found: dict[str, str] = {}
        for number, fact in enumerate(graph.facts):
            found |= dict(zip(fact.keys, own[number].keys, strict=True))
            found[fact.value] = own[number].value
        return found


def draw(prompts: Prompts, chain: int, rng: Random) -> Drawn:
    """A question about this chain."""
    return Drawn(tuple(DRAWINGS[prompts.formulation](prompts, rng)), chain)


def _equations(prompts: Prompts, rng: Random) -> list[Line]:
    variables = [words.letters(number) for number in range(prompts.depth * prompts.chains)]
    return _linear([*_blocks(variables, prompts.chains), _numbers(prompts.chains)], rng)


def _lives_with(prompts: Prompts, rng: Random) -> list[Line]:
    people = [words.first_name(number) for number in range(prompts.depth * prompts.chains)]
    return _linear([*_blocks(people, prompts.chains), words.CITIES[: prompts.chains]], rng)


def _kingdoms(prompts: Prompts, rng: Random) -> list[Line]:
    lists = (
        *(words.DISEASES, words.MINERALS, words.MEATS),
        *(words.RELIGIONS, words.KINGDOMS, words.FIRST_NAMES),
    )
    return _linear([some[: prompts.chains] for some in lists], rng)


def _blocks(names: Sequence[str], chains: int) -> list[Sequence[str]]:
    """The names of x_0, of x_1, …: the alphabet starts with the keys of the last hop."""
    return [names[start : start + chains] for start in range(0, len(names), chains)][::-1]


def _linear(lists: Iterable[Sequence[str]], rng: Random) -> list[Line]:
    """Linear chains from the words of x_0, of x_1, … of all chains."""
    dealt = [_shuffled(some, rng) for some in lists]
    lines: list[Line] = []
    for fact in reversed(range(len(dealt) - 1)):
        pairs = zip(dealt[fact], dealt[fact + 1], strict=True)
        block = [Line(fact, chain, (key,), value) for chain, (key, value) in enumerate(pairs)]
        lines += _shuffled(block, rng)
    return lines


def _functions(prompts: Prompts, rng: Random) -> list[Line]:
    """Every function's whole table, then aliases and variables; only their words are random."""
    count = prompts.chains
    names = [words.letters(number) for number in range(3 * count)]
    functions, aliases, variables, numbers = (
        _shuffled(some, rng)
        for some in (names[:count], names[count : 2 * count], names[2 * count :], _numbers(count))
    )
    lines: list[Line] = []
    for chain, (name, number) in enumerate(zip(functions, numbers, strict=True)):
        table = zip(_numbers(count), _shuffled(_numbers(count), rng), strict=True)
        lines += [Line(2, chain, (name, at), value, at != number) for at, value in table]
        lines.append(Line(0, chain, (aliases[chain],), name))
        lines.append(Line(1, chain, (variables[chain],), number))
    return sorted(lines, key=lambda line: [(len(key), key) for key in line.keys])


def _relatives(prompts: Prompts, rng: Random) -> list[Line]:
    """Everybody's four relatives, of whom the profession tells which one counts.

    Only the countries are told in random order: the paper's other blocks follow its lists.
    """
    count = prompts.chains
    dealt = zip(
        _shuffled(words.PERSONS[:count], rng),
        _shuffled(words.PROFESSIONS[:count], rng),
        _shuffled(words.RELATIONS, rng),
        strict=False,  # every relation is printed, even where only some have a profession
    )
    women, men = (iter(_shuffled(some[: 2 * count], rng)) for some in (words.WOMEN, words.MEN))
    countries = iter(_shuffled(words.COUNTRIES[: 4 * count], rng))
    blocks: list[list[Line]] = [[], [], [], []]
    for chain, (person, profession, relation) in enumerate(dealt):
        blocks[0].append(Line(0, chain, (person,), profession))
        blocks[1].append(Line(1, chain, (profession,), relation))
        for other in words.RELATIONS:
            relative = next(women if other in words.FEMALE else men)
            decoy = other != relation
            blocks[2].append(Line(2, chain, (person, other), relative, decoy))
            blocks[3].append(Line(3, chain, (relative,), next(countries), decoy))
    place = {word: at for at, word in enumerate(words.PERSONS + words.PROFESSIONS)}
    for block in blocks[:3]:
        block.sort(key=lambda line: place[line.keys[0]])
    return [*_shuffled(blocks[3], rng), *blocks[2], *blocks[1], *blocks[0]]


def _numbers(count: int) -> list[str]:
    return [str(number) for number in range(count)]


def _shuffled(some: Sequence[T], rng: Random) -> list[T]:
    return rng.sample(some, len(some))


DRAWINGS: dict[str, Callable[[Prompts, Random], list[Line]]] = {
    "equations": _equations,
    "lives-with": _lives_with,
    "kingdoms": _kingdoms,
    "functions": _functions,
    "relatives": _relatives,
}
