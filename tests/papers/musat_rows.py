"""Rows of Musat as they would be if all were as the paper says, and ways to bend them."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from hopscope.circuits import Circuit
from hopscope.papers.experiment import Protocol
from hopscope.papers.judge import Finding
from hopscope.papers.musat.claims import CLAIMS
from hopscope.papers.musat.rows import (
    AnswerRow,
    CircuitRow,
    DepthRow,
    Layers,
    LossCourse,
    LossRow,
    PlantedRow,
    Removal,
    SharedStep,
    VariantRow,
    WholeHead,
)
from hopscope.papers.registry import PAPERS
from hopscope.papers.results import COMPUTED, MeasuredRun, Results, ResultsTable, lines_of
from hopscope.papers.row import ResultRow
from hopscope.store.gallery import find

DEPTH, ASKED, IC, NONIC = "musat/depth", "musat/fig2", "musat/fig4-ic", "musat/fig4-nonic"
ABC, D = "musat/fig5", "musat/fig7"
PLANTED = Circuit.from_json(find("planted").read("circuit.json"))
KNOWN = {claim.id: claim for claim in CLAIMS}
Tables = dict[str, list[Any]]
"""Rows by target; Any, since each target has its own kind."""
AnyRow = TypeVar("AnyRow", bound=ResultRow)


def with_(row: AnyRow, **values: Any) -> AnyRow:
    """The row with other values, which are checked as if they had been read."""
    return type(row).model_validate({**row.model_dump(exclude_unset=True), **values})


def without(row: AnyRow, *names: str) -> AnyRow:
    """The row without these fields."""
    kept = row.model_dump(exclude_unset=True)
    return type(row).model_validate({name: kept[name] for name in kept if name not in names})


def depth_row(hops: int, theorem_1: int, bidirectional: int, causal: int) -> DepthRow:
    exact = Layers(bidirectional=bidirectional, causal=causal)
    return DepthRow(
        hops=hops, theorem_1=theorem_1, bidirectional=bidirectional, causal=causal, simulated=exact
    )


def planted_row(hops: int, layers: int) -> PlantedRow:
    return PlantedRow(planted=hops, layers=layers, heads=1, error=1e-20)


def answer_row(model: str, kind: str, hops: int = 1) -> AnswerRow:
    return AnswerRow(
        run="lm", model=model, protocol="exact", dtype="float32", seconds=1.0, kind=kind,
        hops=hops, count=30, accuracy_over=30, accuracy=0.94, interval=(0.92, 0.98), chance=0.25,
        first=0.4, acceptance=0.9, best=0.96, tries=None,
    )  # fmt: skip


def loss_row(
    layers: int,
    final: Sequence[float],
    learned_at: Sequence[int | None] = (),
    *,
    seed: int = 0,
    hops: int | None = None,
) -> LossRow:
    """Of all hops, unless there are said to be more than the final losses tell."""
    count = len(final)
    return LossRow(
        seed=seed, hops=hops or count, curriculum=hops in (None, count), layers=layers, heads=1,
        init="gpt2", position="token", steps=10_000, batch=256, examples=2_048, seconds=1.0,
        chance=0.75, final=tuple(final), learned_at=tuple(learned_at or [None] * count),
        course=LossCourse(
            steps=(0, 10, 20),
            losses=tuple((1.0, 0.9, loss) for loss in final),
            train=tuple((1.0, 0.8, loss) for loss in final),
        ),
    )  # fmt: skip


def removal(layer: int, what: str, loss: float, *, joins: bool = False) -> Removal:
    return Removal(
        head=(layer, 0), what=what, joins_pair=joins, kind="moves", prescribed=loss, alone=loss
    )  # fmt: skip


def maps_of(attention: Sequence[float]) -> dict[str, Any]:
    """Of three layers, the last of which attends so from values to their own keys."""
    roles = [f"{kind} {fact}" for fact in range(3) for kind in ("key", "value")]
    layers = [[[[0.0] * 6 for _ in roles]] for _ in range(3)]
    for fact, value in enumerate(attention):
        layers[2][0][2 * fact + 1][2 * fact] = value
    nothing = {name: [[[0.0] * 6]] * 3 for name in ("itself", "previous")}
    return {"roles": roles, "own": layers, "others": layers, **nothing}


NAMES = ("key 0", "value 0", "key 1")
"""What tells the circuits of A, B and C apart."""


def circuit_row(name: str) -> CircuitRow:
    known = loss_row(12, [0.002, 0.004, 0.006], [200, 300, 400])
    return CircuitRow(
        **known.model_dump(exclude_unset=True),
        step=6_400,
        model=0.003,
        prescribed=0.02,
        computed=0.02,
        ablated=0.9,
        sufficient=True,
        useful=((2, 0), (4, 0), (6, 0), (8, 0)),
        needed=((2, 0), (4, 0), (6, 0), (8, 0), (9, 0)),
        removals=(
            removal(2, "key 0 → value 0", 0.07, joins=True),
            removal(4, f"{name} → query", 0.3),
            removal(6, "value 1 → query", 0.5),
            removal(8, "value 2 → query", 0.8),
        ),
        whole=(WholeHead(head=(2, 0), loss=0.07), WholeHead(head=(4, 0), loss=0.9)),
        shared=(),
        unnamed=0,
        circuit=PLANTED.to_dict(),
        maps=maps_of([0.9, 0.8, 0.6]),
    )


def variant_rows(variant: str) -> list[VariantRow]:
    """Transformers A, B and C under one variant."""
    known = [circuit_row(name).model_dump(exclude_unset=True) for name in NAMES]
    return [
        VariantRow(**{**row, "seed": seed}, variant=variant, flop=1.5e14)
        for seed, row in enumerate(known)
    ]


IN_TURN = (3_500.0, 3_900.0, 4_400.0, 4_900.0)
"""When the look-ups of transformer D emerge."""


def emerging_row(examples: int) -> CircuitRow:
    known = loss_row(24, [0.02, 0.03, 0.03, 0.04], [3_600, 4_000, 4_200, 5_100])
    return with_(
        circuit_row("key 0"),
        **known.model_dump(exclude_unset=True, exclude={"examples"}),
        examples=examples,
        model=0.031,
        prescribed=0.05,
        removals=(
            removal(2, "key 0 → value 0", 0.01, joins=True),
            removal(4, "value 0 → query", 0.3),
            removal(6, "value 0 → query", 0.4),
        ),
        shared=(SharedStep(what="value 0 → query", heads=((4, 0), (6, 0)), loss=0.8),),
        emergence=story(IN_TURN),
    )


ENDS = (("query", "value 0"), ("value 0", "value 1"), ("query", "value 2"), ("value 2", "value 3"))


CHECKPOINTS = (0, 3_600, 4_000, 4_500, 8_000)


def path_of(
    layer: int, destination: str, source: str, emerged: float | None,
    checkpoints: Sequence[int] = CHECKPOINTS, head: int = 0,
) -> dict[str, Any]:  # fmt: skip
    """A path along which attention passes one half at this step, which is between checkpoints."""
    attention = [0.1] * len(checkpoints)
    if emerged is not None:
        after = bisect_left(checkpoints, emerged)
        before, behind = checkpoints[after - 1 : after + 1]
        share = (emerged - before) / (behind - before)
        attention[after - 1] = 0.5 - 0.5 * share
        attention[after:] = [0.5 + 0.5 * (1 - share)] * (len(checkpoints) - after)
    return {
        "layer": layer, "head": head, "destination": destination, "source": source,
        "attention": attention,
    }  # fmt: skip


def story(
    steps: Sequence[float | None], checkpoints: Sequence[int] = CHECKPOINTS
) -> dict[str, Any]:
    """Paths of two heads for every hop, those of the second 2,000 steps after those of the first; a
    checkpoint between any two.
    """
    late = [None if step is None else step + 2_000 for step in steps]
    paths = [
        path_of(layer, end, source, step, checkpoints, head)
        for head, moments in ((1, late), (0, steps))
        for layer, ((end, source), step) in enumerate(zip(ENDS, moments, strict=False), 1)
    ]
    losses = [*[[0.75] * 4] * (len(checkpoints) - 1), [0.1] * 4]
    return {
        "steps": [*checkpoints], "steps_per_epoch": None, "chance": 0.75, "losses": losses,
        "paths": paths,
    }  # fmt: skip


def of_seeds(*rows: AnyRow) -> list[AnyRow]:
    """Three models of each of these rows."""
    return [with_(row, seed=seed) for row in rows for seed in range(3)]


def tables() -> Tables:
    """What comes out if all is as the paper says. The lists are new ones; rows cannot change."""
    return {name: [*rows] for name, rows in _tables().items()}


@cache
def _tables() -> Tables:
    kinds = [*(f"equations-d{hops}" for hops in (1, 2, 5)), "lives-with-d5", "kingdoms"]
    return {
        DEPTH: [
            depth_row(1, 1, 1, 2), depth_row(2, 2, 2, 3), depth_row(3, 2, 3, 3),
            planted_row(2, 3), planted_row(3, 3),
        ],
        ASKED: [answer_row(model, kind) for model in ("small", "large") for kind in kinds],
        IC: of_seeds(
            loss_row(1, [0.6, 0.74], [None, None]),
            loss_row(2, [0.1, 0.95], [100, None]),
            loss_row(3, [0.01, 0.1], [90, 400]),
        ),
        NONIC: of_seeds(*(loss_row(layers, [0.75], hops=3) for layers in (1, 2, 3))),
        ABC: [with_(circuit_row(name), seed=n) for n, name in enumerate(NAMES)],
        D: of_seeds(*map(emerging_row, (262_144, 2_048))),
    }  # fmt: skip


def judged(name: str, rows: Tables) -> Finding:
    claim = KNOWN[f"musat/{name}"]
    return claim.judge([row for source in claim.needs for row in rows[source]])


def bent(experiment: str, place: int, **values: Any) -> Tables:
    """The tables, in which a row, or the three seeds of a model, have other values."""
    rows = tables()
    seeds = 3 if experiment in (IC, NONIC, D) else 1
    for at in range(seeds * place, seeds * (place + 1)):
        rows[experiment][at] = with_(rows[experiment][at], **values)
    return rows


def table(name: str, rows: Sequence[ResultRow], protocol: Protocol = "full") -> ResultsTable:
    """Rows of one run."""
    runs = (MeasuredRun("one", "0.1", "A, 2 cores", tuple(rows)),) if rows else ()
    return ResultsTable(name, protocol, runs)


def saved(
    root: Path, rows: Mapping[str, Sequence[ResultRow]], protocol: Protocol = "full"
) -> Results:
    """Results in which the first run of each experiment has these rows, and others have none."""
    results = PAPERS.results(root)
    for name, own in rows.items():
        experiment = PAPERS.experiments[name]
        runs = [*experiment.runs(experiment.nearest(protocol))] or [COMPUTED]
        path = results.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [lines_of(run, () if at else own, "here") for at, run in enumerate(runs)]
        path.write_bytes(b"".join(lines))
    return results
