"""A question, and the same with one symbol exchanged between two chains; no token, no model here.

Two kinds of exchange, both of the words that the chain asked about and a partner have for a
symbol:

    x1    wherever they stand: value of one fact, key of the next. The answer stays the same; who
          takes the one for the other while all else stays as it is answers for the partner.
    x1…   in the value of its fact alone: from there on the chain is the partner's, and so is the
          answer.

Of what the question gives there is the first kind alone; of the last symbol both are the same.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from hopscope.configs.prompts import Prompts
from hopscope.facts import FactGraph
from hopscope.llm.drawing import Drawn, Line

Place = tuple[str, int, int]
"""Kind (key or value), number of the fact, slot."""
ON = "…"
"""Behind the name of a symbol: its fact's value alone is exchanged."""


@dataclass(frozen=True)
class Exchange:
    """What the donor of one exchange tells, and what its answer is."""

    name: str
    told: Drawn
    words: tuple[str, str]
    """The two words that change places, that of the chain asked about first."""
    answer: str
    """The answer of whoever takes the partner's symbol for the chain's own."""


def names(prompts: Prompts) -> tuple[str, ...]:
    """Every exchange that there is in these questions."""
    graph = prompts.graph()
    between = [fact.value for fact in graph.facts[:-1]]
    return (*graph.symbols, *(f"{symbol}{ON}" for symbol in between))


def proving(prompts: Prompts) -> tuple[str, ...]:
    """The exchanges after which the answer is the partner's: one for each fact."""
    graph = prompts.graph()
    return (*(f"{fact.value}{ON}" for fact in graph.facts[:-1]), graph.facts[-1].value)


def own_answer(graph: FactGraph, drawn: Drawn) -> str:
    """The answer to a question, by following its lines."""
    return _followed(graph, drawn.lines, _known(graph, drawn.words(graph)))


def exchanges(prompts: Prompts, drawn: Drawn, partner: int) -> Iterator[Exchange]:
    """Every exchange with a partner; none whose words are the same."""
    graph = prompts.graph()
    own, other = (replace(drawn, chain=chain).words(graph) for chain in (drawn.chain, partner))
    for name in names(prompts):
        symbol = name.removesuffix(ON)
        words = own[symbol], other[symbol]
        places = _places(graph, symbol)
        value = {place for place in places if place[0] == "value"}
        known = _known(graph, own)
        if value:
            answer = _followed(graph, _exchanged(drawn.lines, value, words), known)
        else:
            answer = _followed(graph, drawn.lines, {**known, symbol: words[1]})
        lines = _exchanged(drawn.lines, value if name.endswith(ON) else places, words)
        yield Exchange(name, replace(drawn, lines=lines), words, answer)


def _known(graph: FactGraph, words: Mapping[str, str]) -> dict[str, str]:
    return {name: words[name] for name in graph.known}


def _places(graph: FactGraph, symbol: str) -> set[Place]:
    """Where a symbol stands, line by line."""
    found: set[Place] = set()
    for number, fact in enumerate(graph.facts):
        found |= {("key", number, slot) for slot, key in enumerate(fact.keys) if key == symbol}
        found |= {("value", number, 0)} if fact.value == symbol else set()
    return found


def _exchanged(
    lines: tuple[Line, ...], places: set[Place], words: tuple[str, str]
) -> tuple[Line, ...]:
    """The lines with two words exchanged at some places, decoys too."""
    swap = dict(zip(words, reversed(words), strict=True))

    def at(kind: str, fact: int, slot: int, word: str) -> str:
        return swap.get(word, word) if (kind, fact, slot) in places else word

    return tuple(
        replace(
            line,
            keys=tuple(at("key", line.fact, slot, key) for slot, key in enumerate(line.keys)),
            value=at("value", line.fact, 0, line.value),
        )
        for line in lines
    )


def _followed(graph: FactGraph, lines: tuple[Line, ...], known: Mapping[str, str]) -> str:
    """The answer to what is known, by looking up line after line."""
    table = {(line.fact, line.keys): line.value for line in lines}
    found = dict(known)
    for number, fact in enumerate(graph.facts):
        found[fact.value] = table[number, tuple(found[key] for key in fact.keys)]
    return found[graph.facts[-1].value]
