"""From rows to verdicts: what is missing, less training, what it cost, and the permutation test
against every way in which outcomes can be dealt.
"""

from collections.abc import Sequence
from itertools import chain, combinations, product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from musat_rows import (
    ABC,
    DEPTH,
    IC,
    KNOWN,
    NONIC,
    D,
    bent,
    circuit_row,
    saved,
    table,
    tables,
    with_,
)

from hopscope.configs import Experiment, Model, Retrieval, Training
from hopscope.papers.cost import in_flop, sample_and_cost, training_flop
from hopscope.papers.judge import Finding
from hopscope.papers.permutation import Models, permutation_test
from hopscope.papers.registry import PAPERS

LAW, NEVER = KNOWN["musat/depth-law"], KNOWN["musat/nonic-above-0.7"]
(SEEDS,) = LAW.beside


def test_what_is_missing_names_its_commands(tmp_path: Path) -> None:
    nothing = PAPERS.results(tmp_path)
    for claim in KNOWN.values():
        commands = [f"`hopscope papers run {name}`" for name in claim.needs]
        assert claim.finding(nothing) == Finding("not measured", evidence=", ".join(commands))
    results = saved(tmp_path / "empty", {name: [] for name in tables()})
    assert {claim.finding(results).verdict for claim in KNOWN.values()} == {"not measured"}
    results = saved(tmp_path / "some", tables())
    lines = results.path(IC).read_text().splitlines(keepends=True)
    results.path(IC).write_text("".join(lines[:-1]))  # without its last run
    found = LAW.finding(results)
    assert found.evidence == f"`hopscope papers run {IC}` (full: 7 of 8 runs)"


def test_less_training_refutes_and_never_confirms(tmp_path: Path) -> None:
    full, reduced = (saved(tmp_path / name, tables(), name) for name in ("full", "reduced"))
    assert sum(claim.only_full for claim in KNOWN.values()) == 6
    for claim in KNOWN.values():
        if not claim.only_full:
            continue
        found, whole = claim.finding(reduced), claim.finding(full)
        assert (found.verdict, whole.verdict) == ("at smaller scale", "reproduced"), claim.id
        (note,) = found.notes
        assert all(name in note for name in claim.needs)
        assert all(f"{name}: reduced protocol" in "".join(found.cost) for name in claim.needs)
    results = saved(tmp_path / "bent", bent(NONIC, 1, final=[0.69]), "reduced")
    assert NEVER.finding(results).verdict == "not reproduced"
    # Models that were trained longer elsewhere leave nothing of the short ones to count.
    short = [with_(row, steps=100) for row in tables()[IC]]
    for longer, verdict in ((tables()[IC][:3], "at smaller scale"), (tables()[IC], "reproduced")):
        results = saved(tmp_path / f"{len(longer)}", {IC: short}, "reduced")
        saved(results.root, {SEEDS: longer})
        assert LAW.finding(results).verdict == verdict


def test_a_run_of_both_protocols_is_counted_once(tmp_path: Path) -> None:
    results = saved(tmp_path, {D: tables()[D]})
    assert [table.missing for table in results.tables(D)] == [(), ()]
    (cost,) = KNOWN["musat/d-order"].finding(results).cost
    assert cost.startswith(f"{D}: 5 runs")


def test_what_cannot_be_read_is_not_judged(tmp_path: Path) -> None:
    results = saved(tmp_path, tables())
    path = results.path(ABC)
    path.write_text(path.read_text().replace('"needed"', '"wanted"', 1))
    found = KNOWN["musat/abc-mostly-idle"].finding(results)
    assert found.verdict == "not measured"
    assert f"line 2 of {path}" in found.evidence
    assert f"`hopscope papers run {ABC}`" in found.evidence
    assert KNOWN["musat/d-loss"].finding(results).verdict == "reproduced"
    saved(tmp_path, {SEEDS: []})
    results.path(SEEDS).write_text("{}\n")  # rows beside those that are needed
    found = LAW.finding(results)
    assert (found.verdict, found.notes) == ("reproduced", (f"{SEEDS} cannot be read",))


def test_runs_seeds_and_cost_of_a_table_are_said() -> None:
    row = with_(circuit_row("key 0"), run="one", seconds=60.0, precision="bf16")
    rows = [row, with_(row, run="two", seed=1, seconds=60.0)]
    experiment = PAPERS.experiments[ABC]
    said = sample_and_cost(table(ABC, rows), experiment)
    assert said == f"{ABC}: full protocol, 1 of 3 runs, 2 seeds, 2 min of training, in bf16"
    computed = sample_and_cost(table(DEPTH, tables()[DEPTH]), PAPERS.experiments[DEPTH])
    assert "computed, without any training" in computed
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
    """How much the models of variants disagree."""
    return sum(sum(its) * (len(its) - sum(its)) / len(its) for its in outcomes)


def dealt(outcomes: Sequence[Models]) -> float:
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


VARIANT = st.lists(st.tuples(st.sampled_from("012"), st.booleans()), min_size=1, max_size=3)


@given(st.lists(VARIANT, min_size=1, max_size=4))
def test_chance_is_counted_over_every_way(outcomes: list[Models]) -> None:
    assert permutation_test(outcomes) == pytest.approx(dealt(outcomes), abs=1e-12)


def of(*holds: bool) -> Models:
    """A variant's models of seeds 0, 1, …"""
    return [(str(seed), its) for seed, its in enumerate(holds)]


def test_what_each_seed_does_is_dealt_apart() -> None:
    yes, no = of(True, True, True), of(False, False, False)
    for outcomes, expected in (
        ([yes, no], 2 / 8),  # each seed holds under one of two variants
        ([of(True, True, False), of(False, False, True)], 1),
        ([of(True, False)] * 5, 1),  # what the seed decides says nothing of variants
        ([[("0", True)], [("1", False)]], 1),  # models of different seeds are never exchanged
        ([yes] * 8 + [no] * 9, 1 / 24_310**2),  # the ways to choose 8 of 17
    ):
        assert permutation_test(outcomes) == pytest.approx(expected)
