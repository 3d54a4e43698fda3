"""What is found in models whose circuit is known is their circuit, whichever way they look up."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hopscope.circuits import Circuit
from hopscope.configs import LlmMechanism, Tracing
from hopscope.facts import parse_role
from hopscope.llm.local import LocalModel
from hopscope.llm.mechanism import LlmFindings, MechanismRun
from hopscope.llm.tracer import trace
from hopscope.sharing.tracked import tracked
from hopscope.store import RunFolder, Store
from hopscope.web.tensors import unpacked
from hopscope.web.views import Views

BEGIN = {"0.0 value 0 ← key 0", "0.0 value 1 ← key 1", "0.2 answer ← query"}
TRUE = {
    True: BEGIN | {"1.0 answer ← value 0", "2.0 answer ← value 1"},
    False: BEGIN | {"1.0 value 0 ← value 1", "2.0 answer ← value 0"},
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


def run_at(path: Path) -> MechanismRun:
    folder = Store(path.parent).find(path.name)
    assert isinstance(folder, RunFolder)
    return MechanismRun(folder)


@pytest.fixture(params=[True, False], ids=["stacked", "in place"])
def case(
    request: pytest.FixtureRequest, traced: Callable[[bool], Path]
) -> tuple[bool, LlmFindings]:
    return request.param, run_at(traced(request.param)).findings


def test_every_role_holds_what_was_planted_and_nothing_else(case: tuple[bool, LlmFindings]) -> None:
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


def test_the_circuit_is_the_one_that_was_planted(case: tuple[bool, LlmFindings]) -> None:
    stacked, found = case
    circuit = found.circuit
    assert {f"{p.layer}.{p.head} {p.reader} ← {p.source}" for p in circuit.paths} == TRUE[stacked]
    assert len(circuit.parts) == 5
    assert circuit.solved
    carriers = {
        str(path) for part in circuit.parts if part.kind == "carries" for path in part.paths
    }
    assert len(carriers) == (1 if stacked else 2)
    assert Circuit.from_dict(circuit.to_dict()) == circuit


def test_the_circuit_is_proved(case: tuple[bool, LlmFindings]) -> None:
    _, found = case
    proofs = found.proofs()
    assert [its.name for its in proofs] == ["x1…", "x2"]
    for its in proofs:
        assert its.questions == 3
        assert its.knocked.mean == pytest.approx(1, abs=0.01)
        assert its.alone.mean == pytest.approx(0, abs=1e-3)
        assert its.everything.mean == pytest.approx(1, abs=0.01)
        assert max(its.random) < 0.01
        assert its.beaten == 0
    assert found.proofs("elsewhere") == []


def test_what_roles_hold_is_confirmed_on_fresh_questions(case: tuple[bool, LlmFindings]) -> None:
    stacked, found = case
    for its in found.confirmed:
        holds = HOLDS[stacked].get((its.exchange, str(its.role)), (1, 0))
        assert its.share.mean == pytest.approx(float(holds[0] <= its.layer <= holds[1]), abs=0.01)
        assert its.questions == 3
    told = {(its.exchange, str(its.role)) for its in found.confirmed}
    clear = {("x2", "answer"), ("x1…", "answer"), ("x1", "answer"), ("x2", "query")}
    assert clear < told
    assert not any(exchange == "x0" for exchange, _ in told)


def test_fewer_questions_and_exchanges_find_the_same_of_what_is_exchanged(
    planted: Callable[[bool], LocalModel], recipe: LlmMechanism, tmp_path: Path
) -> None:
    tracing = Tracing(mapped=3, searched=2, proved=4, draws=2, met=1, gains=0.3, given=False)
    thrifty = recipe.model_copy(update={"tracing": tracing})
    found = MechanismRun(trace(thrifty, lambda: planted(True), str(tmp_path))).findings
    assert set(found.shares) == {"x1", "x2", "x1…"}
    paths = {f"{p.layer}.{p.head} {p.reader} ← {p.source}" for p in found.circuit.paths}
    assert TRUE[True] - BEGIN < paths <= TRUE[True]
    for its in found.proofs():
        assert its.knocked.mean == pytest.approx(1, abs=0.01)
        assert len(its.random) == 2
        assert abs(its.drawn.mean) < 0.01


def test_stacked_and_in_place_are_told_apart(traced: Callable[[bool], Path]) -> None:
    stacked, placed = (run_at(traced(which)).findings for which in (True, False))
    assert (stacked.look_ups.way(), placed.look_ups.way()) == (
        "stacked where it is asked",
        "in place",
    )
    assert (
        "answer has x1 and not yet x2 before layers 2 … 2 (as the word itself 1.00)"
        in stacked.verdict()
    )
    assert "value 0 holds x2 before layers 2 … 2" in placed.verdict()
    told = placed.to_dict()
    assert told["verdict"][-1] == "look-ups: in place"
    assert told["answered"]["right"] == 5
    seen = stacked.lens["x2"]
    answer = stacked.roles.index(parse_role("answer"))
    assert seen.probability[answer, -1] > 0.99
    assert seen.rank[answer, -1] == 0
    assert seen.probability[answer, 0] == pytest.approx(0.25)


def test_the_page_tells_what_was_found(traced: Callable[[bool], Path]) -> None:
    run = run_at(traced(True))
    views = Views(Store(run.folder.path.parent))
    id_ = run.name.rpartition("-")[2]
    assert views.run(id_)["traced"]["model"] == "planted"
    _, found = unpacked(views.arrays(id_, "findings"))
    assert {f"{part['name']} {part['told']}" for part in found["circuit"]} == TRUE[True]
    assert found["verdict"] == run.findings.verdict()
    assert set(found["follows"]) == set(run.findings.shares)


def test_trackers_get_what_was_found_once_all_is_measured(traced: Callable[[bool], Path]) -> None:
    run = run_at(traced(True))
    (model,) = tracked(run.folder)
    ((step, told),) = model.rows()
    found = run.findings
    parts = ("knocked", "alone", "everything", "random")
    assert {*told} == {"answers/right", "answers/guessing"} | {
        f"proof/{proof.name}/{part}" for proof in found.proofs() for part in parts
    }
    assert step == run.folder.manifest.step
    assert told["answers/right"] == found.answered.right / found.answered.count
    for proof in found.proofs():
        assert told[f"proof/{proof.name}/knocked"] == proof.knocked.mean
        assert told[f"proof/{proof.name}/random"] == pytest.approx(sum(proof.random) / 2)
    run.folder.manifest = run.folder.manifest.model_copy(update={"complete": False})
    assert model.rows() == []
