"""The five printed examples of Musat (ICLR 2025), appendix A, told again from their facts.

Their text is not repeated here: the SHA-256 of what is rendered is compared with that of what
is printed, its lines joined by newlines.
"""

import hashlib
from collections import Counter
from random import Random

from hopscope.configs.prompts import Prompts
from hopscope.llm import words
from hopscope.llm.drawing import Drawn, Line, draw
from hopscope.llm.prompts import render


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
        asked = render(Prompts(formulation=short), Drawn(lines, chain), 0)
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
