"""From tables to verdicts: what is missing, lesser protocols, other versions, what it rests on, and
what luck could do, against every way in which outcomes can be dealt.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, combinations, product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from musat_rows import ABC, DEPTH, IC, KNOWN, NONIC, bent, circuit_row, saved, tables, with_

from hopscope.configs import Experiment, Model, Retrieval, Training
from hopscope.papers.basis import basis
from hopscope.papers.claim import Finding
from hopscope.papers.cost import in_flop, training_flop
from hopscope.papers.luck import Outcome, luck
from hopscope.papers.musat.recipes import tiny
from hopscope.papers.registry import PAPERS
from hopscope.papers.results_folder import Results
from hopscope.papers.table import Table

LAW, NEVER = KNOWN["musat/depth-law"], KNOWN["musat/nonic-above-0.7"]
ESSENTIAL = KNOWN["musat/ic-essential"]
SEEDS = LAW.beside[0]
SMOKE = Finding("–", "not measured", "smoke protocol: not the paper's models")


@pytest.fixture
def full(tmp_path: Path) -> Results:
    return saved(tmp_path / "full", tables(), "full")


def test_what_is_missing_names_its_commands(tmp_path: Path) -> None:
    nothing = PAPERS.results(tmp_path)
    for claim in KNOWN.values():
        commands = [f"`hopscope reproduce {target}`" for target in claim.targets]
        assert claim.finding(nothing) == Finding("–", "not measured", ", ".join(commands))
    results = saved(tmp_path / "empty", {target: [] for target in tables()}, "full")
    assert {claim.finding(results).verdict for claim in KNOWN.values()} == {"not measured"}
    results = saved(tmp_path / "some", {IC: tables()[IC]}, "full")
    assert ESSENTIAL.finding(results).evidence == "`hopscope reproduce musat/fig4-nonic`"
    rows = tuple(with_(row, run=name) for row, name in zip(tables()[DEPTH], "aabbb", strict=True))
    results.save_part(Table(DEPTH, "full", rows, wanted=3))
    found = KNOWN["musat/theorem-1"].finding(results)
    assert (
        found.evidence == f"`hopscope reproduce {DEPTH} --protocol full`: 2 of 3 runs are measured"
    )


def test_a_part_counts_where_the_judge_takes_it(full: Results) -> None:
    full.path(SEEDS).unlink()
    assert LAW.finding(full).evidence.endswith("; 3 models: 1 each of 1, 2, 3 layers")
    rows = tuple(with_(row, run="one") for row in tables()[SEEDS])
    for protocol, models in (("smoke", "3 models"), ("full", "4 models: 2 of 2 layers, 1 each of")):
        full.save_part(Table(SEEDS, protocol, rows, wanted=24))  # type: ignore[arg-type]
        assert f"; {models}" in LAW.finding(full).evidence


def test_a_table_whose_models_were_all_trained_longer_elsewhere_does_not_count(
    tmp_path: Path,
) -> None:
    short = [with_(row, steps=100, run=None) for row in tables()[IC]]
    results = saved(tmp_path, {IC: short}, "reduced")
    longer = [with_(row, run=f"of {row.layers}") for row in tables()[IC]]
    for rows, verdict, told in ((longer[:2], "under a reading", IC), (longer, "reproduced", "")):
        results.save_part(Table(SEEDS, "full", tuple(rows), wanted=24))
        found = LAW.finding(results)
        assert found.verdict == verdict
        assert (f"{IC}: " in found.basis) == bool(told) == (IC in found.evidence)


def test_less_training_refutes_and_never_confirms(full: Results, tmp_path: Path) -> None:
    assert {claim.id.removeprefix("musat/") for claim in KNOWN.values() if claim.only_full} == {
        "nonic-above-0.7", "ic-essential", "later-harder", "later-deeper", "depth-law",
        "hops-in-order",
    }  # fmt: skip
    reduced = saved(tmp_path / "reduced", tables(), "reduced")
    some = ("musat/theorem-1", "musat/llm-solve", "musat/d-loss")
    for claim in (each for each in KNOWN.values() if each.only_full or each.id in some):
        found, whole = claim.finding(reduced), claim.finding(full)
        assert all(f"{target}: reduced protocol" in found.basis for target in claim.targets)
        assert "protocol" not in whole.basis
        if claim.only_full:
            assert (found.verdict, whole.verdict) == ("under a reading", "reproduced")
            assert found.evidence.startswith(f"{whole.evidence}; holds with less training")
            assert all(target in found.evidence for target in claim.sources)
        else:
            assert (found.verdict, found.evidence) == (whole.verdict, whole.evidence)
    results = saved(tmp_path / "bent", bent(NONIC, 1, final=[0.69]), "reduced")
    assert NEVER.finding(results).verdict == "not reproduced"
    others = tuple(with_(row, seed=9, run=f"of {row.layers}") for row in tables()[IC])
    full.path(SEEDS).unlink()
    full.save_part(Table(SEEDS, "reduced", others, wanted=24))
    found = LAW.finding(full)
    assert found.verdict == "under a reading"
    assert f"{SEEDS}, another protocol" in found.evidence
    assert IC not in found.evidence


def test_a_smoke_table_decides_nothing(full: Results, tmp_path: Path) -> None:
    smoke = saved(tmp_path / "smoke", tables(), "smoke")
    assert all(claim.finding(smoke) == SMOKE for claim in KNOWN.values())
    few = tuple(with_(row, hops=2, final=row.final[:2]) for row in tables()[IC])
    full.path(IC).unlink()
    full.save(Table(IC, "smoke", few))  # nor beside a part of models as large as the paper's
    rows = tuple(with_(row, run="one") for row in tables()[IC][:1])
    full.save_part(Table(SEEDS, "reduced", rows, wanted=16))
    for claim in KNOWN.values():
        assert (claim.finding(full).verdict == "not measured") == (IC in claim.targets)


def test_a_table_that_lacks_runs_or_cannot_be_read_is_not_judged(full: Results) -> None:
    whole = full.table(NONIC)
    rows = tuple(with_(row, run=f"run {number}") for number, row in enumerate(whole.rows))
    for wanted, verdict in ((3, "reproduced"), (4, "not measured")):
        full.save(replace(whole, rows=rows, wanted=wanted))
        assert NEVER.finding(full).verdict == verdict
    path = full.path(ABC)
    path.write_text(path.read_text().replace('"needed"', '"wanted"', 1))
    found = KNOWN["musat/abc-mostly-idle"].finding(full)
    assert found.verdict == "not measured"
    assert f"line 2 of {path}" in found.evidence
    assert f"`hopscope reproduce {ABC}`" in found.evidence
    assert KNOWN["musat/d-loss"].finding(full).verdict == "reproduced"


def table(*seconds: float, precisions: tuple[str | None, ...] = (None, None)) -> Table:
    """Circuits of runs that took so long."""
    rows = [
        with_(circuit_row("key 0"), run=f"one-{seed}", seed=seed, seconds=its, precision=precision)
        for seed, (its, precision) in enumerate(zip(seconds, precisions, strict=False))
    ]
    return Table(ABC, "full", tuple(rows))


def test_runs_seeds_cost_and_arithmetic_of_a_table_are_told() -> None:
    half = table(60.0, 60.0)
    fleet = replace(half, rows=tuple(with_(row, run="fleet") for row in half.rows))
    recipe = tiny(1, 2, 400)
    smoke = tuple(with_(row, run=recipe.run_name()) for row in table(60.0).rows)
    for its, told in (
        (replace(half, wanted=3), "full protocol, 2 of 3 runs, 2 seeds, 2 min of training"),
        (replace(half, wanted=2), "2 runs, 2 seeds, 2 min of training"),
        (fleet, "1 run, 2 seeds, 1 min of training"),  # a run of several models counts once
        (table(60.0, 60.0, precisions=(None, "bf16")),
         "2 runs, 2 seeds, 2 min of training, in bf16"),
        (Table(ABC, "smoke", smoke),
         f"smoke protocol, 1 run, seed 0, {in_flop(training_flop(recipe))}, 1 min of training"),
    ):  # fmt: skip
        assert basis(its, PAPERS.targets[its.target]) == f"{its.target}: {told}"
    assert [in_flop(flop) for flop in (3e6, 9.96e12)] == ["0.003 GFLOP", "10 TFLOP"]


@pytest.mark.parametrize("mlp", [True, False])
def test_the_cost_of_a_training_is_that_of_every_product(mlp: bool) -> None:
    experiment = Experiment(
        task=Retrieval(hops=2, chains=3),
        model=Model(layers=3, heads=2, d_model=16, d_head=5, mlp=mlp),
        training=Training(steps=7, batch=4),
        seeds=(1, 2, 5),
    )
    model, ends = experiment.model, experiment.task.interface()
    width, heads, length = model.d_model, model.heads * model.head_width, ends.length
    products = length * ends.inputs * width + ends.read * width * ends.outputs
    for _ in range(model.layers):
        products += 3 * length * width * heads + length * heads * width  # q, k, v; out
        products += length * length * heads + length * length * heads  # scores; what they mix
        if mlp:
            products += length * width * model.mlp_width + length * model.mlp_width * width
    assert training_flop(experiment) == 6.0 * products * 7 * 4 * 3


def apart(outcomes: Sequence[Sequence[bool]]) -> float:
    """How much the models of readings disagree."""
    return sum(sum(its) * (len(its) - sum(its)) / len(its) for its in outcomes)


def dealt(outcomes: Sequence[Outcome]) -> float:
    """By going through every choice of the models for which the claim holds, seed by seed."""
    models = [(n, at) for n, its in enumerate(outcomes) for at in range(len(its))]
    choices = []
    for seed in {seed for its in outcomes for seed, _ in its}:
        owners = [(n, at) for n, at in models if outcomes[n][at][0] == seed]
        choices.append(list(combinations(owners, sum(outcomes[n][at][1] for n, at in owners))))
    values = []
    for chosen in product(*choices):
        holding = set(chain(*chosen))
        held = [[(n, at) in holding for at in range(len(its))] for n, its in enumerate(outcomes)]
        values.append(apart(held))
    here = apart([[holds for _, holds in its] for its in outcomes])
    return sum(value <= here + 1e-9 for value in values) / len(values)


READING = st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=3)


@given(st.lists(READING, min_size=1, max_size=4))
def test_luck_is_counted_over_every_way(outcomes: list[Outcome]) -> None:
    assert luck(outcomes) == pytest.approx(dealt(outcomes), abs=1e-12)


def of(*holds: bool) -> Outcome:
    """A reading's models of seeds 0, 1, …"""
    return list(enumerate(holds))


def test_what_each_seed_does_is_dealt_apart() -> None:
    yes, no = of(True, True, True), of(False, False, False)
    for outcomes, expected in (
        ([yes, no], 2 / 8),  # each seed holds under one of two readings
        ([of(True, True, False), of(False, False, True)], 1),
        ([of(True, False)] * 5, 1),  # what the seed decides says nothing of readings
        ([[(0, True)], [(1, False)]], 1),  # models of different seeds are never exchanged
        ([yes] * 8 + [no] * 9, 1 / 24_310**2),  # the ways to choose 8 of 17
    ):
        assert luck(outcomes) == pytest.approx(expected)
