"""Judges of what Musat (ICLR 2025) says of the circuits of transformers A, B and C."""

from collections.abc import Sequence
from dataclasses import replace

from hopscope.milestones import HALF
from hopscope.papers.claim import Finding, share, share_drawn, span, verdict
from hopscope.papers.musat.rows import CircuitRow
from hopscope.papers.table import Table

SOLVED = 0.01
"""Loss of transformers A to C (§8.2)."""
REMOVALS = (0.17, 0.89)
"""The loss after removing a path, from the least to the greatest (appendix E)."""
FIRST_LAYERS = (0.05, 0.1)
"""The loss after removing the first useful layer (appendix E)."""
FEWEST = 3
"""Heads with which three hops can be solved (§8.2)."""
CIRCUIT_LOSS = 0.05
"""The loss that a circuit alone stays below (appendix E, step 3); if it does not, what is found of
the heads says nothing about the model."""


def accurate(tables: Sequence[Table]) -> Finding:
    """Judge whether all transformers end with a loss below SOLVED; "under a reading" if only their
    best late checkpoints are below it.
    """
    rows = tables[0].of(CircuitRow)
    ends = [row.loss for row in rows]
    calm = [row.model for row in rows]
    values = (
        f"{_listed(ends)} at the end: {_drawn([end < SOLVED for end in ends])}; "
        f"{_listed(calm)} at the best late checkpoint: {_drawn([x < SOLVED for x in calm])}"
    )
    if all(end < SOLVED for end in ends):
        return Finding(values, "reproduced", "mean over the last 100 steps")
    if all(loss < SOLVED for loss in calm):
        return Finding(
            values, "under a reading",
            "at a constant learning rate the loss hovers; below 0.01 at the best checkpoint of "
            "the last tenth, fresh examples",
        )  # fmt: skip
    return Finding(
        values, "not reproduced",
        "mean over the last 100 steps, and over fresh examples at that checkpoint",
    )  # fmt: skip


def four(tables: Sequence[Table]) -> Finding:
    """Judge whether every circuit has exactly four heads with a path, and alone keeps the loss
    low.
    """
    rows = tables[0].of(CircuitRow)
    counts = [len(row.useful) for row in rows]
    right = [len(row.useful) == 4 and _low(row) for row in rows]
    more = [len(row.needed) - len(row.useful) for row in rows]
    return Finding(
        f"{_listed(counts)}; {_drawn(right)}", verdict(all(right)),
        f"heads with a path in the circuit; the circuit has {_listed(more)} more, without a path",
    )  # fmt: skip


def not_the_fewest(tables: Sequence[Table]) -> Finding:
    """Judge whether every circuit has more than FEWEST heads."""
    rows = tables[0].of(CircuitRow)
    counts = [len(row.needed) for row in rows]
    holds = [len(row.needed) > FEWEST and _low(row) for row in rows]
    return Finding(
        f"{_listed(counts)}; {_drawn(holds)}", verdict(all(holds)),
        "heads of the circuit, with a path or without; three heads planted by hand solve "
        "three hops (`musat/depth`), and three that one training found (`gallery/three-heads`)",
    )  # fmt: skip


def mostly_idle(tables: Sequence[Table]) -> Finding:
    """Judge whether more than half of the heads, and not all, are left out of every circuit, and
    every circuit alone keeps the loss low.
    """
    rows = tables[0].of(CircuitRow)
    heads = [row.layers * row.heads for row in rows]
    idle = [count - len(row.needed) for count, row in zip(heads, rows, strict=True)]
    without = [count - len(row.useful) for count, row in zip(heads, rows, strict=True)]
    unseen = [count - len(seen_by_eye(row)) for count, row in zip(heads, rows, strict=True)]
    holds = [
        count / 2 < some < count and _low(row)
        for some, count, row in zip(idle, heads, rows, strict=True)
    ]
    return Finding(
        f"{', '.join(map(share, idle, heads))}; {_drawn(holds)}",
        verdict(all(holds)),
        "heads without a row in the circuit: more than half, and not all; "
        f"{_listed(without)} are without a path; an eye, which sees heads that give more than half "
        f"of a role's attention to another role of its chain, would call {_listed(unseen)} idle",
    )


def _low(row: CircuitRow) -> bool:
    """Does the circuit alone keep the loss low?"""
    return row.prescribed < CIRCUIT_LOSS


def _drawn(holds: Sequence[bool]) -> str:
    """For how many models something holds."""
    return share_drawn(sum(holds), len(holds), "models")


def seen_by_eye(row: CircuitRow) -> list[tuple[int, int]]:
    """The heads whose map shows something: a role that gives another role of its own chain more
    than half of its attention.
    """
    return [
        (layer, head)
        for layer, heads in enumerate(row.maps.own)
        for head, own in enumerate(heads)
        if any(
            attention > HALF
            for reader, sources in enumerate(own)
            for source, attention in enumerate(sources)
            if reader != source
        )
    ]


def first_joins(tables: Sequence[Table]) -> Finding:
    """Judge whether the first head with a path attends from every value to the key of its own pair,
    by more than half, in circuits that alone keep the loss low.
    """
    rows = tables[0].of(CircuitRow)
    joined = [sum(attention > HALF for attention in _to_own_key(row)) for row in rows]
    chains = [row.hops or 0 for row in rows]
    holds = [
        count == hops and _low(row) for count, hops, row in zip(joined, chains, rows, strict=True)
    ]
    counts = ", ".join(map(share, joined, chains))
    return Finding(
        f"{_drawn(holds)}; pairs joined: {counts}",
        verdict(all(holds)),
        "attention of the first head with a path, from the value of every pair of a chain to its "
        "key: above 0.5",
    )  # fmt: skip


def _to_own_key(row: CircuitRow) -> list[float]:
    """The attention of the first useful head from each value to the key of its pair."""
    if not row.useful:
        return []
    (layer, head), roles = row.useful[0], row.maps.roles
    own = row.maps.own[layer][head]
    return [
        own[roles.index(f"value {fact}")][roles.index(f"key {fact}")]
        for fact in range(row.hops or 0)
    ]


def different(tables: Sequence[Table]) -> Finding:
    """Judge whether no two circuits agree in what the heads beside the first one do."""
    rows = tables[0].of(CircuitRow)
    circuits = {
        tuple(sorted(each.what for each in row.removals if each.head != row.useful[0]))
        for row in rows
        if row.useful
    }
    shared = set[str]().union(*circuits).intersection(*circuits)
    return Finding(
        f"{len(circuits)} different circuits in {len(rows)} transformers; in all of them: "
        f"{', '.join(sorted(shared)) or 'no path'}",
        verdict(len(circuits) == len(rows) > 1 and all(map(_low, rows))),
        "compared by the paths of every head but the first, whatever its layer: two that differ "
        "in one path differ; every circuit alone keeps the loss low",
    )


def circuit_losses(tables: Sequence[Table]) -> Finding:
    """Judge whether every circuit alone keeps the loss below CIRCUIT_LOSS."""
    rows = tables[0].of(CircuitRow)
    holds = list(map(_low, rows))
    return Finding(
        f"{_listed([row.prescribed for row in rows])} (from "
        f"{_listed([row.model for row in rows])}); {_drawn(holds)}", verdict(all(holds)),
        f"circuit with prescribed attention; below {CIRCUIT_LOSS}",
    )  # fmt: skip


def removed(tables: Sequence[Table]) -> Finding:
    """Judge whether removing any one path, but for those of the first head with a path, leads to a
    loss within REMOVALS, of circuits that alone keep it low.
    """
    rows = tables[0].of(CircuitRow)
    losses = [
        [each.prescribed for each in row.removals if each.head not in row.useful[:1]]
        for row in rows
    ]
    steps = [loss for row in rows for loss in without_steps(row)]
    found = _within(
        losses, REMOVALS,
        "each path removed alone from the circuit, all others prescribed, but for those of the "
        "first head with a path"
        + (f"; steps that heads share, without all of them: {span(steps, 2)}" if steps else ""),
    )  # fmt: skip
    return found if all(map(_low, rows)) else replace(found, verdict="not reproduced")


def without_steps(row: CircuitRow) -> list[float]:
    """The loss of the circuit without each step that several heads take, and so without all those
    heads' rows that take it.
    """
    return [step.loss for step in row.shared or ()]


def first_layers(tables: Sequence[Table]) -> Finding:
    """Judge whether removing the first head with a path leads to a loss within FIRST_LAYERS, in
    every model, of circuits that alone keep it low.
    """
    rows = tables[0].of(CircuitRow)
    firsts = [(row.whole or ())[:1] for row in rows]
    found = _within(
        [[each.loss for each in own] for own in firsts], FIRST_LAYERS,
        "the attention of the first head with a path made uniform, all others prescribed",
    )  # fmt: skip
    return found if all(map(_low, rows)) else replace(found, verdict="not reproduced")


def _within(
    losses: Sequence[Sequence[float]], limits: tuple[float, float], evidence: str
) -> Finding:
    """Are all losses of every model, of which each has some, within these limits?"""
    every = [loss for own in losses for loss in own]
    if not every:
        return Finding("–", "not reproduced", "no such path was found")
    inside = [sum(limits[0] <= loss <= limits[1] for loss in own) for own in losses]
    holds = [0 < len(own) == count for own, count in zip(losses, inside, strict=True)]
    by_model = ", ".join(map(share, inside, map(len, losses)))
    ours = f"{span(every, 2)} (within: {by_model}); {_drawn(holds)}"
    return Finding(ours, verdict(all(holds)), evidence)


def _listed(values: Sequence[int] | Sequence[float]) -> str:
    return ", ".join(f"{value:d}" if isinstance(value, int) else f"{value:.4f}" for value in values)
