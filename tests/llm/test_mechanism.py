"""What is found in models whose circuit is known is their circuit, whichever way they look up."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hopscope.circuits import Circuit
from hopscope.configs import LlmMechanism, Prompts, Tracing
from hopscope.facts import parse_role
from hopscope.llm.local import LocalModel
from hopscope.llm.mechanism import LlmFindings, MechanismRun
from hopscope.llm.rows import of_phase
from hopscope.llm.tracer import trace
from hopscope.report.mechanism import mechanism_figure
from hopscope.report.words import remarks
from hopscope.sharing.tracked import tracked
from hopscope.store import RunFolder, Store
from hopscope.web.tensors import unpacked
from hopscope.web.views import Views

RESULTS = Path(__file__).parents[2] / "results/llm"
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


def test_what_was_not_measured_is_absent(case: tuple[bool, LlmFindings]) -> None:
    """Rows are patched in the model; of the circuit alone is known what all of it does, and heads
    outside of it do what they do.
    """
    circuit = case[1].circuit
    assert circuit.losses.own is circuit.finds_its_way is None
    assert not any("nothing else tells them where to look" in line for line in remarks(circuit))
    for part in circuit.parts:
        assert part.cost is part.own_cost is part.votes is None
        assert part.alone_cost is not None
    assert all(report.name != "idle" for report in circuit.heads)


def measured(model: str, **more: object) -> LlmFindings:
    """What the committed rows of a model come to."""
    rows = (RESULTS / f"mechanism-{model}-rows.jsonl").read_text().splitlines()
    return LlmFindings(LlmMechanism(model=model, **more), [*map(json.loads, rows)])


def test_a_row_of_two_sources_looks_at_them_as_it_was_measured_to() -> None:
    tracing = Tracing(mapped=48, searched=24, every=6, gains=0.15, most=16)
    prompts = Prompts(formulation="equations", hops=1, opening=True)
    found = measured("smollm2-135m", prompts=prompts, questions=100, tracing=tracing)
    looks = np.mean(
        [
            row["looks"][number][0]
            for row in of_phase(found.rows, "heads")
            for number, (layer, role, _) in enumerate(row["cells"])
            if (layer, str(found.roles[role])) == (23, "answer")
        ],
        0,
    )
    value, query = (looks[found.roles.index(parse_role(role))] for role in ("value 0", "query"))
    aim = found.circuit.mechanism(23, 0).of(parse_role("answer"))
    told = {str(target): weight for target, weight in aim.parts}
    assert told == pytest.approx(
        {"value 0": value / (value + query), "query": query / (value + query)}
    )
    assert told["value 0"] == pytest.approx(0.61, abs=0.005)
    drawn = [axes for axes in mechanism_figure(found).axes if axes.axison and axes.get_title()]
    assert [axes.get_title() for axes in drawn][-1] == "logit lens: x1"  # and of no other symbol
    assert len(drawn) == len(found.shares) + 1


def test_a_row_is_of_a_kind_only_if_answers_were_seen_to_need_it_so() -> None:
    tracing = Tracing(mapped=4, searched=4, every=2, gains=0.1, most=16, given=False)
    prompts = Prompts(formulation="equations", hops=2, opening=True)
    other = prompts.model_copy(update={"formulation": "lives-with"})
    more = {"prompts": prompts, "elsewhere": other, "questions": 20, "tracing": tracing}
    found = measured("qwen2.5-coder-1.5b", **more)
    assert {part.name: part.kind for part in found.circuit.parts} == {
        "18.3": None, "20.5": None, "21.8": None,
        "22.7": "carries", "22.10": "carries", "23.3": "carries", "23.4": "carries",
    }  # fmt: skip
    assert [len(its.random) for its in found.proofs()] == [20, 20]
    # Of 20 draws 3 met no question, and 3 only such as are answered for the partner.
    assert [len(its.random) for its in found.proofs("elsewhere")] == [14, 14]


def test_an_exchange_after_which_answers_are_not_its_own_is_absent(
    case: tuple[bool, LlmFindings],
) -> None:
    """Not 0, which would say that no answer follows."""
    _, found = case
    guessed = {"x2": [1.0, 1.0, 1.0], "x1…": [1.0, 0.0, 1.0]}
    rows = [{**row, "clean": row["clean"] | guessed} for row in found.rows]
    there = LlmFindings(found.recipe, rows)
    assert set(there.shares) == {"x0", "x1"}
    assert there.proofs() == []
    assert {its.exchange for its in there.confirmed} == {"x1"}
    assert there.to_dict()["verdict"] == ["look-ups: not measured"]


def test_the_circuit_is_proved_and_confirmed_on_fresh_questions(
    case: tuple[bool, LlmFindings],
) -> None:
    stacked, found = case
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
    for its in found.confirmed:
        holds = HOLDS[stacked].get((its.exchange, str(its.role)), (1, 0))
        assert its.share.mean == pytest.approx(float(holds[0] <= its.layer <= holds[1]), abs=0.01)
        assert its.questions == 3
    told = {(its.exchange, str(its.role)) for its in found.confirmed}
    assert {("x2", "answer"), ("x1…", "answer"), ("x1", "answer"), ("x2", "query")} < told
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
    assert stacked.look_ups.way() == "stacked where it is asked"
    told = placed.to_dict()
    assert told["verdict"][-1] == "look-ups: in place"
    assert told["answered"]["right"] == 5
    seen = stacked.lens["x2"]
    answer = stacked.roles.index(parse_role("answer"))
    assert seen.probability[answer, -1] > 0.99
    assert seen.rank[answer, -1] == 0
    assert seen.probability[answer, 0] == pytest.approx(0.25)


def test_the_page_and_trackers_get_what_was_found(traced: Callable[[bool], Path]) -> None:
    run = run_at(traced(True))
    found, folder = run.findings, run.folder
    id_ = run.name.rpartition("-")[2]
    _, shown = unpacked(Views(Store(folder.path.parent)).arrays(id_, "findings"))
    assert {f"{part['name']} {part['told']}" for part in shown["circuit"]} == TRUE[True]
    assert shown["verdict"] == found.verdict()
    (model,) = tracked(folder)
    ((step, told),) = model.rows()
    assert step == folder.manifest.step
    expected = {"answers/right": found.answered.right / found.answered.count}
    for proof in found.proofs():
        expected[f"proof/{proof.name}/random"] = sum(proof.random) / 2
        for part in ("knocked", "alone", "everything"):
            expected[f"proof/{proof.name}/{part}"] = getattr(proof, part).mean
    assert told == pytest.approx(expected | {"answers/guessing": 0.25})
    folder.manifest = folder.manifest.model_copy(update={"complete": False})
    assert model.rows() == []  # before all is measured
