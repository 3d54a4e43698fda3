"""What positions hold: of planted models, what theory and a walk by symbols say, in every cell."""

import json
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pytest
from torch import Tensor

from hopscope.circuits import subject_of
from hopscope.configs import ConditionalRetrieval, Retrieval, VectorTask
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.models.plans import Plan, chain_plan, triple_plan, twinned, with_spares
from hopscope.models.planted import Planted, planted
from hopscope.tasks import Batch, dataset, symbols
from hopscope.theory import flow
from hopscope.tracing import Contents, Held
from hopscope.tracing.reading import contents

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


@pytest.mark.slow
def test_every_cell_of_a_planted_chain_holds_what_theory_says() -> None:
    for hops in range(1, 8):
        grown = planted(one_hot(hops))
        found = contents(grown.model, grown.task, EXAMPLES, heads=False)
        theory = flow(grown.task.graph(), heads=1)
        assert theory.layers == found.layers
        for (layer, role), held in cells(found).items():
            expected = theory.holdings[layer][theory.roles.index(role)] & {*found.symbols}
            assert held == expected, (hops, layer, role)
            for symbol in found.symbols:
                share = found.share(role, symbol, layer)
                # A row that finds nothing reads one chain's symbol: its own every other time, R² ¼.
                right = share > 0.99 if symbol in expected else share < 0.35
                assert right, (hops, layer, role, symbol)


CASES: list[tuple[VectorTask, dict[str, Any]]] = [
    (one_hot(3), {}),
    (one_hot(3), {"twins": True}),
    (one_hot(3), {"spare_layers": (1, 3), "heads": 3}),
    (Retrieval(hops=1, chains=2, symbols="sphere", dim=64), {}),
    (conditional(0), {}),
    (conditional(1), {}),
    (conditional(1), {"twins": True}),
]


@pytest.mark.slow
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


def test_it_is_kept_as_json(two_hops: Planted, tmp_path: FilePath) -> None:
    found = contents(two_hops.model, two_hops.task, 40)
    found.save(tmp_path / "c.json")
    again = Contents.load(tmp_path / "c.json")
    assert again.model == subject_of(two_hops.model).digest()
    assert np.allclose(again.stream.own, found.stream.own, atol=1e-5, equal_nan=True)
    assert isinstance(again.heads, Held)
    assert again.heads.own.shape == (3, 1, 5, 3)
    kept = json.loads((tmp_path / "c.json").read_text())
    for text, line in (
        (json.dumps(kept | {"format": 7}), "contents of format 7 cannot be read; this version re"),
        (json.dumps(kept | {"roles": ["query"]}), "these are no contents: .*own has shape"),
        (json.dumps(kept | {"stream": {}}), "these are no contents: KeyError"),
        (json.dumps(kept | {"symbols": 3}), "these are no contents: TypeError"),
        ("[", "c.json is not JSON: expected what Contents.save wrote"),
    ):
        (tmp_path / "c.json").write_text(text)
        with pytest.raises(CircuitError, match=line) as caught:
            Contents.load(tmp_path / "c.json")
        assert "\n" not in str(caught.value)
