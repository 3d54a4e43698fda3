"""Fact graphs as questions in words (Musat, ICLR 2025, appendix A), and when a text answers them.

`hopscope.lm.drawing` draws a question; this module gives it words. The place and role of each
printed symbol are recorded, so that the attention of language models and of models trained here is
described by the same roles.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from string import Formatter

from hopscope.configs.prompts import Prompts
from hopscope.facts import Role, RoleKind
from hopscope.lm.drawing import Line, QuestionLines, draw

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
"""The wording of each fact; in a longer chain the first wording is also used for earlier hops."""

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
"""The beginning of a sentence that answers the question; it is ours, not the paper's."""

INFLECTIONS: dict[str, Callable[[str], str]] = {
    "": str,
    "capital": str.capitalize,
    "plural": lambda noun: f"{noun}s",  # also the genitive: the paper has no apostrophe
    "capital plural": lambda noun: f"{noun.capitalize()}s",
    "people": lambda kingdom: f"{kingdom}ns",
    "believers": lambda religion: f"{religion.removesuffix('m').capitalize()}ts",
}


@dataclass(frozen=True)
class SymbolSpan:
    """The place of a printed symbol with its inflection: `prompt[start:end]`."""

    start: int
    end: int
    role: Role
    chain: int


@dataclass(frozen=True)
class Question:
    """A prompt, its answer, and all acceptable answers (appendix A)."""

    prompt: str
    correct: str
    acceptable: tuple[str, ...]
    spans: tuple[SymbolSpan, ...]
    """All symbols in the order of the prompt."""
    chain: int
    """The number of the chain that the question asks about."""
    index: int
    opening: str = ""
    """The first words of the answer, put into the model's own text."""
    lines: tuple[SymbolSpan, ...] = ()
    """The line of each fact, with the end of the line."""


def raw_text(prompt: str, opening: str = "") -> str:
    """A prompt for a model without a chat template, with the beginning of its answer."""
    return f"{prompt}\nAnswer:{' ' * bool(opening)}{opening}"


def questions(prompts: Prompts, seed: int, count: int = 500) -> list[Question]:
    """The first questions of this seed (§4: 500)."""
    return [question(prompts, seed, index) for index in range(count)]


def question(prompts: Prompts, seed: int, index: int) -> Question:
    """Question number `index` of a seed; the chains are asked about in turn."""
    return render(prompts, question_lines(prompts, seed, index), index)


def question_lines(prompts: Prompts, seed: int, index: int) -> QuestionLines:
    """The lines of question number `index`."""
    asked = prompts.model_dump(mode="json", exclude={"opening"})  # the opening changes no question
    kind = json.dumps(asked, sort_keys=True, separators=(",", ":"))
    identity = json.dumps([kind, seed, index])
    rng = Random(hashlib.sha256(identity.encode()).digest())  # noqa: S311 - nothing secret here
    return draw(prompts, index % prompts.chains, rng)


def render(prompts: Prompts, drawn: QuestionLines, index: int) -> Question:
    """The question that prints these lines."""
    graph, name = prompts.graph(), prompts.formulation
    words, last = drawn.words(graph), len(graph.facts) - 1
    given = {
        f"query{role.fact}": (words[symbol], role)
        for symbol, role in zip(graph.known, graph.query_roles, strict=True)
    }
    wording = [*[WORDING[name][0]] * last, *WORDING[name]][-len(graph.facts) :]
    text, spans, lines = "", list[SymbolSpan](), list[SymbolSpan]()
    for line in drawn.lines:
        article = "an" if line.value[0] in "aeiou" else "a"
        template = wording[line.fact].replace("{article}", article)
        sentence, printed = _printed(template, _symbols(line), line.chain, len(text))
        spans += printed
        begin, text = len(text), f"{text}{sentence}\n"
        lines.append(SymbolSpan(begin, len(text), Role("line", line.fact), line.chain))
    ask, printed = _printed(ASKING[name], given, drawn.chain, len(text))
    answers = {line.value for line in drawn.lines if line.fact == last}
    return Question(
        prompt=text + ask,
        correct=words[graph.facts[last].value],
        acceptable=tuple(sorted(answers, key=_as_number_or_word)),
        spans=(*spans, *printed),
        chain=drawn.chain,
        index=index,
        opening=_printed(OPENING[name], given, drawn.chain)[0] if prompts.opening else "",
        lines=tuple(lines),
    )


Symbols = dict[str, tuple[str, Role]]
"""For each field of a template, the word before its inflection, and its role."""


def _symbols(line: Line) -> Symbols:
    """The fields of a fact's template."""
    key: RoleKind = "decoy key" if line.decoy else "key"
    value: RoleKind = "decoy value" if line.decoy else "value"
    symbols = {
        f"key{slot}": (word, Role(key, line.fact, slot)) for slot, word in enumerate(line.keys)
    }
    return symbols | {"value": (line.value, Role(value, line.fact))}


def _printed(
    template: str, symbols: Symbols, chain: int, begin: int = 0
) -> tuple[str, list[SymbolSpan]]:
    """Return a sentence and the spans of its symbols, for a sentence that starts at `begin`."""
    text, spans = "", []
    for between, field, inflection, _ in Formatter().parse(template):
        text += between
        if field is not None:
            word, role = symbols[field]
            start = begin + len(text)
            text += INFLECTIONS[inflection or ""](word)
            spans.append(SymbolSpan(start, begin + len(text), role, chain))
    return text, spans


def _as_number_or_word(answer: str) -> tuple[int, str]:
    return (int(answer) if answer.isdigit() else 0, answer)


ANSWER_RULES = """When a text is an answer, and which one: the same rules everywhere.

A text answers X if its first line and X are equal once case is ignored, signs that are neither a
letter nor a digit are taken off both ends ("**Berlin.**" is "berlin"), white space is single, and
one final "s" is taken off both ("Doctors" is "doctor"), with the signs before it ("Berlin's").
Nothing else is guessed: "The answer is 3" is no answer.
"""
ENDS = ("", ".")
"""Endings of the spellings whose probabilities are added up; others are much rarer."""


def first_line(text: str) -> str:
    """A text up to the end of its first line; blank lines before that one do not count.

    >>> first_line(" 3\\nFor a = 3."), first_line("\\n3\\n")
    (' 3', '\\n3')
    """
    stripped = text.lstrip()
    return text.removesuffix(stripped) + stripped.partition("\n")[0]


def normal(text: str) -> str:
    """A text by the rules above.

    >>> normal(' "Berlin." '), normal("Berlin's")
    ('berlin', 'berlin')
    """
    words = " ".join(text.casefold().split())
    kept = [number for number, sign in enumerate(words) if sign.isalnum()]
    if len(kept) > 1 and words[kept[-1]] == "s":
        kept.pop()
    return words[kept[0] : kept[-1] + 1] if kept else ""


def answered(text: str, acceptable: Iterable[str]) -> str | None:
    """The acceptable answer that a text gives, if it gives one."""
    line = normal(first_line(text))
    return next((answer for answer in acceptable if normal(answer) == line), None)


def forms(answer: str, text: str) -> Sequence[str]:
    """Return the spellings of an answer that are scored after a text.

    They begin with a space, unless the text ends with white space.

    >>> forms("Berlin", "Answer:"), forms("Berlin", "<assistant>\\n")
    ([' Berlin', ' Berlin.'], ['Berlin', 'Berlin.'])
    """
    space = "" if text[-1:].isspace() else " "
    return [f"{space}{answer}{end}" for end in ENDS]
