"""Fact graphs as questions in words: Musat (ICLR 2025), appendix A.

A question is drawn (`hopscope.llm.drawing`), then worded here. The wording knows where each
symbol is printed and which role it has there, so that what a language model attends to can be
read with the same roles as the attention of a model trained here.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from string import Formatter

from hopscope.configs.prompts import Prompts
from hopscope.facts import FactGraph, Kind, Role
from hopscope.llm.drawing import Drawn, Line, draw

WORDING = {
    "equations": ("{key0} = {value}",),
    "lives-with": ("{key0} lives with {value}", "{key0} lives in {value}"),
    "kingdoms": (
        "{value} causes {key0}.",
        "{value:capital} contains {key0}.",
        "{value:believers} eat {key0}.",
        "{value:people} believe in {key0}.",
        "{value} lives in {key0}.",
    ),
    "functions": ("{key0} = {value}", "{key0} = {value}", "{key0}({key1}) = {value}"),
    "relatives": (
        "{key0} works as {article} {value}.",
        "{key0:capital plural} live with their {value:plural}.",
        "{key0:plural} {key1} is {value}.",
        "{key0} lives in {value}.",
    ),
}
"""The wording of each fact; the first one again for every hop that a longer chain has before."""

ASKING = {
    "equations": "What is the value of {query0}? "
    "Say directly only the numeric value, without any other words.",
    "lives-with": "Where does {query0} live? "
    "Say directly only the name of the city, without any other words.",
    "kingdoms": "Who has {query0}? Say directly the name without other words.",
    "functions": "What is the value of {query0}({query1})? "
    "Say directly only the numeric value, without any other words.",
    "relatives": "Where does {query0} live? Say directly only the name, without any other words.",
}

OPENING = {
    "equations": "The value of {query0} is",
    "lives-with": "{query0} lives in",
    "kingdoms": "The person who has {query0} is",
    "functions": "The value of {query0}({query1}) is",
    "relatives": "{query0} lives in",
}
"""The beginning of a sentence that answers; ours, the paper gives none."""

INFLECTIONS: dict[str, Callable[[str], str]] = {
    "": str,
    "capital": str.capitalize,
    "plural": lambda noun: f"{noun}s",  # also the genitive: the paper writes no apostrophe
    "capital plural": lambda noun: f"{noun.capitalize()}s",
    "people": lambda kingdom: f"{kingdom}ns",
    "believers": lambda religion: f"{religion.removesuffix('m').capitalize()}ts",
}


@dataclass(frozen=True)
class Span:
    """Where a symbol is printed: `prompt[start:end]`, inflected as it is there."""

    start: int
    end: int
    role: Role
    chain: int


@dataclass(frozen=True)
class Question:
    """A prompt, its answer, and the answers that are no mere chatter (appendix A)."""

    prompt: str
    correct: str
    acceptable: tuple[str, ...]
    spans: tuple[Span, ...]
    """All symbols in the order of the prompt."""
    chain: int
    """The number of the chain that the question asks about."""
    index: int
    opening: str = ""
    """What the answer begins with, given to the model as its own words."""


def questions(prompts: Prompts, seed: int, count: int = 500) -> list[Question]:
    """The first questions of this seed (§4: 500)."""
    return [question(prompts, seed, index) for index in range(count)]


def question(prompts: Prompts, seed: int, index: int) -> Question:
    """Question number `index`, the same whatever the count; chains are asked about in turn."""
    return render(prompts, drawn(prompts, seed, index), index)


def drawn(prompts: Prompts, seed: int, index: int) -> Drawn:
    """The lines of question number `index`."""
    asked = prompts.model_dump(mode="json", exclude={"opening"})  # the same, however answered
    kind = json.dumps(asked, sort_keys=True, separators=(",", ":"))
    identity = json.dumps([kind, seed, index])
    rng = Random(hashlib.sha256(identity.encode()).digest())  # noqa: S311 - nothing secret here
    return draw(prompts, index % prompts.chains, rng)


def render(prompts: Prompts, told: Drawn, index: int) -> Question:
    """The question that tells these lines."""
    graph = prompts.graph()
    found = told.words(graph)
    text, spans = "", list[Span]()
    for template, symbols, chain in _sentences(prompts, told):
        sentence, printed = _printed(template, symbols)
        spans += [
            Span(len(text) + start, len(text) + end, role, chain) for start, end, role in printed
        ]
        text += f"{sentence}\n"
    last = len(graph.facts) - 1
    answers = {line.value for line in told.lines if line.fact == last}
    return Question(
        prompt=text.removesuffix("\n"),
        correct=found[graph.facts[last].value],
        acceptable=tuple(sorted(answers, key=_as_number_or_word)),
        spans=tuple(spans),
        chain=told.chain,
        index=index,
        opening=_printed(OPENING[prompts.formulation], _known(graph, found))[0]
        if prompts.opening
        else "",
    )


Symbols = dict[str, tuple[str, Role]]
"""For each field of a template, the word before its inflection, and its role."""


def _sentences(prompts: Prompts, drawn: Drawn) -> Iterator[tuple[str, Symbols, int]]:
    """Template, symbols and chain of every line, the question last."""
    graph = prompts.graph()
    wording = WORDING[prompts.formulation]
    by_fact = [*[wording[0]] * len(graph.facts), *wording][-len(graph.facts) :]
    for line in drawn.lines:
        article = "an" if line.value[0] in "aeiou" else "a"
        yield by_fact[line.fact].replace("{article}", article), _symbols(line), line.chain
    yield ASKING[prompts.formulation], _known(graph, drawn.words(graph)), drawn.chain


def _known(graph: FactGraph, found: dict[str, str]) -> Symbols:
    """What the question gives."""
    return {
        f"query{slot}": (found[name], Role("query", slot)) for slot, name in enumerate(graph.known)
    }


def _symbols(line: Line) -> Symbols:
    key: Kind = "decoy key" if line.decoy else "key"
    value: Kind = "decoy value" if line.decoy else "value"
    symbols = {
        f"key{slot}": (word, Role(key, line.fact, slot)) for slot, word in enumerate(line.keys)
    }
    return symbols | {"value": (line.value, Role(value, line.fact))}


def _printed(template: str, symbols: Symbols) -> tuple[str, list[tuple[int, int, Role]]]:
    """A sentence, and where it prints which role."""
    text = ""
    spans = []
    for between, field, inflection, _ in Formatter().parse(template):
        text += between
        if field is not None:
            word, role = symbols[field]
            start = len(text)
            text += INFLECTIONS[inflection or ""](word)
            spans.append((start, len(text), role))
    return text, spans


def _as_number_or_word(answer: str) -> tuple[int, str]:
    return (int(answer) if answer.isdigit() else 0, answer)
