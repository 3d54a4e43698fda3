"""What positions hold: of planted models, what theory and a walk by symbols say, in every cell."""

import json
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from hopscope.circuits import Contents, Exam, Whole, exam_of, subject_of
from hopscope.circuits.contents import Held
from hopscope.circuits.linear import Moments, ridge
from hopscope.circuits.lot import Lot
from hopscope.circuits.reading import contents
from hopscope.configs import MQAR, ConditionalRetrieval, KHop, Model, Retrieval, VectorTask
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.models import Transformer
from hopscope.models.plans import Plan, chain_plan, triple_plan, twinned, with_spares
from hopscope.models.planted import Planted, planted
from hopscope.tasks import Batch, dataset, symbols
from hopscope.theory import flow

EXAMPLES = 400
Registers = list[list[dict[str, str]]]
"""For every example and position, the name of what stands in each register."""


def one_hot(hops: int, chains: int = 2) -> Retrieval:
    count = chains * (hops + 1)
    return Retrieval(hops=hops, chains=chains, symbols="one-hot", dim=max(4, count + count % 2))


def conditional(decoys: int) -> ConditionalRetrieval:
    return ConditionalRetrieval(symbols="one-hot", dim=16 + 4 * decoys, decoys=decoys)


def cells(found: Contents) -> dict[tuple[int, Role], frozenset[str]]:
    return {
        (layer, role): found.held(role, layer)
        for layer in range(found.layers + 1)
        for role in found.roles
    }


@pytest.mark.parametrize("hops", range(1, 8))
def test_every_cell_of_a_planted_chain_holds_what_theory_says(hops: int) -> None:
    grown = planted(one_hot(hops))
    found = contents(grown.model, grown.task, EXAMPLES, heads=False)
    theory = flow(grown.task.graph(), heads=1)
    assert theory.layers == found.layers
    for (layer, role), held in cells(found).items():
        expected = theory.holdings[layer][theory.roles.index(role)] & {*found.symbols}
        assert held == expected, (layer, role)
        for symbol in found.symbols:
            share = found.share(role, symbol, layer)
            # A row that finds nothing reads one chain's symbol: its own every other time (R² 1/4).
            assert share > 0.99 if symbol in expected else share < 0.35, (layer, role, symbol)


CASES: list[tuple[VectorTask, dict[str, Any]]] = [
    (one_hot(3), {}),
    (one_hot(3), {"twins": True}),
    (one_hot(3), {"spare_layers": (1, 3), "heads": 3}),
    (Retrieval(hops=1, chains=2, symbols="sphere", dim=64), {}),
    (conditional(0), {}),
    (conditional(1), {}),
    (conditional(1), {"twins": True}),
]


@pytest.mark.parametrize(("task", "more"), CASES, ids=lambda part: str(part)[:40])
def test_every_cell_holds_what_a_walk_by_symbols_finds(
    task: VectorTask, more: dict[str, Any]
) -> None:
    grown = planted(task, **more)
    found = contents(grown.model, task, max(200, 3 * grown.model.config.d_model))
    expected, brought = walked(grown, plan_of(task, more))
    assert cells(found) == expected
    for (layer, head, role), its in brought.items():
        assert found.written((layer, head), role) == its, (layer, head, role)
    at_best = flow(task.graph()).holdings[-1]
    roles = flow(task.graph()).roles
    assert all(held <= at_best[roles.index(r)] for (_, r), held in expected.items() if r in roles)


def plan_of(task: VectorTask, more: dict[str, Any]) -> Plan:
    plan: Plan = chain_plan(task) if isinstance(task, Retrieval) else triple_plan()
    plan = [twinned(layer) for layer in plan] if more.get("twins") else plan
    return with_spares(plan, {*more.get("spare_layers", ())})


def walked(grown: Planted, plan: Plan) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """The plan carried out with names instead of vectors: what stands in which register.

    A register that has the own chain's symbol in a share p of all examples, and something else in
    the others, explains p² of its variance: more than half if p > 0.71.
    """
    task, batch = grown.task, dataset(grown.task, 5, WALKED)
    looked = grown.model.attention(batch.inputs).argmax(-1).tolist()
    parts = [[{"symbol": name} for name in row] for row in _names(task, batch.inputs)]
    held = {(0, role): _own(task, batch, parts, role) for role in task.roles()}
    brought = {}
    for layer, lookups in enumerate(plan):
        after = [[dict(one) for one in row] for row in parts]
        for head in range(grown.model.config.heads):
            carry = lookups[head].carry if head < len(lookups) else ()
            written = _written(parts, [found[head] for found in looked[layer]], carry)
            for row, more in zip(after, written, strict=True):
                for one, its in zip(row, more, strict=True):
                    one.update(its)
            brought |= {
                (layer, head, role): _own(task, batch, written, role) for role in task.roles()
            }
        parts = after
        held |= {(layer + 1, role): _own(task, batch, parts, role) for role in task.roles()}
    return held, brought


def _written(parts: Registers, looked: list[list[int]], carry: Any) -> Registers:
    """What one head puts where, when every position looks at one other."""
    return [
        [{w: row[source][what] for what, w in carry if what in row[source]} for source in sources]
        for row, sources in zip(parts, looked, strict=True)
    ]


def _own(task: VectorTask, batch: Batch, parts: Registers, role: Role) -> frozenset[str]:
    """The symbols of its own chain that a role has in one of its registers."""
    hits: dict[tuple[str, str], list[bool]] = {}
    where = (batch.roles.role == task.roles().index(role)).nonzero().tolist()
    for example, place in where:
        chain = int(batch.roles.chain[example, place])
        for symbol in task.symbol_names():
            for part in PARTS:
                hit = parts[example][place].get(part) == f"{symbol} of {chain}"
                hits.setdefault((symbol, part), []).append(hit)
    return frozenset(symbol for (symbol, _), its in hits.items() if np.mean(its) ** 2 > 0.5)


WALKED = 40
PARTS = ("symbol", "before", "two before", *(f"register {n}" for n in range(2, 10)))


def _names(task: VectorTask, inputs: Tensor) -> list[list[str]]:
    """The name of the symbol at every position, found by comparing vectors."""
    known = symbols(task, 5, len(inputs))
    found = []
    for example in range(len(inputs)):
        row = []
        for vector in inputs[example, :, : task.dim]:
            same = (known[example] == vector).all(-1).nonzero().tolist()
            row.append(f"{task.symbol_names()[same[0][1]]} of {same[0][0]}" if same else "decoy")
        found.append(row)
    return found


def test_the_read_out_is_least_squares_cell_by_cell(random_model: Transformer) -> None:
    """All that is batched, written out: one cell, one symbol, one example at a time."""
    task = Retrieval(hops=2, chains=2, dim=6, symbols="one-hot")
    found = contents(random_model, task, 30)
    fitted, marked = Lot.of(task, 30, 1), Lot.of(task, 15, 0)
    for layer in (0, 2):
        for role in (Role("query"), Role("value", 1)):
            for number, symbol in enumerate(found.symbols):
                x, y, _ = slow_rows(random_model, fitted, (layer, role, number))
                sums = Moments(x.shape[-1], 1, y.shape[-1])
                sums.add(x, y[:, None])
                fit = ridge(sums)
                rows, wanted, _ = slow_rows(random_model, marked, (layer, role, number))
                error = (fit(rows)[:, 0] - wanted).square().sum()
                whole = (wanted - y.mean(0)).square().sum()
                expected = float(1 - error / whole)
                assert found.share(role, symbol, layer) == pytest.approx(expected, abs=2e-3)


def slow_rows(
    model: Transformer, lot: Lot, at: tuple[int, Role, int]
) -> tuple[Tensor, Tensor, list[int]]:
    layer, role, symbol = at
    xs, ys, examples = [], [], []
    exam = lot.exam
    with torch.no_grad():
        for example in range(len(exam)):
            x = model.enter(exam.inputs[example : example + 1])
            for number in range(layer):
                x = model.layer(number, x)
            norm = (
                model.norm if layer == model.config.layers else model.blocks[layer].attention_norm
            )
            seen = norm(x)[0]  # type: ignore[operator]
            for place in range(exam.length):
                if exam.table[int(exam.roles.role[example, place])] == role:
                    chain = int(exam.roles.chain[example, place])
                    xs.append(seen[place])
                    ys.append(lot.symbols[example, chain, symbol])
                    examples.append(example)
    return torch.stack(xs), torch.stack(ys), examples


@pytest.mark.parametrize(
    "task", [KHop(hops=2, length=12, alphabet=4), MQAR(pairs=3, alphabet=12, length=16, queries=2)]
)
def test_tokens_are_told_by_classifiers(task: KHop | MQAR) -> None:
    model = Transformer.seeded(Model(layers=1, heads=2, d_model=24), task.interface(), 0)
    found = contents(model, task, 200)
    assert found.measure == "accuracy"
    assert found.guesses
    assert found.share(Role("query"), "x0", 0) > 0.95
    assert abs(found.share(Role("query"), "x1", 0)) < 0.15
    assert found.stream.log_loss is not None
    assert found.stream.log_loss[0, found.roles.index(Role("query")), 0] < 0.3
    assert np.isnan(found.stream.own[:, found.roles.index(Role("other"))]).all() == (
        task.kind == "mqar"
    )
    assert np.isnan(found.stream.other).all() == (task.kind == "khop")
    assert Contents.from_dict(found.to_dict()).to_dict() == found.to_dict()


def whole(model: Transformer, streams: bool) -> Whole:
    def forward(inputs: Tensor, attention: Any) -> Tensor:
        return model(inputs, attention=attention, read=inputs.shape[1])[:, -model.interface.read :]

    def handed(inputs: Tensor) -> list[Tensor]:
        kept = [model.enter(inputs)]
        for layer in range(model.config.layers):
            kept.append(model.layer(layer, kept[-1]))
        return kept

    shape = (model.config.layers, model.config.heads)
    return Whole(forward, model, shape, model.interface.read, streams=handed if streams else None)


def test_a_module_that_hands_its_streams_out_is_read_as_well(two_hops: Planted) -> None:
    task, model = two_hops.task, two_hops.model
    expected = contents(model, task, EXAMPLES)
    found = contents(whole(model, streams=True), task, EXAMPLES)
    assert cells(found) == cells(expected)
    assert found.heads is None
    with pytest.raises(CircuitError, match="what heads add alone is not known of this model"):
        found.written((0, 0), Role("query"))
    with pytest.raises(CircuitError, match="is not handed out: give Whole a function `streams`"):
        contents(whole(model, streams=False), task, EXAMPLES)


def test_an_exam_of_ones_own_says_what_its_symbols_are(two_hops: Planted) -> None:
    task = two_hops.task

    def bare(examples: int, seed: int) -> Exam:
        return exam_of(task, examples, seed)

    def told(examples: int, seed: int) -> Exam:
        exam = exam_of(task, examples, seed)
        known = symbols(task, seed, examples, "validation")
        return replace(exam, symbols=known, names=("a", "b", "c"))

    found = contents(two_hops.model, told, EXAMPLES)
    expected = contents(two_hops.model, task, EXAMPLES)
    assert found.symbols == ("a", "b", "c")
    assert found.task is None
    assert np.allclose(found.stream.own, expected.stream.own)
    assert Contents.from_dict(found.to_dict()).task is None
    with pytest.raises(CircuitError, match="do not say what their symbols are: make the exam with"):
        contents(two_hops.model, bare, EXAMPLES)


def test_what_cannot_be_read_is_said_in_a_line(two_hops: Planted) -> None:
    model, task = two_hops.model, two_hops.task
    with pytest.raises(CircuitError, match=r"numbers cannot be read off 4 positions: key 0 stands.*"
                       r"in 2 examples; take at least 36 examples"):  # fmt: skip
        contents(model, task, 2)
    with pytest.raises(CircuitError, match="examples is 1; maps are fitted on at least 2"):
        contents(model, task, 1)
    found = contents(model, task, 40)
    assert not found.guesses
    assert found.first(Role("query"), "x2") == 3
    assert found.first(Role("query"), "x0") == 0
    with pytest.raises(CircuitError, match="key 1 never holds x2: 0.* of it at most, where more"):
        found.first(Role("key", 1), "x2")
    with pytest.raises(CircuitError, match="no symbol 'x9' here; the symbols are x0, x1, x2"):
        found.share(Role("query"), "x9", 0)
    with pytest.raises(CircuitError, match="no role 'key 7' here; the roles are key 0"):
        found.share(Role("key", 7), "x1", 0)
    with pytest.raises(CircuitError, match="layer is 9; expected 0 .* … 3"):
        found.share(Role("query"), "x1", 9)


def test_damaged_weights_are_named(two_hops: Planted) -> None:
    broken = Transformer(two_hops.model.config, two_hops.model.interface)
    for parameter in broken.parameters():
        nn.init.constant_(parameter, float("nan"))
    with pytest.raises(CircuitError, match="after layer 0 is not a finite number everywhere"):
        contents(broken, two_hops.task, 40)


def test_it_is_kept_as_json(two_hops: Planted, tmp_path: FilePath) -> None:
    found = contents(two_hops.model, two_hops.task, 40)
    found.save(tmp_path / "c.json")
    again = Contents.load(tmp_path / "c.json")
    assert again.model == subject_of(two_hops.model).digest()
    assert np.allclose(again.stream.own, found.stream.own, atol=1e-5, equal_nan=True)
    assert isinstance(again.heads, Held)
    assert again.heads.own.shape == (3, 1, 5, 3)
    kept = json.loads((tmp_path / "c.json").read_text())
    for change, message in (
        ({"format": 7}, "contents of format 7 cannot be read; this version reads format 1"),
        ({"roles": ["query"]}, "these are no contents: .*own has shape"),
        ({"stream": {}}, "these are no contents: KeyError"),
        ({"symbols": 3}, "these are no contents: TypeError"),
    ):
        with pytest.raises(Exception, match=message) as caught:
            Contents.from_dict(kept | change)
        assert "\n" not in str(caught.value)
    (tmp_path / "c.json").write_text("[")
    with pytest.raises(CircuitError, match="c.json is not JSON: expected what Contents.save wrote"):
        Contents.load(tmp_path / "c.json")
