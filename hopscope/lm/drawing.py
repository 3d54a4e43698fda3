"""Draw a question: the words of each chain, and the order of its facts.

This module has all the randomness, and none of the wording. All formulations print the last hop
first, one block of lines for each fact of the graph. In each block, words are given to chains at
random, so a chain's number is independent of its words and lines. In the lists of words the paper's
words come first; a question with N chains takes the first N words of a list.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TypeVar

from hopscope.configs.prompts import Prompts
from hopscope.facts import Fact, FactGraph

T = TypeVar("T")

FIRST_NAMES = tuple(
    """
    Alice Bob Charlie David Eve Frank Grace Henry Isabelle Jack Kate Larry Mary Nick Olivia Peter
    Queen Rose Sam Tom Uma Victor Wendy Xavier Yvonne Zach
    Aaron Beth Carl Dora Edgar Fiona George Helen Ivan Julia Kevin Laura Martin Nora Oscar Paula
    Quentin Rachel Simon Tina Ulrich Vera Walter Xenia Yusuf Zoe
    Adam Barbara Chris Diana Eric Freya Gavin Hannah Ian Jane Karl Lily Mark Nina Otto Penny
    Quinn Robert Sara Thomas Ursula Vincent William Ximena Yara Zelda
    Anna Ben Clara Dennis Emma Felix Gina Hugo Irene John Karen Leo Maria Neil Olga Paul
    Quincy Ruth Stefan Teresa Ugo Violet Wanda Xander Yolanda Zachary
    """.split()
)

GENERATIONS = ("", " II", " III", " IV", " V")
"""The 104 names are used again with each of these: enough for 20 hops of 26 chains."""

CITIES = tuple(
    """
    Amsterdam Berlin Cairo Delhi Edinburgh Frankfurt Geneva Helsinki Istanbul Jakarta Kyoto
    Lisbon Madrid Nairobi Oslo Prague Quito Reykjavik Stockholm Tokyo Utrecht Vienna Warsaw
    Xiamen York Zurich
    """.split()
)

KINGDOMS = "Silvania Novaria Aurora Florinia Montaria Pelagia Borealia Umbria".split()
RELIGIONS = (
    "celestianism harmonianism elysianism luminism solarianism aquarism terranism nebulism".split()
)
MEATS = "beef pork lamb chicken turkey duck venison goose".split()
MINERALS = "Astralyte Nephryon Zephyrium Virellium Cobrantine Obsidaryl Quorite Thalassium".split()
DISEASES = "Chronogy Aetherflux Somnosis Synthemia Glaciosis Lumopathy Verdexia Mirrorpox".split()
PERSONS = ("John", "Chris", "Diana", "Eve")
PROFESSIONS = ("doctor", "lawyer", "teacher", "engineer")
RELATIONS = ("mother", "sister", "father", "brother")
FEMALE = ("mother", "sister")
WOMEN = ("Cathy", "Dana", "Isabelle", "Jane", "Lily", "Nancy", "Olivia", "Penny")
MEN = ("Adam", "Bob", "Ed", "Fred", "George", "Hank", "Kevin", "Mike")
COUNTRIES = tuple(
    """
    Argentina Brazil Canada Denmark England France Germany Hungary Italy Japan Kenya Laos
    Mexico Norway Peru Qatar
    """.split()
)


@dataclass(frozen=True)
class Line:
    """One fact with its words: the fact's number in the graph, and the chain it belongs to."""

    fact: int
    chain: int
    keys: tuple[str, ...]
    value: str
    decoy: bool = False
    """Whether the fact shares keys with its chain but is not the one that the chain looks up."""


@dataclass(frozen=True)
class QuestionLines:
    """The lines of a question in the order in which they are printed, and the chain asked about."""

    lines: tuple[Line, ...]
    chain: int

    def given(self, graph: FactGraph) -> dict[str, str]:
        """Return the words that the question gives, by their symbols."""
        return {
            name: word
            for line in self.lines
            if line.chain == self.chain and not line.decoy
            for name, word in zip(graph.facts[line.fact].keys, line.keys, strict=True)
            if name in graph.known
        }

    def words(self, graph: FactGraph, given: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the word of each symbol, looked up fact by fact from the words that the question
        gives (or from other ones).
        """
        table = {(line.fact, line.keys): line.value for line in self.lines}
        words = dict(self.given(graph) if given is None else given)
        for number, fact in enumerate(graph.facts):
            words[fact.value] = table[number, tuple(words[key] for key in fact.keys)]
        return words

    def exchanged(
        self,
        graph: FactGraph,
        symbol: str,
        words: tuple[str, str],
        kinds: Collection[str] = ("key", "value"),
    ) -> "QuestionLines":
        """Return the lines with two words of a symbol exchanged, as keys, values or both (`kinds`).

        Decoys are changed too.
        """
        swap = dict(zip(words, reversed(words), strict=True))

        def at(kind: str, name: str, word: str) -> str:
            return swap.get(word, word) if name == symbol and kind in kinds else word

        def changed(line: Line, fact: Fact) -> Line:
            keys = (at("key", *each) for each in zip(fact.keys, line.keys, strict=True))
            return replace(line, keys=tuple(keys), value=at("value", fact.value, line.value))

        return replace(
            self, lines=tuple(changed(line, graph.facts[line.fact]) for line in self.lines)
        )


def draw(prompts: Prompts, chain: int, rng: Random) -> QuestionLines:
    """A question about this chain."""
    return QuestionLines(tuple(DRAWINGS[prompts.formulation](prompts, rng)), chain)


def _equations(prompts: Prompts, rng: Random) -> list[Line]:
    variables = [variable_name(number) for number in range(prompts.depth * prompts.chains)]
    return _linear([*_blocks(variables, prompts.chains), _numbers(prompts.chains)], rng)


def _lives_with(prompts: Prompts, rng: Random) -> list[Line]:
    people = [first_name(number) for number in range(prompts.depth * prompts.chains)]
    return _linear([*_blocks(people, prompts.chains), CITIES[: prompts.chains]], rng)


def _kingdoms(prompts: Prompts, rng: Random) -> list[Line]:
    lists = (DISEASES, MINERALS, MEATS, RELIGIONS, KINGDOMS, FIRST_NAMES)
    return _linear([some[: prompts.chains] for some in lists], rng)


def _blocks(names: Sequence[str], chains: int) -> list[Sequence[str]]:
    """Return the names of x_0, of x_1, …; the first names are for the keys of the last hop."""
    return [names[start : start + chains] for start in range(0, len(names), chains)][::-1]


def _linear(lists: Iterable[Sequence[str]], rng: Random) -> list[Line]:
    """Return the lines of linear chains, from lists of words for x_0, x_1, …"""
    dealt = [_shuffled(some, rng) for some in lists]
    lines: list[Line] = []
    for fact in reversed(range(len(dealt) - 1)):
        pairs = zip(dealt[fact], dealt[fact + 1], strict=True)
        block = [Line(fact, chain, (key,), value) for chain, (key, value) in enumerate(pairs)]
        lines += _shuffled(block, rng)
    return lines


def _functions(prompts: Prompts, rng: Random) -> list[Line]:
    """Return the tables of all functions, the aliases and the variables; only words are random."""
    count = prompts.chains
    names = [variable_name(number) for number in range(3 * count)]
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
    """Return lines with four relatives of each person; the profession decides which one counts.

    Only the countries are in random order: the paper's other blocks follow its lists.
    """
    count = prompts.chains
    dealt = zip(
        _shuffled(PERSONS[:count], rng),
        _shuffled(PROFESSIONS[:count], rng),
        _shuffled(RELATIONS, rng),
        strict=False,  # every relation is printed, even if only some have a profession
    )
    women, men = (iter(_shuffled(some[: 2 * count], rng)) for some in (WOMEN, MEN))
    countries = iter(_shuffled(COUNTRIES[: 4 * count], rng))
    blocks: list[list[Line]] = [[], [], [], []]
    for chain, (person, profession, relation) in enumerate(dealt):
        blocks[0].append(Line(0, chain, (person,), profession))
        blocks[1].append(Line(1, chain, (profession,), relation))
        for other in RELATIONS:
            relative = next(women if other in FEMALE else men)
            decoy = other != relation
            blocks[2].append(Line(2, chain, (person, other), relative, decoy))
            blocks[3].append(Line(3, chain, (relative,), next(countries), decoy))
    place = {word: at for at, word in enumerate(PERSONS + PROFESSIONS)}
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


def variable_name(number: int) -> str:
    """The variable with this number, counted from 0; after z come aa, ab, …

    >>> [variable_name(number) for number in (0, 25, 26, 27, 702)]
    ['a', 'z', 'aa', 'ab', 'aaa']
    """
    name = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        name = chr(ord("a") + digit) + name
    return name


def first_name(number: int) -> str:
    """The name with this number, counted from 0.

    >>> [first_name(number) for number in (0, 103, 104, 208)]
    ['Alice', 'Zachary', 'Alice II', 'Alice III']
    """
    generation, place = divmod(number, len(FIRST_NAMES))
    return FIRST_NAMES[place] + GENERATIONS[generation]
