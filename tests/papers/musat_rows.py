"""Rows as they would be if all were as the paper says, and ways to bend them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hopscope.papers.claim import Finding
from hopscope.papers.musat_claims import CLAIMS
from hopscope.papers.results import Protocol, Results, Row, Table

DEPTH, ASKED, IC, NONIC = "musat/depth", "musat/fig2", "musat/fig4-ic", "musat/fig4-nonic"
ORDER, ABC, D = "musat/order", "musat/fig5", "musat/fig7"
KNOWN = {claim.id: claim for claim in CLAIMS}
Tables = dict[str, list[Row]]


def depth_row(hops: int, theorem_1: int, bidirectional: int, causal: int) -> Row:
    exact = {"bidirectional": bidirectional, "causal": causal}
    return {"hops": hops, "theorem_1": theorem_1, **exact, "simulated": dict(exact)}


def planted_row(hops: int, layers: int) -> Row:
    return {"planted": hops, "layers": layers, "heads": 1, "error": 1e-20}


def answer_row(model: str, kind: str) -> Row:
    return {
        "model": model,
        "kind": kind,
        "guessing": 0.25,
        "interval": [0.92, 0.98],
        "accuracy": 0.94,
        "best": 0.96,
    }


def loss_row(layers: int, final: list[float], crossed: list[int | None]) -> Row:
    return {
        "layers": layers, "heads": 1, "seed": 0, "hops": len(final), "guess": 0.75, "final": final,
        "crossed": crossed, "init": "gpt2",
    }  # fmt: skip


def removal(layer: int, what: str, ideal: float, *, joins: bool = False) -> Row:
    return {"head": [layer, 0], "what": what, "joins_pair": joins, "ideal": ideal}


def maps_row(attention: list[float]) -> Row:
    """Of three layers, the last of which attends so from values to their own keys."""
    roles = [f"{kind} {fact}" for fact in range(3) for kind in ("key", "value")]
    layers = [[[[0.0] * 6 for _ in roles]] for _ in range(3)]
    for fact, value in enumerate(attention):
        layers[2][0][2 * fact + 1][2 * fact] = value
    return {"roles": roles, "own": layers}


def circuit_row(name: str) -> Row:
    return {
        **loss_row(12, [0.002, 0.004, 0.006], [200, 300, 400]),
        "clean": 0.003,
        "ideal": 0.02,
        "useful": [[2, 0], [4, 0], [6, 0], [8, 0]],
        "needed": [[2, 0], [4, 0], [6, 0], [8, 0], [9, 0]],
        "maps": maps_row([0.9, 0.8, 0.6]),
        "removals": [
            removal(2, "value 0 → key 0", 0.07, joins=True),
            removal(4, f"query → {name}", 0.3),
            removal(6, "query → value 1", 0.5),
            removal(8, "query → value 2", 0.8),
        ],
    }


def emerging_row(examples: int) -> Row:
    return {
        **loss_row(24, [0.02, 0.03, 0.03, 0.04], [3_600, 4_000, 4_500, 5_100]),
        "clean": 0.031,
        "ideal": 0.05,
        "examples": examples,
        "removals": [
            removal(2, "value 0 → key 0", 0.01, joins=True),
            removal(4, "query → value 0", 0.3),
        ],
        "emergence": emergence_row([3_500.0, 3_900.0, 4_400.0, 4_900.0]),
    }


ENDS = (("query", "value 0"), ("value 0", "value 1"), ("query", "key 2"), ("key 3", "value 2"))


def emergence_row(steps: list[float | None]) -> Row:
    """Two paths for every hop, the second 2,000 steps after the first."""
    late = [None if step is None else step + 2_000 for step in steps]
    return {
        "paths": [
            {"reader": reader, "source": source, "emerged_at_step": step}
            for moments in (late, steps)
            for (reader, source), step in zip(ENDS, moments, strict=True)
        ]
    }


def tables() -> Tables:
    """What comes out if all is as the paper says."""
    kinds = [*(f"equations-d{hops}" for hops in (1, 2, 5)), "lives-with-d5", "kingdoms"]
    return {
        "musat/depth": [
            depth_row(1, 1, 1, 2), depth_row(2, 2, 2, 3), depth_row(3, 2, 3, 3),
            planted_row(2, 3), planted_row(3, 3),
        ],
        "musat/fig2": [answer_row(model, kind) for model in ("small", "large") for kind in kinds],
        "musat/fig4-ic": [
            loss_row(1, [0.6, 0.74], [None, None]),
            loss_row(2, [0.1, 0.95], [100, None]),
            loss_row(3, [0.01, 0.1], [90, 400]),
        ],
        "musat/fig4-nonic": [loss_row(layers, [0.75], [None]) for layers in (1, 2, 3)],
        "musat/order": [loss_row(4, [0.01, 0.02], [50, 80]), loss_row(4, [0.01, 0.02], [60, 60])],
        "musat/fig5": [circuit_row(name) for name in ("key 0", "value 0", "key 1")],
        "musat/fig7": [emerging_row(examples) for examples in (262_144, 2_048)],
    }  # fmt: skip


def judged(name: str, rows: Tables) -> Finding:
    claim = KNOWN[f"musat/{name}"]
    return claim.judge([Table(target, "full", tuple(rows[target])) for target in claim.targets])


def bent(target: str, place: int, **values: Any) -> Tables:
    """The tables, one row of which has other values."""
    rows = tables()
    assert set(values) <= set(rows[target][place])
    rows[target][place].update(values)
    return rows


def saved(root: Path, rows: Mapping[str, list[Row]], protocol: Protocol) -> Results:
    results = Results(root)
    for target, own in rows.items():
        results.save(Table(target, protocol, tuple(own)))
    return results
