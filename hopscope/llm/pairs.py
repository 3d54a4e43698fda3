"""Minimal pairs of questions as tokens: a question, its donors, and the role of every token.

A pair is refused where the exchange would change more than the words exchanged: where a tokenizer
cuts two words, or two answers, into different numbers of tokens, or an article follows a word.
Then another partner is tried, and where none is left, another question.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from hopscope.configs.prompts import Prompts
from hopscope.errors import LlmError
from hopscope.facts import Role
from hopscope.llm.drawing import Drawn
from hopscope.llm.exchange import Exchange, exchanges, own_answer
from hopscope.llm.heads import ANSWER
from hopscope.llm.local import LocalModel, Tokens
from hopscope.llm.prompts import Question, drawn, question, render

OPENING, OTHER = Role("opening"), Role("other")
LOOKED = 4
"""Questions that are looked at for each that is wanted, before the search for pairs ends."""


@dataclass(frozen=True)
class Answers:
    """The first tokens of answers that differ; what they begin with in common is in the prompt."""

    own: int
    others: Mapping[str, int]
    """For each exchange, the partner's answer."""
    acceptable: tuple[int, ...]

    def thirds(self, name: str) -> tuple[int, ...]:
        """The answers of chains that have no part in an exchange."""
        return tuple(n for n in self.acceptable if n not in (self.own, self.others[name]))


@dataclass(frozen=True)
class Paired:
    """One question and its donors, all of the same length, different in the words exchanged."""

    index: int
    tokens: Tokens
    donors: Mapping[str, Tokens]
    roles: tuple[int, ...]
    """The role of each token, by its number in `role_table`."""
    chains: tuple[int, ...]
    """The chain of each token: 0 is asked about, 1 is the partner."""
    answers: Answers
    candidates: Mapping[str, tuple[int, ...]]
    """For each symbol of the chain, its token, then those of the other chains."""


@cache
def role_table(prompts: Prompts) -> tuple[Role, ...]:
    """The roles of tokens: those of the facts, the rest of each fact's line, and what asks."""
    spans = {span.role for span in question(prompts, 0, 0).spans}
    decoys = sorted(role for role in spans if role.kind.startswith("decoy"))
    lines = [line_role(number) for number, _ in enumerate(prompts.graph().facts)]
    opening = [OPENING] if prompts.opening else []
    return (*prompts.graph().roles, *decoys, *lines, *opening, OTHER, ANSWER)


def line_role(fact: int) -> Role:
    """What stands in the line of a fact beside its symbols, with the end of the line."""
    return Role("line", fact)


def pairs(local: LocalModel, prompts: Prompts, seed: int, start: int, count: int) -> list[Paired]:
    """So many pairs, of the first questions from `start` on that can be paired."""
    found: list[Paired] = []
    why = ""
    for index in range(start, start + LOOKED * count):
        if len(found) == count:
            return found
        for tried in _tried(local, prompts, seed, index):
            if isinstance(tried, Paired):
                found.append(tried)
                break
            why = why or tried
    if len(found) < count:
        raise LlmError(
            f"{len(found)} of {LOOKED * count} questions of {prompts.label} can be paired, and "
            f"{count} are needed: {why}"
        )
    return found


def _tried(local: LocalModel, prompts: Prompts, seed: int, index: int) -> Iterator[Paired | str]:
    """The question paired with one chain after the other, or why it cannot be."""
    told = drawn(prompts, seed, index)
    for step in range(1, prompts.chains):
        partner = told.chain + 1 + (index // prompts.chains + step) % (prompts.chains - 1)
        yield _paired(local, prompts, told, index, partner % prompts.chains)


def _paired(
    local: LocalModel, prompts: Prompts, told: Drawn, index: int, partner: int
) -> Paired | str:
    own, right = render(prompts, told, index), own_answer(prompts.graph(), told)
    made = list(exchanges(prompts, told, partner))
    spelled = {a: local.spellings(_text(local, own), a)[0] for a in own.acceptable}
    common = _common(list(spelled.values()))
    if why := _unlike(local.name, made, right, spelled, len(common)):
        return why
    tokens, roles, chains = _cut(local, prompts, own, partner, common)
    donors = {}
    for each in made:
        other = _cut(local, prompts, render(prompts, each.told, index), partner, common)
        if why := _more_than_words(local.name, each, (tokens, roles), other[:2], prompts):
            return why
        donors[each.name] = other[0]
    first = {answer: its[len(common)] for answer, its in spelled.items()}
    answers = Answers(first[right], {e.name: first[e.answer] for e in made}, tuple(first.values()))
    candidates = _candidates(prompts, tokens, roles, chains, answers)
    return Paired(index, tokens, donors, roles, chains, answers, candidates)


def _common(spelled: Sequence[Tokens]) -> Tokens:
    """What all answers begin with."""
    most = min(map(len, spelled))
    alike = (n for n in range(most) if len({its[n] for its in spelled}) > 1)
    return spelled[0][: next(alike, most)]


def _unlike(
    name: str, made: list[Exchange], right: str, spelled: Mapping[str, Tokens], common: int
) -> str:
    """Why some answers cannot be held against each other; nothing if they can."""
    if right not in spelled or any(each.answer not in spelled for each in made):
        return "an exchange leads to an answer that is not among the acceptable ones"
    for each in made:
        if each.answer == right:
            return f"the exchange of {each.name} leaves the answer {right!r}"
        if len(spelled[each.answer]) != len(spelled[right]):
            return (
                f"{name}'s tokenizer cuts {right!r} into {len(spelled[right])} tokens and "
                f"{each.answer!r} into {len(spelled[each.answer])}; expected as many"
            )
    heads: dict[int, str] = {}
    for answer, its in spelled.items():
        if len(its) == common or its[common] in heads:
            twin = heads.get(its[common]) if len(its) > common else "another"
            return f"the answers {answer!r} and {twin!r} begin with the same tokens"
        heads[its[common]] = answer
    return ""


def _more_than_words(
    name: str,
    made: Exchange,
    own: tuple[Tokens, tuple[int, ...]],
    donor: tuple[Tokens, tuple[int, ...]],
    prompts: Prompts,
) -> str:
    """Why a donor is not the question with two words exchanged; nothing if it is."""
    one, other = made.words
    if len(own[0]) != len(donor[0]) or own[1] != donor[1]:
        return (
            f"{name}'s tokenizer cuts {one!r} and {other!r} into different numbers of tokens; "
            "expected as many, so that all else stays in its place"
        )
    table = role_table(prompts)
    spare = {table.index(role) for role in table if role.kind in ("line", "other", "answer")}
    changed = (role for role, a, b in zip(own[1], own[0], donor[0], strict=True) if a != b)
    if spare & set(changed):
        return f"to exchange {one!r} and {other!r} changes what stands beside them"
    return ""


def _text(local: LocalModel, asked: Question) -> str:
    return local.text(asked.prompt, asked.opening)


def _cut(
    local: LocalModel, prompts: Prompts, asked: Question, partner: int, common: Tokens
) -> tuple[Tokens, tuple[int, ...], tuple[int, ...]]:
    """The tokens of a question, with the role and the chain of each."""
    text, table = _text(local, asked), role_table(prompts)
    begin = text.index(asked.prompt)
    opening = len(text) - len(asked.opening) if asked.opening else len(text)
    cut = local.tokenizer(
        text, add_special_tokens=local.template == "raw", return_offsets_mapping=True
    )
    order = {asked.chain: 0, partner: 1}
    for chain in range(prompts.chains):
        order.setdefault(chain, len(order))
    places = _lines(asked)
    marked = [(s.start, s.end, s.role, order[s.chain]) for s in asked.spans]
    marked += [(start, end, line_role(fact), order[chain]) for start, end, fact, chain in places]
    found = []
    for first, last in cut["offset_mapping"]:
        inside = [
            (role, chain)
            for start, end, role, chain in marked
            if first - begin < end and last - begin > start
        ]
        plain = (OPENING if last > opening else OTHER, 0)
        found.append(inside[0] if inside else plain)
    found += [(OPENING if prompts.opening else OTHER, 0)] * len(common)
    found[-1] = (ANSWER, 0)
    tokens = (*cut["input_ids"], *common)
    return tokens, tuple(table.index(role) for role, _ in found), tuple(c for _, c in found)


def _lines(asked: Question) -> list[tuple[int, int, int, int]]:
    """Start and end of every line that tells a fact, with the fact and its chain."""
    found, start = [], 0
    for line in asked.prompt.split("\n")[:-1]:
        end = start + len(line) + 1
        its = next(span for span in asked.spans if start <= span.start < end)
        role = max((s.role.fact for s in asked.spans if start <= s.start < end), default=0)
        found.append((start, end, role, its.chain))
        start = end
    return found


def _candidates(
    prompts: Prompts,
    tokens: Tokens,
    roles: tuple[int, ...],
    chains: tuple[int, ...],
    answers: Answers,
) -> dict[str, tuple[int, ...]]:
    """How every symbol is written in each chain: its first token, where it is a value."""
    graph, table = prompts.graph(), role_table(prompts)
    last = graph.facts[-1].value
    found = {last: (answers.own, *(t for t in answers.acceptable if t != answers.own))}
    for number, fact in enumerate(graph.facts[:-1]):
        role = table.index(Role("value", number))
        first: dict[int, int] = {}
        for token, its, chain in zip(tokens, roles, chains, strict=True):
            if its == role:
                first.setdefault(chain, token)
        found[fact.value] = tuple(first[chain] for chain in sorted(first))
    return {name: found[name] for name in graph.symbols if name in found}
