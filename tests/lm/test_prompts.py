"""Questions in words: against a solver that reads only their text, and against the printed ones.

The text of the five examples of Musat (ICLR 2025), appendix A, is not repeated here: the SHA-256 of
what is rendered from their facts is compared with that of what is printed.
"""

import hashlib
import re
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from solving import solved

from hopscope.configs.prompts import FORMULATIONS, MOST_CHAINS, Prompts
from hopscope.facts import Role
from hopscope.lm import drawing as words
from hopscope.lm.drawing import Line, QuestionLines, draw
from hopscope.lm.prompts import Question, question, questions, render


@st.composite
def any_prompts(draws: st.DrawFn) -> Prompts:
    name = draws(st.sampled_from(sorted(FORMULATIONS.values())))
    chains = draws(st.integers(2, min(MOST_CHAINS.get(name, 7), 9)))
    linear = name in ("equations", "lives-with")
    hops = draws(st.none() | st.integers(1, 20)) if linear else None
    return Prompts(formulation=name, hops=hops, chains=chains)


SEEDS = st.integers(0, 2**32)
INDICES = st.integers(0, 10**6)


@given(any_prompts(), SEEDS, INDICES)
def test_the_text_leads_to_the_correct_answer(prompts: Prompts, seed: int, index: int) -> None:
    asked = question(prompts, seed, index)
    assert solved(asked.prompt) == asked.correct
    assert asked.correct in asked.acceptable
    assert len(set(asked.acceptable)) == len(asked.acceptable)
    answers = 4 * prompts.chains if prompts.formulation == "relatives" else prompts.chains
    assert len(asked.acceptable) == answers
    assert asked.index == index


FORMS = (
    lambda word: word,
    str.capitalize,
    lambda word: f"{word}s",
    lambda word: f"{word}s".capitalize(),
    lambda word: f"{word}ns",
    lambda word: re.sub("ism$", "ists", word).capitalize(),
)
"""How a word may be inflected where it is printed."""


@given(any_prompts(), SEEDS)
def test_every_symbol_has_a_span_with_its_role(prompts: Prompts, seed: int) -> None:
    drawn = draw(prompts, seed % prompts.chains, Random(seed))
    asked = render(prompts, drawn, 0)
    found = drawn.words(prompts.graph())
    known = enumerate(prompts.graph().known)
    lines = [*map(_told, drawn.lines), {Role("query", slot): found[name] for slot, name in known}]
    chains = [*(line.chain for line in drawn.lines), drawn.chain]
    for span in asked.spans:
        number = asked.prompt.count("\n", 0, span.start)
        word = lines[number].pop(span.role)
        assert asked.prompt[span.start : span.end] in {form(word) for form in FORMS}
        assert span.chain == chains[number]
    assert not any(lines)


def _told(line: Line) -> dict[Role, str]:
    decoy = "decoy " if line.decoy else ""
    keys = {Role(f"{decoy}key", line.fact, slot): key for slot, key in enumerate(line.keys)}
    return {**keys, Role(f"{decoy}value", line.fact): line.value}


def test_a_question_depends_on_its_seed_and_number_alone() -> None:
    """Results on disk are compared with questions drawn again: a change here needs a new name."""
    prompts = [question(Prompts(formulation=short), 0, 0).prompt for short in FORMULATIONS]
    digest = hashlib.sha256("\n\n".join(prompts).encode()).hexdigest()[:12]
    assert digest == "8cc46a73233d"
    relatives = Prompts(formulation="relatives")
    asked = questions(relatives, 7, 5)
    assert asked == [question(relatives, 7, index) for index in range(5)]
    assert len({one.prompt for one in asked}) == 5
    assert asked[0].prompt != question(relatives, 8, 0).prompt


@pytest.mark.parametrize("name", FORMULATIONS.values())
def test_neither_words_nor_places_tell_the_chain(name: str) -> None:
    """Every chain is asked about equally often, and every answer, and every place of the answer, is
    about as frequent.
    """
    asked = questions(Prompts(formulation=name), 0, 240)
    assert set(Counter(one.chain for one in asked).values()) == {60}
    assert all(one.spans[-1].chain == one.chain for one in asked)
    answers = Counter(one.correct for one in asked)
    assert len(answers) == len(asked[0].acceptable)
    expected = len(asked) / len(answers)
    assert all(expected / 2 < times < 2 * expected for times in answers.values())
    places = Counter(_place(one) for one in asked)
    assert all(times < 3 * len(asked) / len(places) for times in places.values())
    assert len(places) == (16 if name in ("functions", "relatives") else 4)


def _place(asked: Question) -> int:
    """The line with the answer."""
    last = max(span.role.fact for span in asked.spans if span.role.kind == "value")
    places = [
        asked.prompt.count("\n", 0, span.start)
        for span in asked.spans
        if span.role == Role("value", last) and span.chain == asked.chain
    ]
    return places[0]


def test_the_largest_question_has_words_enough_and_relatives_names_of_their_sex() -> None:
    largest = question(Prompts(formulation="lives-with", hops=20, chains=26), 0, 0)
    assert solved(largest.prompt) == largest.correct
    for line in draw(Prompts(formulation="relatives"), 0, Random(0)).lines:
        if line.fact == 2:
            assert line.value in (words.WOMEN if line.keys[1] in words.FEMALE else words.MEN)


def linear(*blocks: str) -> tuple[Line, ...]:
    """Lines from blocks of "key value, …", last hop first; a chain is named by its answer."""
    chains: dict[str, int] = {}
    lines = []
    for fact, block in zip(reversed(range(len(blocks))), blocks, strict=True):
        for key, value in (pair.split() for pair in block.split(", ")):
            chains[key] = chains.get(value, len(chains))
            lines.append(Line(fact, chains[key], (key,), value))
    return tuple(lines)


EQUATIONS = linear(
    "b 2, c 3, d 0, a 1", "e b, g a, h d, f c", "k e, i f, l g, j h", "n k, p l, o i, m j",
    "q n, s p, r o, t m",
)  # fmt: skip
LIVES_WITH = linear(
    "Charlie Cairo, David Delhi, Alice Berlin, Bob Amsterdam",
    "Henry David, Eve Charlie, Frank Alice, Grace Bob",
    "Kate Grace, Larry Frank, Jack Eve, Isabelle Henry",
    "Mary Jack, Olivia Isabelle, Nick Kate, Peter Larry",
    "Rose Peter, Queen Nick, Tom Olivia, Sam Mary",
)
KINGDOMS = linear(
    "Silvania Bob, Novaria Alice, Aurora Charlie, Florinia David",
    "celestianism Silvania, harmonianism Novaria, elysianism Aurora, luminism Florinia",
    "beef luminism, pork elysianism, lamb harmonianism, chicken celestianism",
    "Astralyte beef, Nephryon chicken, Zephyrium lamb, Virellium pork",
    "Chronogy Zephyrium, Aetherflux Astralyte, Somnosis Virellium, Synthemia Nephryon",
)


def functions() -> tuple[Line, ...]:
    aliases, variables, numbers = ("bacd", "jikl", "2031")  # of the chains of e, f, g, h
    tables = [
        Line(
            2, aliases.index(name), (name, str(at)), value, str(at) != numbers[aliases.index(name)]
        )
        for name, table in zip("abcd", ("3201", "1320", "1032", "1023"), strict=True)
        for at, value in enumerate(table)
    ]
    names = [Line(0, chain, ("efgh"[chain],), name) for chain, name in enumerate(aliases)]
    where = [(variables.index(variable), variable) for variable in "ijkl"]
    return (*tables, *names, *(Line(1, chain, (name,), numbers[chain]) for chain, name in where))


def relatives() -> tuple[Line, ...]:
    families = (
        ("John", "Jane Olivia Ed Mike"), ("Chris", "Penny Dana Adam George"),
        ("Diana", "Nancy Isabelle Hank Bob"), ("Eve", "Lily Cathy Fred Kevin"),
    )  # fmt: skip
    homes = (
        "Penny Canada, Lily Brazil, Isabelle France, Cathy Kenya, George Italy, Adam Mexico, "
        "Kevin Peru, Ed Laos, Hank Germany, Mike Japan, Jane England, Fred Hungary, Dana Norway, "
        "Olivia Qatar, Bob Denmark, Nancy Argentina"
    )
    jobs = ("doctor", "engineer", "teacher", "lawyer")
    goes_to = {"doctor": "brother", "lawyer": "mother", "teacher": "sister", "engineer": "father"}
    family = [
        Line(2, chain, (person, relation), relative, relation != goes_to[jobs[chain]])
        for chain, (person, names) in enumerate(families)
        for relation, relative in zip(words.RELATIONS, names.split(), strict=True)
    ]
    of = {line.value: line for line in family}
    home = [
        Line(3, of[name].chain, (name,), country, of[name].decoy)
        for name, country in (pair.split() for pair in homes.split(", "))
    ]
    rules = [Line(1, jobs.index(job), (job,), relation) for job, relation in goes_to.items()]
    work = [Line(0, chain, (families[chain][0],), job) for chain, job in enumerate(jobs)]
    return (*home, *family, *rules, *work)


PRINTED = {
    "f1": (EQUATIONS, 3, "df697891164a249538f606a8f3f7a0248a1116031fd59f22ccd774936e570ce9", "1"),
    "f2": (
        LIVES_WITH, 2, "6bf382cdc2c708a161b8b1dfeb8b9351aa9334c74e222b9b704e771cea5af906", "Berlin",
    ),
    "f3": (
        KINGDOMS, 1, "d23ee4cff23ce1c33cc6db58e519d65f29c00d74f9af9a9292b53c52c2b08ad3", "Alice",
    ),
    "f4": (functions(), 1, "42c641cb23fa56268d4479889f02973880c1bc6f04c47290d2fcef87cf0daf45", "3"),
    "f5": (
        relatives(), 3,
        "2aac76346e84b488c94e2ce41c2ec72af710a046123d535e6a9888eaf2d76ef9", "Brazil",
    ),
}  # fmt: skip
"""Of each example of appendix A: its facts, the chain asked about, its SHA-256, its answer."""

ACCEPTABLE = {
    "f1": "0 1 2 3",
    "f2": "Amsterdam Berlin Cairo Delhi",
    "f3": "Alice Bob Charlie David",
    "f4": "0 1 2 3",
    "f5": "Argentina Brazil Canada Denmark England France Germany Hungary Italy Japan Kenya Laos "
    "Mexico Norway Peru Qatar",
}


def test_the_printed_examples_follow_from_their_facts() -> None:
    for short, (lines, chain, digest, correct) in PRINTED.items():
        asked = render(Prompts(formulation=short), QuestionLines(lines, chain), 0)
        assert hashlib.sha256(asked.prompt.encode()).hexdigest() == digest
        assert (asked.correct, asked.acceptable) == (correct, tuple(ACCEPTABLE[short].split()))


def test_a_drawn_question_has_the_facts_of_the_printed_one() -> None:
    """The same words in the same blocks; only which goes with which, and where, is random."""
    for short, (lines, chain, *_) in PRINTED.items():
        drawn = draw(Prompts(formulation=short), chain, Random(0))
        assert _blocks(drawn.lines) == _blocks(lines), short


def _blocks(lines: tuple[Line, ...]) -> tuple[object, ...]:
    keys = Counter((line.fact, *line.keys) for line in lines)
    return [line.fact for line in lines], keys, Counter((line.fact, line.value) for line in lines)
