"""Models whose circuit is known are taken apart: it is found, whichever way they look up.

Rows are kept as they come, and whoever cannot be taken apart is refused in one line.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from solving import find_circuit, in_one_piece, stopped

from hopscope.circuits import Circuit
from hopscope.circuits.components import Estimate
from hopscope.configs import LmCircuit, Tracing
from hopscope.errors import NotLearned, RunDamaged, RunMismatch
from hopscope.export.tracked import tracked
from hopscope.facts import FactGraph, Role, parse_facts, parse_role
from hopscope.lm.findings import LmCircuitRun, LmFindings, check_above_chance, sureties
from hopscope.lm.look_ups import LookUps
from hopscope.lm.model import LanguageModel
from hopscope.lm.pairs import ANSWER, followed
from hopscope.lm.patching import Mark
from hopscope.lm.rows import of_phase, saved_rows
from hopscope.memory import Memory
from hopscope.store import Store
from hopscope.web.mechanism import Traced
from hopscope.web.tensors import unpacked
from hopscope.web.views import Views

Case = tuple[bool, LmFindings]
Both = Callable[[bool], LanguageModel]
Folders = Callable[[bool], Path]
Make = Callable[..., LanguageModel]
BEGIN = {"0.0 key 0 → value 0", "0.0 key 1 → value 1", "0.2 query → answer"}
TRUE = {
    True: BEGIN | {"1.0 value 0 → answer", "2.0 value 1 → answer"},
    False: BEGIN | {"1.0 value 1 → value 0", "2.0 value 0 → answer"},
}
HOLDS = {
    True: {
        ("x0", "query"): (0, 0), ("x0", "key 0"): (0, 0), ("x0", "value 0"): (1, 1),
        ("x0", "answer"): (1, 1), ("x1", "value 0"): (0, 1), ("x1", "key 1"): (0, 0),
        ("x1", "value 1"): (1, 2), ("x1", "answer"): (2, 2), ("x2", "value 1"): (0, 2),
        ("x2", "answer"): (3, 3), ("x1…", "value 0"): (0, 1), ("x1…", "answer"): (2, 3),
    },
    False: {
        ("x0", "query"): (0, 0), ("x0", "key 0"): (0, 0), ("x0", "value 0"): (1, 2),
        ("x0", "answer"): (1, 2), ("x1", "value 0"): (0, 1), ("x1", "key 1"): (0, 0),
        ("x1", "value 1"): (1, 1), ("x2", "value 1"): (0, 1), ("x2", "value 0"): (2, 2),
        ("x2", "answer"): (3, 3), ("x1…", "value 0"): (0, 2), ("x1…", "answer"): (3, 3),
    },
}  # fmt: skip
"""From which layer to which a role holds a symbol, by the construction."""


def run_at(path: Path) -> LmCircuitRun:
    return LmCircuitRun(Store(path.parent).find(path.name))


def arrows(found: LmFindings) -> set[str]:
    return {
        f"{path.layer}.{path.head} {path.source} → {path.destination}"
        for path in found.circuit.paths
    }


@pytest.fixture(params=[True, False], ids=["stacked", "in place"])
def case(request: pytest.FixtureRequest, traced: Folders) -> tuple[bool, LmFindings]:
    return request.param, run_at(traced(request.param)).findings


def test_every_role_holds_what_was_planted_and_nothing_else(case: Case) -> None:
    stacked, found = case
    held = {
        (name, str(role)): its
        for name in found.shares
        for role in found.roles
        if (its := found.look_ups.held(role, name))
    }
    assert held == HOLDS[stacked]
    for (name, role), (first, last) in HOLDS[stacked].items():
        shares = found.shares[name][found.roles.index(parse_role(role))]
        for layer, share in zip(found.layers, shares, strict=True):
            assert share.mean == pytest.approx(float(first <= layer <= last), abs=0.01)


def test_the_circuit_is_the_one_that_was_planted(case: Case) -> None:
    stacked, found = case
    circuit = found.circuit
    assert arrows(found) == TRUE[stacked]
    assert len(circuit.components) == 5
    assert circuit.sufficient
    movers = {
        str(path) for each in circuit.components if each.kind == "moves" for path in each.paths
    }
    assert len(movers) == (1 if stacked else 2)
    assert Circuit.from_dict(circuit.to_dict()) == circuit


def test_the_circuit_alone_answers_as_the_model_does(case: Case) -> None:
    """And what was not measured is absent: rows are patched in the model, one by one."""
    circuit = case[1].circuit
    (score,) = circuit.scores
    assert (score.attention, score.rest) == ("computed", "interchange")
    assert score.recovered.mean == pytest.approx(1, abs=1e-3)
    assert score.agreement.mean == pytest.approx(0, abs=1e-3)
    assert score.same_answer.mean == score.same_answer.high == 1
    assert score.same_answer.low < 1  # of so few questions
    assert circuit.losses.prescribed is None
    assert circuit.recovered() == circuit.recovered("computed") == pytest.approx(1, abs=1e-3)
    for each in circuit.components:
        assert each.lost_computed is each.stability is None
        # No exchange of the proof reaches the rows that bring a key.
        by_value = all(path.source.kind == "value" for path in each.paths)
        assert (each.lost is not None) == by_value
        assert each.kind in (("moves", "routes") if by_value else ("routes",))


def test_a_row_that_no_later_row_reads_is_no_part_of_it(case: Case) -> None:
    _, found = case
    rows = [
        row | {"moved": np.zeros_like(row["moved"]).tolist()} if row["phase"] == "paths" else row
        for row in found.rows
    ]
    chosen = LmFindings(found.recipe, rows).chosen
    assert {row.destination for row in chosen} == {ANSWER}
    assert {row.destination for row in found.chosen} > {ANSWER}


def test_an_exchange_that_is_not_followed_is_absent(case: Case) -> None:
    """Not 0, which would say that no answer follows."""
    _, found = case
    guessed = {"x2": [1.0, 1.0, 1.0], "x1…": [1.0, 0.0, 1.0]}
    rows = [{**row, "clean": row["clean"] | guessed} for row in found.rows]
    there = LmFindings(found.recipe, rows)
    assert set(there.shares) == {"x0", "x1"}
    assert there.proofs() == []
    assert {its.exchange for its in there.confirmed} == {"x1"}
    assert there.to_dict()["verdict"][-2] == "look-ups: not measured"


def test_the_circuit_is_proved_on_fresh_questions(case: Case) -> None:
    stacked, found = case
    proofs = found.proofs()
    assert [its.exchange for its in proofs] == ["x1…", "x2"]
    for its in proofs:
        assert its.questions == 10
        for share, expected in (
            (its.circuit, 1), (its.rest, 0), (its.everything, 1), (its.random, 0), (its.more, 1),
        ):  # fmt: skip
            assert share.mean == pytest.approx(expected, abs=0.01)
    assert found.proofs("elsewhere") == []
    for its in found.confirmed:
        holds = HOLDS[stacked].get((its.exchange, str(its.role)), (1, 0))
        assert its.share.mean == pytest.approx(float(holds[0] <= its.layer <= holds[1]), abs=0.01)
        assert its.questions == 10
    told = {(its.exchange, str(its.role)) for its in found.confirmed}
    assert {("x2", "answer"), ("x1…", "answer"), ("x1", "answer"), ("x2", "query")} < told
    assert not any(exchange == "x0" for exchange, _ in told)


def test_what_the_page_reads_is_there(traced: Folders) -> None:
    """Tests of the page draw findings that are written by hand: they are of this form."""
    from tests.browser.test_main_seen import FOUND

    def check(found: Any, shown: Any) -> None:
        if isinstance(shown, dict):
            for name, each in shown.items():
                check(found[name], each)
        elif isinstance(shown, list) and shown:
            check(found[0], shown[0])

    folder = run_at(traced(True)).folder
    check(Traced(folder, Memory(2**20)).findings(), FOUND)


def test_fewer_exchanges_find_the_same_and_elsewhere_more_questions_can_be_asked(
    planted: Both, recipe: LmCircuit, tmp_path: Path
) -> None:
    few = {"mapped": 10, "searched": 10, "proved": 10, "gains": 0.3, "given": False}
    tracing = Tracing(**few, proved_elsewhere=12)
    both = recipe.model_copy(update={"elsewhere": recipe.prompts, "tracing": tracing})
    with in_one_piece():
        folder = find_circuit(both, lambda: planted(True), tmp_path)
    rows = saved_rows(folder)
    for phase, count in (("proof", 10), ("elsewhere", 12)):
        fresh = {row["index"] for row in of_phase(rows, phase)}
        assert len(fresh) == count
        assert fresh.isdisjoint(row["index"] for row in of_phase(rows, "answers"))
    found = LmCircuitRun(folder).findings
    assert set(found.shares) == {"x1", "x2", "x1…"}
    assert TRUE[True] - BEGIN < arrows(found) <= TRUE[True]


@pytest.mark.cuda
def test_on_a_gpu_the_circuit_is_the_same(planted: Both, recipe: LmCircuit, tmp_path: Path) -> None:
    own = planted(True)
    there = replace(own, model=deepcopy(own.model).cuda())
    found = LmCircuitRun(find_circuit(recipe, lambda: there, tmp_path)).findings
    assert arrows(found) == TRUE[True]
    assert (found.look_ups.way, found.look_ups.by) == ("stacked", "word")


def test_an_interval_is_as_wide_as_its_questions_and_cells_make_it() -> None:
    rng = np.random.default_rng(0)
    sure, moved = 1 + 0.1 * rng.standard_normal(10), 0.5 + 0.2 * rng.standard_normal(10)
    one, many = Estimate.of_ratio(moved, sure), Estimate.of_ratio(moved, sure, 1000)
    assert one.mean == many.mean == pytest.approx(moved.sum() / sure.sum())
    error = np.std(moved - one.mean * sure, ddof=1) / np.sqrt(10) / sure.mean()
    assert one.high - one.mean == pytest.approx(2.262 * error, rel=1e-3)
    assert many.high - many.mean == pytest.approx(7.04 * error, rel=0.05)
    rows = [{"clean": {"x1": [0.0, 1.0], "x2": [0.0, sign]}} for sign in (1.0, -1.0)]
    assert set(sureties(rows, ("x1", "x2"))) == {"x1"}


def test_stacked_and_in_place_are_told_apart(traced: Folders) -> None:
    stacked, placed = (run_at(traced(which)).findings for which in (True, False))
    assert (stacked.look_ups.way, stacked.look_ups.by) == ("stacked", "word")
    assert "the last look-up goes by word before layer 2" in stacked.verdict()
    found = placed.to_dict()
    assert found["verdict"][-2] == "look-ups: in place"
    assert placed.look_ups.by == "undecided"  # the place that answers looks nothing up but x_0
    assert found["answered"]["right"] == 10
    assert [its["role"] for its in found["confirmed"][:2]] == ["value 0", "key 1"]
    seen = stacked.lens["x2"]
    answer = stacked.roles.index(parse_role("answer"))
    assert seen.probability[answer, -1] > 0.99
    assert seen.rank[answer, -1] == 0
    assert seen.probability[answer, 0] == pytest.approx(0.25)
    assert seen.rank[answer, 0] > 3  # all logits are equal there: that is no first place


def test_what_a_row_loses_is_a_share_of_its_own_exchange(case: Case) -> None:
    """An exchange whose gap is ten times as large changes no share."""
    _, found = case
    rows = deepcopy(list(found.rows))
    for row in of_phase(rows, "proof"):
        for variants in (row["moved"][1], row["rows"][1]):
            for marks in variants:
                marks[Mark.LOSS] *= 10
    again = LmFindings(found.recipe, rows).circuit
    lost, same = ([e.lost.mean for e in its.components if e.lost] for its in (found.circuit, again))
    assert same == pytest.approx(lost)
    assert len(same) == 2


def test_the_page_and_trackers_get_what_was_found(traced: Folders) -> None:
    run = run_at(traced(True))
    found, folder = run.findings, run.folder
    id_ = run.name.rpartition("-")[2]
    _, shown = unpacked(Views(Store(folder.path.parent)).shown(id_).arrays("findings"))
    assert {f"{its['name']} {its['told']}" for its in shown["circuit"]} == TRUE[True]
    (model,) = tracked(folder)
    ((step, told),) = model.rows()
    assert step == folder.manifest.step
    assert told["answers/right"] == found.answered.right / found.answered.count
    for proof in found.proofs():
        assert told[f"proof/{proof.exchange}/circuit"] == proof.circuit.mean
    folder.manifest = folder.manifest.model_copy(update={"complete": False})
    assert model.rows() == []  # before all is measured


ROLES = (Role("value", 0), Role("value", 1), ANSWER)
LAYERS = (0, 2, 4, 6)
NEVER = (0.0, 0.0, 0.0, 0.0)

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
    return LookUps(graph, ROLES, LAYERS, shares, {})


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
LATE = {("x1…", "answer"): (0.0, 0.3, 0.8, 1.0), ("x2", "answer"): (0.0, 0.3, 0.7, 1.0)}
HALVES = {
    ("x1…", "answer"): (0.0, 0.0, 0.5, 1.0),
    ("x2", "value 0"): (0.0, 0.4, 0.4, 0.0),
    ("x2", "answer"): (0.0, 0.0, 0.1, 1.0),
}
WAYS: dict[str, tuple[Table, str]] = {
    "stacked": (STACKED, "stacked"),
    "in place": (IN_PLACE, "in place"),
    "in place, while x2 arrives little by little": (IN_PLACE | LATE, "in place"),
    "both": (STACKED | {("x2", "value 0"): (0.0, 0.6, 0.6, 0.0)}, "both"),
    "x1 and x2 come together, and value 0 has none of them": (
        IN_PLACE | {("x2", "value 0"): NEVER}, "undecided",
    ),
    "less than half of each": (HALVES, "undecided"),
}  # fmt: skip


def test_look_ups_are_made_one_way_or_the_other() -> None:
    for name, (table, way) in WAYS.items():
        found = look_ups(table)
        assert found.way == way, name
        assert found.in_words()[-2] == f"look-ups: {way}"
    first = "answer has x1 and not yet x2 before layer 4 (as the word itself 0.90)"
    assert look_ups(STACKED).in_words()[0] == first
    one = look_ups({("x1", "answer"): (0.0, 0.0, 1.0, 1.0)}, "x0->x1")
    assert one.in_words()[:2] == ["answer holds x1 before layers 4 … 6", "look-ups: one look-up"]


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


def test_other_weights_do_not_go_on(planted: Both, recipe: LmCircuit, store: Store) -> None:
    stopped(recipe, planted(True), store, 1)
    remedy = f"other weights than planted has now: `hopscope rm .* --store {store.root}`"
    with pytest.raises(RunMismatch, match=remedy):
        find_circuit(recipe, lambda: planted(False), store)


def test_a_model_at_chance_is_refused_before_any_patch(
    planted: Both, make_tiny: Make, recipe: LmCircuit, tmp_path: Path
) -> None:
    other = recipe.prompts.model_copy(update={"opening": True})
    both = recipe.model_copy(update={"elsewhere": other})
    for number, (asked, model, line) in enumerate((
        (recipe, make_tiny("raw", 3), r"planted answers equations-d2 at chance"),
        (both, planted(True), r"answers equations-d2-opened at chance: \d of 10"),
    )):  # fmt: skip
        store = Store(tmp_path / str(number))
        with pytest.raises(NotLearned, match=line):
            find_circuit(asked, lambda it=model: it, store)
        assert {row["phase"] for row in saved_rows(store.create(asked))} == {"answers"}


def test_answers_as_near_to_the_partners_are_refused(recipe: LmCircuit) -> None:
    clean = {name: [1.0, 1.0, 0.0] for name in followed(recipe)}
    unsure = [{"right": True, "acceptable": 4, "clean": {**clean, "x1": [1.0, 3.0, 0.0]}}] * 10
    with pytest.raises(NotLearned, match=r"on 10 questions of equations-d2 \(x0, x2, x1…\)"):
        check_above_chance(recipe, recipe.prompts, unsure, followed(recipe))


def test_what_is_no_row_is_refused(recipe: LmCircuit, tmp_path: Path) -> None:
    for number, row in enumerate((b'{"phase": "other", "index": 0}', b'{"phase": "roles"}')):
        folder = Store(tmp_path / str(number)).create(recipe)
        folder.commit({"rows/part-00000000.jsonl": row}, step=2)
        with pytest.raises(RunDamaged, match="did not write"):
            saved_rows(folder)
