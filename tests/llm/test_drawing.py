"""Draws: which words every chain gets, and in which order its facts are told."""

from random import Random

import pytest

from hopscope.configs.prompts import FORMULATIONS, Prompts
from hopscope.llm import words
from hopscope.llm.drawing import draw
from hopscope.llm.prompts import question


def test_blocks_go_through_the_alphabet_backward() -> None:
    lines = draw(Prompts(formulation="equations", hops=8), 0, Random(0)).lines
    blocks = [{line.keys[0] for line in lines if line.fact == fact} for fact in reversed(range(8))]
    assert blocks[0] == set("abcd")
    assert blocks[6:] == [{"y", "z", "aa", "ab"}, {"ac", "ad", "ae", "af"}]
    assert {line.value for line in lines if line.fact == 7} == set("0123")


def test_tables_are_sorted_permutations() -> None:
    *lines, _ = question(Prompts(formulation="functions", chains=11), 0, 0).prompt.split("\n")
    assert [line.split(" = ")[0] for line in lines[:12]] == [
        *(f"a({at})" for at in range(11)),
        "b(0)",
    ]
    for name in "abcdefghijk":
        values = [line.split(" = ")[1] for line in lines if line.startswith(f"{name}(")]
        assert sorted(values, key=int) == [str(number) for number in range(11)]
    names = [line.split(" = ")[0] for line in lines[121:]]
    assert names == [words.letters(number) for number in range(11, 33)]


def test_mothers_and_sisters_have_the_names_of_women() -> None:
    for line in draw(Prompts(formulation="relatives"), 0, Random(0)).lines:
        if line.fact == 2:
            assert line.value in (words.WOMEN if line.keys[1] in words.FEMALE else words.MEN)


@pytest.mark.parametrize("name", FORMULATIONS.values())
def test_the_words_of_the_chain_asked_about_lead_along_its_graph(name: str) -> None:
    """Every fact of the graph is told once of each chain, with words that differ by chain."""
    prompts = Prompts(formulation=name)
    graph = prompts.graph()
    for chain in range(prompts.chains):
        drawn = draw(prompts, chain, Random(chain))
        found = drawn.words(graph)
        assert set(found) == set(graph.symbols)
        told = [line for line in drawn.lines if line.chain == chain and not line.decoy]
        assert sorted(line.fact for line in told) == list(range(len(graph.facts)))
        for line in told:
            fact = graph.facts[line.fact]
            assert tuple(found[key] for key in fact.keys) == line.keys
            assert found[fact.value] == line.value


def test_the_same_number_draws_the_same() -> None:
    prompts = Prompts(formulation="kingdoms")
    assert draw(prompts, 1, Random(3)) == draw(prompts, 1, Random(3))
    assert draw(prompts, 1, Random(3)) != draw(prompts, 1, Random(4))
