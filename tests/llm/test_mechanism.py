"""Models whose circuit is known are taken apart: it is found, whichever way they look up.

Rows are kept as they come, and whoever cannot be taken apart is refused in one line.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from calling import watcher

from hopscope.circuits import Circuit
from hopscope.circuits.components import Estimate
from hopscope.configs import LlmMechanism, Prompts, Tracing
from hopscope.errors import ConfigError, Interrupted, NotLearned, RunDamaged, RunMismatch
from hopscope.facts import FactGraph, Role, parse_facts, parse_role
from hopscope.llm.heads import ANSWER
from hopscope.llm.local import LocalModel
from hopscope.llm.mechanism import LlmFindings, MechanismRun
from hopscope.llm.rows import PART, ROWS, Measured, of_phase, rows_of
from hopscope.llm.tracer import Tracer, trace
from hopscope.llm.verdict import LookUps
from hopscope.llm.weighing import check_answers, check_sure, followed
from hopscope.report.mechanism import mechanism_figure
from hopscope.report.words import remarks
from hopscope.runs.runner import complete
from hopscope.runs.stop import Stop
from hopscope.sharing.tracked import tracked
from hopscope.store import RunFolder, Store
from hopscope.web.tensors import unpacked
from hopscope.web.views import Views

Case = tuple[bool, LlmFindings]
Both = Callable[[bool], LocalModel]
Folders = Callable[[bool], Path]
Make = Callable[..., LocalModel]
RESULTS = Path(__file__).parents[2] / "results/llm"
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


def run_at(path: Path) -> MechanismRun:
    folder = Store(path.parent).find(path.name)
    assert isinstance(folder, RunFolder)
    return MechanismRun(folder)


@pytest.fixture(params=[True, False], ids=["stacked", "in place"])
def case(request: pytest.FixtureRequest, traced: Folders) -> tuple[bool, LlmFindings]:
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
    assert {f"{p.layer}.{p.head} {p.source} → {p.reader}" for p in circuit.paths} == TRUE[stacked]
    assert len(circuit.components) == 5
    assert circuit.sufficient
    movers = {
        str(path) for each in circuit.components if each.kind == "moves" for path in each.paths
    }
    assert len(movers) == (1 if stacked else 2)
    assert Circuit.from_dict(circuit.to_dict()) == circuit


def test_what_was_not_measured_is_absent(case: Case) -> None:
    """Rows are patched in the model; of the circuit alone is known what all of it does."""
    circuit = case[1].circuit
    assert circuit.losses.computed is None
    assert circuit.scores == ()
    assert not any("computed" in line for line in (*remarks(circuit), circuit.verdict))
    for each in circuit.components:
        assert each.lost_computed is each.stability is None
        assert each.lost is not None


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
    target = found.circuit.pattern(23, 0).of(parse_role("answer"))
    told = {str(source): weight for source, weight in target.parts}
    assert told == pytest.approx(
        {"value 0": value / (value + query), "query": query / (value + query)}
    )
    assert told["value 0"] == pytest.approx(0.61, abs=0.005)
    drawn = [axes for axes in mechanism_figure(found).axes if axes.axison and axes.get_title()]
    assert [axes.get_title() for axes in drawn][-1] == "logit lens: x1"  # and of no other symbol
    assert len(drawn) == len(found.shares) + 1


def test_of_qwen_a_row_is_of_a_kind_only_if_answers_were_seen_to_need_it_so() -> None:
    tracing = Tracing(mapped=4, searched=4, every=2, gains=0.1, most=16, given=False)
    prompts = Prompts(formulation="equations", hops=2, opening=True)
    other = prompts.model_copy(update={"formulation": "lives-with"})
    more = {"prompts": prompts, "elsewhere": other, "questions": 20, "tracing": tracing}
    found = measured("qwen2.5-coder-1.5b", **more)
    assert {each.name: each.kind for each in found.circuit.components} == {
        "18.3": None, "20.5": None, "21.8": None,
        "22.7": "moves", "22.10": "moves", "23.3": "moves", "23.4": "moves",
    }  # fmt: skip
    assert [len(its.random) for its in found.proofs()] == [20, 20]
    # Of 20 draws 3 met no question, and 3 only such as are answered for the partner.
    assert [len(its.random) for its in found.proofs("elsewhere")] == [14, 14]
    holds = found.look_ups  # it stacks by something that is half the word
    assert holds.held(ANSWER, "x1") is holds.held(Role("value", 0), "x2") is None
    assert holds.ahead(ANSWER, "x1") == (20, 22)
    assert holds.way() == "stacked where it is asked"


def test_an_exchange_that_is_not_followed_is_absent(case: Case) -> None:
    """Not 0, which would say that no answer follows."""
    _, found = case
    guessed = {"x2": [1.0, 1.0, 1.0], "x1…": [1.0, 0.0, 1.0]}
    rows = [{**row, "clean": row["clean"] | guessed} for row in found.rows]
    there = LlmFindings(found.recipe, rows)
    assert set(there.shares) == {"x0", "x1"}
    assert there.proofs() == []
    assert {its.exchange for its in there.confirmed} == {"x1"}
    assert there.to_dict()["verdict"] == ["look-ups: not measured"]


def test_the_circuit_is_proved_on_fresh_questions(case: Case) -> None:
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


def test_fewer_questions_and_exchanges_find_the_same(
    planted: Both, recipe: LlmMechanism, tmp_path: Path
) -> None:
    tracing = Tracing(mapped=3, searched=2, proved=4, draws=2, met=1, gains=0.3, given=False)
    thrifty = recipe.model_copy(update={"tracing": tracing})
    found = MechanismRun(trace(thrifty, lambda: planted(True), str(tmp_path))).findings
    assert set(found.shares) == {"x1", "x2", "x1…"}
    paths = {f"{p.layer}.{p.head} {p.source} → {p.reader}" for p in found.circuit.paths}
    assert TRUE[True] - BEGIN < paths <= TRUE[True]
    for its in found.proofs():
        assert its.knocked.mean == pytest.approx(1, abs=0.01)
        assert len(its.random) == 2
        assert abs(its.drawn.mean) < 0.01


def test_stacked_and_in_place_are_told_apart(traced: Folders) -> None:
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


def test_the_page_and_trackers_get_what_was_found(traced: Folders) -> None:
    run = run_at(traced(True))
    found, folder = run.findings, run.folder
    id_ = run.name.rpartition("-")[2]
    _, shown = unpacked(Views(Store(folder.path.parent)).arrays(id_, "findings"))
    assert {f"{its['name']} {its['told']}" for its in shown["circuit"]} == TRUE[True]
    (model,) = tracked(folder)
    ((step, told),) = model.rows()
    assert step == folder.manifest.step
    assert told["answers/right"] == found.answered.right / found.answered.count
    for proof in found.proofs():
        assert told[f"proof/{proof.name}/random"] == pytest.approx(sum(proof.random) / 2)
        assert told[f"proof/{proof.name}/knocked"] == proof.knocked.mean
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
    return LookUps(graph, ROLES, LAYERS, shares)


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
HARDLY_THE_WORD = {("x1", "answer"): (0.0, 0.0, 0.1, 0.0)}
WAYS: dict[str, tuple[Table, str]] = {
    "stacked": (STACKED, "stacked where it is asked"),
    "stacked, by something else than the word": (
        STACKED | HARDLY_THE_WORD, "stacked where it is asked",
    ),
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
        assert found.way() == way, name
        assert found.told()[-1] == f"look-ups: {way}"
    assert look_ups(STACKED).told()[:2] == [
        "answer has x1 and not yet x2 before layers 4 … 4 (as the word itself 0.90)",
        "answer holds x2 before layers 6 … 6",
    ]
    assert look_ups(IN_PLACE).told()[0] == "value 0 holds x2 before layers 4 … 4"
    one = look_ups({("x1", "answer"): (0.0, 0.0, 1.0, 1.0)}, "x0->x1")
    assert one.told() == ["answer holds x1 before layers 4 … 6"]  # which cannot be stacked


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


def stopped(recipe: LlmMechanism, model: LocalModel, store: Store, step: int) -> None:
    """A run that is asked to stop after a number of questions."""
    stop = Stop()
    shown = watcher(advance=lambda done, _: stop.ask("test") if done >= step else None)
    with pytest.raises(Interrupted):
        complete(recipe, lambda folder: Tracer(recipe, model, folder), store, shown, stop)


def test_a_stopped_run_ends_with_the_same_rows(
    planted: Both, traced: Folders, recipe: LlmMechanism, tmp_path: Path
) -> None:
    whole = (traced(True) / ROWS).read_bytes()
    store = Store(tmp_path)
    for step in (4, 11, 14):
        stopped(recipe, planted(True), store, step)
        assert store.create(recipe).files(PART)
    folder = trace(recipe, lambda: planted(True), store)
    assert (folder.path / ROWS).read_bytes() == whole
    assert folder.verify() == []
    assert trace(recipe, pytest.fail, store).path == folder.path  # complete: no model is made


def test_other_weights_do_not_go_on(planted: Both, recipe: LlmMechanism, store: Store) -> None:
    stopped(recipe, planted(True), store, 1)
    with pytest.raises(RunMismatch, match="begun with other weights than planted has now"):
        trace(recipe, lambda: planted(False), store)


class GuessesAnew(Tracer):
    """Of a model that knows none of the questions that are to prove its circuit."""

    def _asked(self, phase: str, prompts: Prompts, its: Sequence[str]) -> list[Measured]:
        return [{**row, "right": False} for row in super()._asked(phase, prompts, its)]


def test_what_is_guessed_is_refused_before_any_patch(
    planted: Both, make_tiny: Make, recipe: LlmMechanism, tmp_path: Path
) -> None:
    other = recipe.prompts.model_copy(update={"opening": True})
    both = recipe.model_copy(update={"elsewhere": other})
    for number, (asked, tracer, model, line) in enumerate((
        (recipe, Tracer, make_tiny("raw", 3), r"planted answers equations-d2 at guessing level"),
        (both, Tracer, planted(True), r"answers equations-d2-opened at guessing level: 1 of 3"),
        (recipe, GuessesAnew, planted(True), r"answers equations-d2 at guessing level: 0 of 3"),
    )):  # fmt: skip
        store = Store(tmp_path / str(number))
        with pytest.raises(NotLearned, match=line):
            complete(
                asked, lambda folder, it=(asked, tracer, model): it[1](it[0], it[2], folder), store
            )
        assert {row["phase"] for row in rows_of(store.create(asked))} == {"answers"}


def test_too_few_questions_are_refused(recipe: LlmMechanism) -> None:
    clean = {name: [1.0, 1.0, 0.0] for name in followed(recipe)}
    unsure = [{"right": True, "acceptable": 4, "clean": {**clean, "x1": [1.0, 3.0, 0.0]}}] * 3
    with pytest.raises(NotLearned, match=r"on 3 questions \(x0, x2, x1…\): take more \(--mapped\)"):
        check_sure(recipe, unsure, followed(recipe), "mapped")
    with pytest.raises(NotLearned, match=r"take more \(--proved\)"):
        check_answers(recipe, recipe.prompts, unsure, followed(recipe), "proved")


def test_elsewhere_more_questions_can_be_asked(
    planted: Both, recipe: LlmMechanism, tmp_path: Path
) -> None:
    tracing = recipe.tracing.model_copy(update={"proved_elsewhere": 5})
    both = recipe.model_copy(update={"elsewhere": recipe.prompts, "tracing": tracing})
    folder = trace(both, lambda: planted(True), str(tmp_path))
    assert len(of_phase(rows_of(folder), "proof")) == 3
    assert len(of_phase(rows_of(folder), "elsewhere")) == 5


def test_what_is_no_row_is_refused(recipe: LlmMechanism, tmp_path: Path) -> None:
    one = b'{"phase": "roles", "index": 0}\n'
    for number, (text, reason) in enumerate((
        (one * 2, "phase roles has questions that were not asked, or twice"),
        (b"{", "holds what is no row of it"),
        (b'{"phase": "other", "index": 0}', "holds what is no row of it"),
        (b'{"phase": "roles"}', "holds what is no row of it"),
    )):  # fmt: skip
        folder = Store(tmp_path / str(number)).create(recipe)
        folder.commit({f"{PART}00000000.jsonl": text}, step=2)
        with pytest.raises(RunDamaged, match=reason):
            rows_of(folder)


MISTAKES = [
    ({"model": "http://127.0.0.1:1/v1#x"}, "is an endpoint, which shows no weights"),
    ({"seeds": (0, 1)}, "a mechanism is searched with one"),
    ({"questions": 4, "tracing": Tracing(searched=5)}, "searched is 5 of 4 questions"),
    ({"questions": 4, "tracing": Tracing(mapped=5, searched=2)}, "mapped is 5 of 4 questions"),
    ({"tracing": Tracing(searched=2, draws=2, met=3)}, "met is 3 of 2 draws"),
    ({"prompts": Prompts(formulation="f1", hops=2, chains=2)}, "cannot be paired: answers are"),
    ({"elsewhere": Prompts(formulation="functions")}, "equations-d2 has no role 'key 2'"),
    ({"elsewhere": Prompts(formulation="f2", hops=1)}, "lives-with-d1 has no role 'key 1'"),
]


def test_what_cannot_be_traced_is_one_line(recipe: LlmMechanism) -> None:
    for changed, answer in MISTAKES:
        fields = {name: getattr(recipe, name) for name in LlmMechanism.model_fields} | changed
        with pytest.raises(ConfigError, match=answer) as refused:
            LlmMechanism(**fields)
        assert len(str(refused.value).splitlines()) == 1
