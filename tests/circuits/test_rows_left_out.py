"""Rows that come back to a circuit, and heads that it leaves out, in models written by hand.

In most, the first token says whether the answer is one more (0.1 reads it). A key is asked for
twice: at `pre`, and at `query`, which reads `pre` with 2.0. So 1.0 can look it up at both. What it
brings to `pre` is also read by 3.0: if this holds keys, there is no answer.
"""

import importlib
import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from hopscope.circuits import Circuit, Drawn, OwnTask, discover

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
FACTS = ("key 0", "value 0"), ("kcopy", "vcopy")


@pytest.fixture
def its(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The parts of the benchmark's hand-written models."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("misleading")


def asked_twice(its: ModuleType, copies: int = 1) -> OwnTask:
    """The task. The facts may stand there twice, each time in another order."""
    names = FACTS[:copies]
    roles = ["start", *(role for pair in names for role in pair * 4), "pre", "query"]

    def draw(examples: int, seed: int) -> Drawn:
        facts = its.Facts(examples, seed)
        orders = [facts.shuffled(4) for _ in names]
        both = [[each.gather(1, at) for each in (facts.keys, facts.values)] for at in orders]
        body = [torch.stack(each, -1).flatten(1) for each in both]
        key, value = (each.gather(1, facts.asked) for each in (facts.keys, facts.values))
        mark = torch.randint(2, (examples, 1), generator=facts.generator)
        chains = [at.repeat_interleave(2, 1) for at in orders]
        return Drawn(
            torch.cat([its.START + mark, *body, key, key], 1),
            its.KEYS + (value - its.KEYS + mark) % its.KEYS,
            roles,
            torch.cat([torch.full_like(key, 4), *chains, facts.asked, facts.asked], 1),
        )

    return OwnTask(draw, roles=tuple(dict.fromkeys(roles)), chance=math.log(8), facts=("x0->x1",))


def found_in(
    its: ModuleType,
    heads: dict[str, Any],
    says: Callable[[SimpleNamespace], Tensor],
    copies: int = 1,
    seed: int = 0,
) -> Circuit:
    """The circuit of the model with these heads 1.x, whose answer `says` gives."""
    pre = 1 + 8 * copies
    back, mark = its.back(1), its.Head(lambda r: its.constant(0, r), lambda r: r.place)
    reads = its.Head(back.query, back.key, lambda r: r.a + r.mark)
    vetoes = its.Head(back.query, back.key, lambda r: r.a * its.at(slice(pre, pre + 1), r))

    def answer(r: SimpleNamespace) -> Tensor:
        moves = (r.b[..., its.START + 1, None] > 0.4).float()
        fine = (r.veto[..., : its.KEYS].sum(-1, keepdim=True) < 0.2).float()
        values = says(r)[..., its.KEYS : its.START]
        values = moves * values.roll(1, -1) + (1 - moves) * values
        return 10 * fine * torch.cat([torch.zeros_like(r.token[..., : its.KEYS]), values], -1)

    layers = its.PREVIOUS | {"mark": mark}, heads, {"b": reads}, {"veto": vetoes}
    model = its.HandWritten(*layers, answer=answer)
    return discover(model.adapter(), asked_twice(its, copies), examples=32, fresh=96, seed=seed)


def look_up(its: ModuleType) -> Any:
    """A head that looks at the value of the key, wherever this is asked for."""
    return its.Head(lambda r: r.token, lambda r: r.before * its.at(slice(9), r))


def told(circuit: Circuit) -> set[str]:
    return {f"{each.name} {circuit.described(each)}" for each in circuit.components}


def test_a_head_that_is_ignored_at_a_role_does_not_come_back_there(its: ModuleType) -> None:
    """1.0 and 1.1 look up alike, and at `query` both are needed. At `pre` only 1.0 is read."""
    heads = {"a": look_up(its), "y": look_up(its)}
    circuit = found_in(its, heads, lambda r: torch.relu(r.a + r.y - 1))
    assert {"1.0 value 0 → pre", "1.0+1 value 0 → query"} < told(circuit)
    assert not any("1.0+1" in each and "pre" in each for each in told(circuit))


def test_a_row_comes_back_only_with_a_name_that_holds(its: ModuleType) -> None:
    """In a quarter of the examples `pre` looks at the second copy of the facts; `query` looks at
    the other copy. Either is enough.
    """

    def second(r: SimpleNamespace) -> Tensor:
        at_query = its.at(slice(18, 19), r)
        rare = r.token[..., 6:8].sum(-1, keepdim=True)
        return rare * (1 - at_query) + (1 - rare) * at_query

    def query(r: SimpleNamespace) -> Tensor:
        first = (1 - second(r)) * its.constant(16, r)
        return r.token + (first + second(r) * its.constant(17, r)) / 2

    def key(r: SimpleNamespace) -> Tensor:
        first, again = its.at(slice(1, 9), r), its.at(slice(9, 17), r)
        copy = first * its.constant(16, r) + again * its.constant(17, r)
        return r.before * (first + again) + copy

    def says(r: SimpleNamespace) -> Tensor:
        return r.a.maximum(1.4 * torch.relu(r.b - 0.5))

    for seed in range(4):
        circuit = found_in(its, {"a": its.Head(query, key)}, says, copies=2, seed=seed)
        assert circuit.verdict.startswith("Partly explained"), seed
        assert any("holds in only" in line for line in circuit.lacks)


def test_paths_through_a_role_without_facts_are_not_followed(its: ModuleType) -> None:
    """The answer reaches the query from `pre`, and the facts have no such role."""
    circuit = found_in(its, {"a": look_up(its)}, lambda r: r.b)
    assert "1.0 value 0 → pre" in told(circuit)
    assert circuit.flow is None
    assert circuit.verdict.startswith("Explained")


def test_each_way_in_which_a_head_is_needed_is_tried_on_fresh_examples(its: ModuleType) -> None:
    """2.0 adds what 3.0 takes away. Without 2.0 one answer in eight is less sure, about 5 % of the
    gap; with its output in another example many answers are wrong.
    """

    def answer(r: SimpleNamespace) -> Tensor:
        return 10 * r.a + (4.8 + 2.2 * r.token[..., :1]) * (r.b - r.c)

    layers = *its.USUAL, {"b": its.LOOK_UP}, {"c": its.LOOK_UP}
    model = its.HandWritten(*layers, answer=answer).adapter()
    task = its.Case("", "", None, its.plain).task()
    for seed in range(3):
        circuit = discover(model, task, examples=32, fresh=192, seed=seed)
        assert circuit.verdict.startswith("Partly explained"), seed
        assert len(circuit.lacks) == 1
