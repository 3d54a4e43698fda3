"""Look-ups are stacked, in place, both, or nobody can tell: by tables of what roles hold."""

import json
from dataclasses import replace
from pathlib import Path

from hopscope.circuits.parts import Estimate
from hopscope.configs import LlmMechanism, Prompts, Tracing
from hopscope.facts import FactGraph, Role, parse_facts
from hopscope.llm.heads import ANSWER
from hopscope.llm.mechanism import LlmFindings
from hopscope.llm.verdict import LookUps

ROLES = (Role("value", 0), Role("value", 1), ANSWER)
LAYERS = (0, 2, 4, 6)
NEVER = (0.0, 0.0, 0.0, 0.0)
QWEN = Path(__file__).parents[2] / "results/llm/mechanism-qwen2.5-coder-1.5b-rows.jsonl"

Table = dict[tuple[str, str], tuple[float, ...]]
"""Exchange and role → how far the answer follows, layer by layer."""


def look_ups(table: Table, facts: str = "x0->x1 x1->x2") -> LookUps:
    graph: FactGraph = parse_facts(facts.split())
    between = [fact.value for fact in graph.facts[:-1]]
    shares = {
        name: [
            [Estimate(mean=its, low=its, high=its) for its in table.get((name, str(role)), NEVER)]
            for role in ROLES
        ]
        for name in (*graph.symbols, *(f"{symbol}…" for symbol in between))
    }
    return LookUps(graph, ROLES, LAYERS, shares)


STACKED: Table = {
    ("x1…", "answer"): (0.0, 0.0, 1.0, 1.0),
    ("x1", "answer"): (0.0, 0.0, 0.9, 0.0),
    ("x2", "answer"): (0.0, 0.0, 0.0, 1.0),
}
IN_PLACE: Table = {
    ("x1…", "answer"): (0.0, 0.0, 0.0, 1.0),
    ("x2", "value 0"): (0.0, 0.0, 1.0, 0.0),
    ("x2", "answer"): (0.0, 0.0, 0.0, 1.0),
}
CASES: dict[str, tuple[Table, str]] = {
    "stacked": (STACKED, "stacked where it is asked"),
    "stacked, by something else than the word": (
        {**STACKED, ("x1", "answer"): (0.0, 0.0, 0.1, 0.0)},
        "stacked where it is asked",
    ),
    "in place": (IN_PLACE, "in place"),
    "in place, while x2 arrives little by little": (
        {
            **IN_PLACE,
            ("x1…", "answer"): (0.0, 0.3, 0.8, 1.0),
            ("x2", "answer"): (0.0, 0.3, 0.7, 1.0),
        },
        "in place",
    ),
    "both": ({**STACKED, ("x2", "value 0"): (0.0, 0.6, 0.6, 0.0)}, "both"),
    "x1 and x2 come together, and value 0 has none of them": (
        {**IN_PLACE, ("x2", "value 0"): NEVER},
        "undecided",
    ),
    "less than half of each": (
        {
            ("x1…", "answer"): (0.0, 0.0, 0.5, 1.0),
            ("x2", "value 0"): (0.0, 0.4, 0.4, 0.0),
            ("x2", "answer"): (0.0, 0.0, 0.1, 1.0),
        },
        "undecided",
    ),
}


def test_look_ups_are_made_one_way_or_the_other() -> None:
    for name, (table, way) in CASES.items():
        found = look_ups(table)
        assert found.way() == way, name
        assert found.told()[-1] == f"look-ups: {way}"
    assert look_ups(STACKED).told()[:2] == [
        "answer has x1 and not yet x2 before layers 4 … 4 (as the word itself 0.90)",
        "answer holds x2 before layers 6 … 6",
    ]
    assert look_ups(IN_PLACE).told()[0] == "value 0 holds x2 before layers 4 … 4"
    one = look_ups({("x1", "answer"): (0.0, 0.0, 1.0, 1.0)}, "x0->x1")
    assert one.told() == ["answer holds x1 before layers 4 … 6"]  # which cannot be stacked


def test_a_symbol_is_held_against_the_one_that_it_leads_to() -> None:
    three: Table = {
        ("x1…", "answer"): (0.0, 1.0, 1.0, 1.0),
        ("x2…", "answer"): (0.0, 1.0, 1.0, 1.0),
        ("x3", "answer"): (0.0, 0.0, 1.0, 1.0),
    }
    found = look_ups(three, "x0->x1 x1->x2 x2->x3")
    assert found.ahead(ANSWER, "x1") is None  # it was given x2, not x1
    assert found.ahead(ANSWER, "x2") == (2, 2)
    both = look_ups({("x…", "answer"): (0.0, 0.0, 1.0, 0.0)}, "a->x a->y x,y->z")
    assert both.ahead(ANSWER, "x") == (4, 4)


def test_without_an_exchange_that_it_needs_the_way_is_not_measured() -> None:
    found = look_ups(STACKED)
    shares = {name: its for name, its in found.shares.items() if name != "x1…"}
    assert replace(found, shares=shares).told() == ["look-ups: not measured"]


def test_qwen_stacks_by_something_that_is_half_the_word() -> None:
    recipe = LlmMechanism(
        model="qwen2.5-coder-1.5b",
        prompts=Prompts(formulation="equations", hops=2, opening=True),
        questions=20,
        tracing=Tracing(mapped=4, searched=4, every=2, given=False),
    )
    rows = [json.loads(line) for line in QWEN.read_text().splitlines()]
    found = LlmFindings(recipe, rows).look_ups
    assert found.held(ANSWER, "x1") is None
    assert found.ahead(ANSWER, "x1") == (20, 22)
    assert found.held(Role("value", 0), "x2") is None
    assert found.way() == "stacked where it is asked"
