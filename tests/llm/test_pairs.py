"""Minimal pairs as tokens: all but the words exchanged is the same; what cannot be is refused."""

from collections.abc import Callable

import pytest

from hopscope.configs import Prompts
from hopscope.errors import LlmError
from hopscope.facts import parse_role
from hopscope.llm.local import LocalModel
from hopscope.llm.pairs import pairs, role_table
from hopscope.llm.prompts import question

TWO = Prompts(formulation="equations", hops=2)


@pytest.fixture(scope="module")
def cut(planted: Callable[[bool], LocalModel]) -> LocalModel:
    return planted(True)


def test_pairs_differ_in_the_words_exchanged_alone(cut: LocalModel) -> None:
    table = role_table(TWO)
    places = {
        "x0": {"key 0", "query"}, "x1": {"value 0", "key 1"}, "x2": {"value 1"},
        "x1…": {"value 0"},
    }  # fmt: skip
    found = pairs(cut, TWO, 0, 0, 6)
    assert [its.index for its in found] == list(range(6))
    for its in found:
        for name, donor in its.donors.items():
            changed = [n for n, (a, b) in enumerate(zip(its.tokens, donor, strict=True)) if a != b]
            assert {str(table[its.roles[n]]) for n in changed} == places[name]
            assert {its.chains[n] for n in changed} == {0, 1}
        assert len({its.answers.own, *its.answers.others.values()}) == 2
        for name in its.donors:
            assert len(its.answers.thirds(name)) == 2


def test_every_token_has_its_role(cut: LocalModel) -> None:
    table, asked = role_table(TWO), question(TWO, 0, 1)
    (its,) = pairs(cut, TWO, 0, 1, 1)
    words = [cut.tokenizer.decode([token]) for token in its.tokens]
    told = [
        (word, str(table[role]))
        for word, role, chain in zip(words, its.roles, its.chains, strict=True)
        if chain == 0 and table[role].kind in ("key", "value", "query", "answer")
    ]
    symbols = [(asked.prompt[s.start : s.end], str(s.role)) for s in asked.spans
               if s.chain == asked.chain]  # fmt: skip
    assert told == [*symbols, (":", "answer")]
    lines = [word for word, role in zip(words, its.roles, strict=True)
             if table[role] == parse_role("line 1")]  # fmt: skip
    assert lines == ["=", "\n"] * 4


def test_an_opening_has_a_role_of_its_own(cut: LocalModel) -> None:
    opened = TWO.model_copy(update={"opening": True})
    (its,) = pairs(cut, opened, 0, 0, 1)
    assert len(its.candidates["x1"]) == len(its.candidates["x2"]) == 4
    table = role_table(opened)
    words = [cut.tokenizer.decode([token]) for token in its.tokens]
    told = [
        word for word, role in zip(words, its.roles, strict=True) if str(table[role]) == "opening"
    ]
    assert told[1:4] == ["value", "of", words[its.roles.index(table.index(parse_role("query")))]]
    assert str(table[its.roles[-1]]) == "answer"


THREE = Prompts(formulation="equations", hops=2, chains=3)
REFUSED = [
    ("letters", "a b|c|d e f|g|h|a", "into different numbers of tokens; expected"),
    ("numbers", "0|1 2|3 0 1", "planted's tokenizer cuts '[^']*' into . tokens and '[^']*'"),
    ("numbers", "0 1 2|0 1 3|0 2 2", "the answers '0 1 3' and '0 1 2' begin with the same"),
]


def test_what_cannot_be_paired_is_one_line_and_another_partner_is_taken(
    cut: LocalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind, text, why in REFUSED:
        words = text.split("|")
        with monkeypatch.context() as changed:
            if kind == "letters":
                changed.setattr("hopscope.llm.words.letters", words.__getitem__)
            else:
                changed.setattr("hopscope.llm.drawing._numbers", lambda _, its=words: its)
            with pytest.raises(
                LlmError, match=f"0 of 8 questions of equations-d2-n3 .*{why}"
            ) as no:
                pairs(cut, THREE, 0, 0, 2)
            assert len(str(no.value).splitlines()) == 1
    # A name of two tokens: its chain is nobody's partner, and is not asked about.
    words = ["a b", "c", "d", "e", "f", "g"]
    monkeypatch.setattr("hopscope.llm.words.letters", words.__getitem__)
    found = pairs(cut, THREE, 0, 0, 4)
    assert len(found) == 4
    assert [its.index for its in found] != list(range(4))
