"""Exchanges: which words change, and what the answer is then, for every formulation."""

import re

import pytest

from hopscope.configs import Prompts
from hopscope.llm.exchange import exchanges, names, own_answer, proving
from hopscope.llm.prompts import drawn, question, render

TWO = Prompts(formulation="equations", hops=2)
EVERY = [
    TWO,
    Prompts(formulation="lives-with", hops=2),
    *(Prompts(formulation=name) for name in ("kingdoms", "functions", "relatives")),
]


def answer(prompt: str) -> str:
    """The answer to equations, by reading them."""
    facts = dict(line.split(" = ") for line in prompt.splitlines()[:-1])
    symbol = re.findall(r"value of (\w+)", prompt)[-1]
    while symbol in facts:
        symbol = facts[symbol]
    return symbol


def test_a_symbol_is_exchanged_wherever_it_stands_or_as_a_value_alone() -> None:
    told = drawn(TWO, 0, 0)
    own = question(TWO, 0, 0).prompt
    for partner in {0, 1, 2, 3} - {told.chain}:
        found = {its.name: its for its in exchanges(TWO, told, partner)}
        assert set(found) == {"x0", "x1", "x2", "x1…"}
        for name, its in found.items():
            donor = render(TWO, its.told, 0).prompt
            changed = [a != b for a, b in zip(own, donor, strict=True)]
            assert sum(changed) == {"x0": 3, "x1": 4, "x2": 2, "x1…": 2}[name]
            right = own_answer(TWO.graph(), told)
            assert answer(own) == right
            assert answer(donor) == (its.answer if name in ("x2", "x1…") else right)
            assert its.answer != right


@pytest.mark.parametrize("prompts", EVERY, ids=lambda its: its.label)
def test_every_formulation_has_its_exchanges(prompts: Prompts) -> None:
    graph = prompts.graph()
    assert names(prompts)[: len(graph.symbols)] == graph.symbols
    assert len(proving(prompts)) == len(graph.facts)
    for index in range(8):
        told, asked = drawn(prompts, 3, index), question(prompts, 3, index)
        assert own_answer(graph, told) == asked.correct
        for its in exchanges(prompts, told, (told.chain + 1) % prompts.chains):
            assert its.answer in asked.acceptable
            donor = render(prompts, its.told, index)
            if its.words[0] == its.words[1]:
                assert donor.prompt == asked.prompt
            else:
                assert donor.prompt != asked.prompt
