"""Discovery on models whose circuits are known, and on those that have none."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from every_task import one_hot
from torch import Tensor, nn

from hopscope.circuits import (
    BlockAdapter,
    CallbackModel,
    Circuit,
    Drawn,
    Examples,
    OwnTask,
    adapter_of,
    along,
    attention_maps,
    budget,
    discover,
    examples_of,
    progress,
    target,
)
from hopscope.circuits.ablation import Ablation
from hopscope.circuits.adapters.blocks import BlockAttend
from hopscope.circuits.budget import CACHES, KEPT_BYTES
from hopscope.circuits.examples import Questions
from hopscope.circuits.pattern import AS_IN_MODEL, ITSELF, PREVIOUS, Pattern, Target
from hopscope.circuits.progress import SECONDS, Progress, watched
from hopscope.circuits.proposals import proposed_targets
from hopscope.circuits.search import (
    Required,
    Search,
    completed,
    drafted,
    improved,
    lightened,
    restored,
    simplified,
)
from hopscope.configs import ConditionalRetrieval, Discovery, Model, Retrieval, VectorTask
from hopscope.errors import CircuitError, ConfigError, NotLearned
from hopscope.facts import Role, parse_role
from hopscope.models import Transformer
from hopscope.models.planted import Planted, planted
from hopscope.study import Study
from hopscope.tasks import Batch, Roles, dataset, question_losses

Rows = set[tuple[tuple[int, int], Role]]


def rows_of(circuit: Circuit) -> Rows:
    return {row for each in circuit.components for row in each.rows}


def test_a_hop_that_the_model_does_not_answer_warns_of_nothing() -> None:
    """Its loss is the same with everything ablated."""
    known = planted(Retrieval(hops=2, chains=2, dim=8, symbols="one-hot"))
    with torch.no_grad():
        known.model.head.weight[8:] = 0
    circuit = discover(known.model, known.task, examples=16, force=True)
    assert [path.source for path in circuit.paths if path.destination == Role("query")] == [
        Role("value", 0)
    ]


def check_planted(known: Planted, circuit: Circuit, missing: int = 0) -> None:
    """All paths, and no other rows; or all but some of them, and perhaps other rows. Then a head
    that is left out still changes the answers.
    """
    truth = {((path.layer, path.head), path.destination) for path in known.paths}
    if missing:
        assert len({*known.paths} - {*circuit.paths}) <= missing
        assert len(truth - rows_of(circuit)) <= missing
    else:
        assert {*circuit.paths} == {*known.paths}
        assert rows_of(circuit) == truth
    assert circuit.sufficient
    assert circuit.self_contained
    assert not circuit.unnamed
    assert circuit.verdict.startswith("Partly explained" if missing else "Explained")


CHAINS: list[tuple[VectorTask, dict[str, Any]]] = [
    (one_hot(1, 2), {}),
    (one_hot(2, 4), {"spare_layers": [1], "heads": 2}),
    (one_hot(3, 2), {"twins": True}),
    (one_hot(4, 4), {}),
    (one_hot(5, 2), {"spare_layers": [0]}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("task", "options"), CHAINS, ids=str)
def test_planted_circuits_are_recovered_exactly(task: VectorTask, options: dict[str, Any]) -> None:
    known = planted(task, **options)
    check_planted(known, discover(known.model, task, examples=32))


@pytest.mark.slow
def test_a_row_that_is_nearly_not_needed_is_found_or_lacking() -> None:
    """With two chains, one step routes less than 1 % of the gap: the search may leave it out."""
    known = planted(one_hot(4, 2))
    for seed in range(2):
        circuit = discover(known.model, known.task, seed=seed)
        left = {*known.paths} - {*circuit.paths}
        assert {*circuit.paths} <= {*known.paths}
        assert len(left) <= 1
        assert len(circuit.flow.jumps) == len(left)
        assert circuit.verdict.startswith("Partly explained" if left else "Explained")


@pytest.mark.parametrize(("decoys", "missing"), [(0, 0), (1, 1)])
def test_of_two_rows_that_do_the_same_work_both_are_found_or_one_is_lacking(
    decoys: int, missing: int
) -> None:
    """Two keys lead to the value of the last fact. One is read by a head that does nothing else if
    there are decoys; it does not come back.
    """
    task = ConditionalRetrieval(chains=2, dim=8 + 2 * decoys, symbols="one-hot", decoys=decoys)
    known = planted(task)
    circuit = discover(known.model, known.task, examples=32)
    check_planted(known, circuit, missing=missing)
    assert circuit.verdict.startswith("Partly explained" if missing else "Explained")
    assert len(circuit.replace_each_other) == (not missing)
    if not missing:
        assert circuit.replace_each_other[0] in str(circuit)


def test_a_small_planted_circuit_is_recovered_exactly(circuit: Circuit, two_hops: Planted) -> None:
    check_planted(two_hops, circuit)
    assert {each.at: each.kind for each in circuit.components} == {
        ((0, 0),): "routes", ((1, 0),): "moves", ((2, 0),): "moves",
    }  # fmt: skip
    assert [each.is_previous for each in circuit.components] == [True, True, False, False]


def test_heads_that_share_a_component_are_measured_one_by_one() -> None:
    """Each twin does half of the work, and the loss is quadratic. If the output of one is ignored,
    the search leaves it out.
    """
    known = planted(one_hot(1, 2), twins=True)
    circuit = discover(known.model, known.task, examples=16, fresh=64)
    twins = circuit.components[-1].sharing
    assert [each.head for each in twins] == [(1, 0), (1, 1)]
    assert [each.lost.mean for each in twins] == pytest.approx([0.25, 0.25], abs=1e-5)
    assert [each.gained.mean for each in twins if each.gained] == pytest.approx([0.75, 0.75])
    assert circuit.verdict.startswith("Explained")

    first, second = known.model.blocks[-1].attention.out.weight.detach().chunk(2, dim=1)
    first.mul_(2)
    second.zero_()
    circuit = discover(known.model, known.task, examples=16, fresh=64)
    assert [each.heads for each in circuit.components] == [(0, 1), (0,)]
    assert circuit.verdict.startswith("Explained")


def test_each_pass_of_the_search_mends_what_it_is_for(two_hops: Planted) -> None:
    """A wrong first target is improved, a missing row completed, an idle row removed. With
    prescribed attention, rows of the first layer make no difference: they only route.
    """
    adapter, settings = adapter_of(two_hops.model), Discovery(examples=32)
    search = Search(adapter, two_hops.task, settings, 0)
    truth = {
        ((path.layer, path.head), path.destination): target("own", path.source)
        for path in two_hops.paths
    }
    wrong = {row: [ITSELF] if row[0][0] else [] for row in truth}
    search.proposals = {row: [*wrong[row], looks] for row, looks in truth.items()}
    state = drafted(search)
    assert [state.target(row) for row in truth].count(ITSELF) == 2
    state = improved(search, state)
    assert {row: state.target(row) for row in state.live} == truth
    for row in truth:
        assert {*completed(search, state.without([row])).live} == {*truth}, row
    idle = state.looking_at([((2, 0), Role("key", 1)), ((0, 0), Role("query"))], PREVIOUS)
    assert lightened(search, idle, Required.of(search, idle)) == state
    as_in_model = state.looking_at([*truth][-1:], AS_IN_MODEL)
    assert simplified(search, as_in_model, Required.of(search, as_in_model)) == state
    for row in truth:
        fewer = state.without([row])
        again = restored(search, fewer, Required.of(search, fewer))
        others = [its for its in truth if its[0] == row[0] and its != row]
        assert again == (state if others else fewer), row


def test_a_sketch_on_which_nothing_is_needed_decides_nothing(
    two_hops: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All examples of the search decide what is removed, and that something is missing."""
    search = Search(adapter_of(two_hops.model), two_hops.task, Discovery(examples=32), 0)
    state = search.nothing
    for path in two_hops.paths:
        state = state.looking_at(
            [((path.layer, path.head), path.destination)], target("own", path.source)
        )

    def losses(states: Sequence[Ablation], _: object = None) -> np.ndarray:
        ablated = [[float(each == search.nothing)] * 2 for each in states]
        return np.array(ablated)

    monkeypatch.setattr(search.on_sketch, "losses", losses)
    assert lightened(search, state, Required.of(search, state)) == state
    for row in state.live:
        assert {*completed(search, state.without([row])).live} == {*state.live}, row


def test_rows_are_not_tried_if_no_row_could_gain_enough(
    two_hops: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = Search(adapter_of(two_hops.model), two_hops.task, Discovery(examples=32), 0)
    known = {Ablation(): 0.0, search.nothing: 1.0}
    nearly = search.nothing.looking_at(search.rows[:1], AS_IN_MODEL)
    measured = []

    def losses(states: Sequence[Ablation], _: object = None) -> np.ndarray:
        measured.extend(states)
        return np.array([[known.get(each, 0.025)] * 2 for each in states])

    monkeypatch.setattr(search.on_sketch, "losses", losses)
    monkeypatch.setattr(search.on_all, "losses", losses)
    assert completed(search, nearly) == nearly
    assert {*measured} == {*known, nearly}


def test_nothing_is_recovered_of_a_gap_that_is_0_over_all_hops(
    two_hops: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a model that was trained for a few steps: what one hop gains, the other loses."""
    search = Search(adapter_of(two_hops.model), two_hops.task, Discovery(examples=16), 0)
    losses = {Ablation(): [0.5, 0.5], search.nothing: [0.25, 0.75]}

    def cancelled(states: Sequence[Ablation], _: object = None) -> np.ndarray:
        return np.array([losses.get(state, [0.25, 0.75]) for state in states])

    monkeypatch.setattr(search.on_all, "losses", cancelled)
    found = search.recovered([search.nothing], on_all=True)
    assert found.mean.tolist() == found.worst.tolist() == [[0.0, 0.0]]


def test_searches_on_other_examples_find_the_same(circuit: Circuit, two_hops: Planted) -> None:
    other = discover(two_hops.model, two_hops.task, settings=Discovery(examples=32), seed=1)
    assert other != circuit
    assert other.paths == circuit.paths
    assert all(each.stability is None for each in circuit.components)


def test_a_function_that_ignores_its_seed_is_refused(two_hops: Planted) -> None:
    def draw(examples: int, _: int) -> Examples:
        return examples_of(two_hops.task, examples)

    with pytest.raises(CircuitError, match="gave the same 16 examples for the seeds"):
        discover(two_hops.model, draw, examples=16, fresh=32)


def test_stability_is_the_share_of_searches_that_find_a_component(
    two_hops: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of three searches, each on other examples, does without the last layer."""
    from hopscope.circuits import discovery

    found, drawn, searched = [], [], discovery.searched

    def other(search: Search) -> Ablation:
        drawn.append(search.examples.inputs)
        found.append(searched(search))
        last = [row for row in found[-1].live if row[0][0] == 2]
        return found[-1].without(last) if len(found) == 2 else found[-1]

    monkeypatch.setattr(discovery, "searched", other)
    circuit = discover(two_hops.model, two_hops.task, examples=16, fresh=32, searches=3)
    assert [each.stability for each in circuit.components] == [1, 1, 1, pytest.approx(2 / 3)]
    assert not any(torch.equal(one, two) for one, two in combinations(drawn, 2))


def with_roles(task: Retrieval, name: Callable[[Role], str], fixed: bool = False) -> Questions:
    """The same examples, whose positions have other roles; `fixed`: only those whose facts and
    questions stand in one order.
    """
    names = [name(role) for role in task.roles()]
    roles = list(dict.fromkeys(names))
    number = torch.tensor([roles.index(each) for each in names])
    order = dataset(task, 0, 1, "validation").roles

    def questions(examples: int, seed: int) -> Examples:
        batch = dataset(task, seed, 100 * examples if fixed else examples, "validation")
        role, chain = batch.roles.role.long(), batch.roles.chain
        same = ((role == order.role) & (chain == order.chain)).all(1) | (not fixed)
        kept = same.nonzero()[:examples, 0]
        named = Roles(number[role[kept]], chain[kept])
        some = Batch(batch.inputs[kept], batch.targets[kept], named)
        table, read = tuple(map(parse_role, roles)), task.interface().read
        losses = partial(question_losses, task, batch=some)
        return Examples(some.inputs, named, table, losses, task.chance(), read)

    return questions


def test_where_keys_have_one_role_values_look_at_the_position_before(two_hops: Planted) -> None:
    task = with_roles(two_hops.task, lambda its: "origin" if its.kind == "key" else str(its))  # type: ignore[arg-type]
    circuit = discover(two_hops.model, task, examples=64)
    assert circuit.sufficient
    assert circuit.self_contained
    first = [each for each in circuit.components if each.layer == 0]
    assert {role for each in first for role in each.destinations} == {
        Role("value", 0), Role("value", 1)
    }  # fmt: skip
    assert {each.kind for each in first} == {"routes"}
    # Value 1 sees one key of its chain; value 0 sees two, and is told apart by the position.
    assert circuit.pattern(0, 0).of(Role("value", 0)) == PREVIOUS
    assert any(each.is_previous and not each.paths for each in first)


@pytest.mark.parametrize("fixed", [True, False])
def test_what_has_no_name_is_a_table_where_positions_say_it_else_as_in_the_model(
    fixed: bool,
) -> None:
    """All positions have one role, and no chain is known."""
    known = planted(one_hot(1, 2))
    task = with_roles(known.task, lambda _: "letter", fixed)  # type: ignore[arg-type]
    circuit = discover(known.model, task, examples=32, fresh=32)
    assert circuit.sufficient
    assert [each.written for each in circuit.components] == ["rule", "table" if fixed else "model"]
    assert circuit.named_rows == (1, 2)
    assert circuit.verdict.startswith("Found, not explained")
    assert [its.head for its in circuit.tables] == [(1, 0)] * fixed
    assert circuit.unnamed == circuit.components[1:]


LETTERS = 6


def hand_made(looks: Callable[[Tensor], Tensor]) -> CallbackModel:
    """A module of one head whose attention is written by hand, for each example."""

    def forward(tokens: Tensor, attention: Callable[[int, Tensor], Tensor]) -> Tensor:
        weights = nn.functional.one_hot(looks(tokens), LETTERS).float()[:, None]
        return attention(0, weights)[:, 0] @ nn.functional.one_hot(tokens, 4).float()

    return CallbackModel(forward, nn.Linear(1, 1), (1, 1))


def letters_examples(*named: int) -> Examples:
    """Letters after a count token of 0 … 3. A relation leads two back; some counts are named."""

    def draw(count: int, seed: int) -> Drawn:
        tokens = torch.randint(4, (count, LETTERS), generator=torch.Generator().manual_seed(seed))
        back = (torch.arange(LETTERS) - 2 - torch.arange(count)[:, None] % 2).clamp_min(-1)
        return Drawn(
            tokens,
            tokens[:, -1:],
            roles=["count", *["letter"] * (LETTERS - 1)],
            relations={"back": back},
            conditions={f"k={number}": tokens[:, 0] == number for number in named},
        )

    return examples_of(OwnTask(draw, roles=["count", "letter"], chance=1.0), 240, 0)


def looked_at(examples: Examples, first: tuple[int, ...]) -> Target:
    """What is read off letters that look back after some counts, and else at themselves."""
    here = torch.arange(LETTERS).expand(len(examples), -1)
    back = torch.where(examples.relations["back"] >= 0, examples.relations["back"], here)
    some = torch.isin(examples.inputs[:, :1], torch.tensor(first))
    model = hand_made(lambda tokens: torch.where(some, back, here)[: len(tokens)])
    return proposed_targets(examples, model, 0.2)[(0, 0), Role("letter")][0]


def test_conditions_with_one_target_are_merged_and_the_rest_needs_no_name() -> None:
    """The first in each list are the counts that have names, then those that look back."""
    back = along("back")
    for named, first, expected in (
        ((0,), (0,), back.if_("k=0").or_else(ITSELF)),  # 1, 2 and 3 have no name
        ((0,), (1, 2, 3), ITSELF.if_("k=0").or_else(back, ITSELF)),
        # The named ones are alike; 0 comes last, without a name.
        (
            (1, 2, 3),
            (0,),
            ITSELF.if_("k=1").or_else(ITSELF.if_("k=2"), ITSELF.if_("k=3"), back, ITSELF),
        ),
        ((0, 1, 2, 3), (0,), back.if_("k=0").or_else(ITSELF)),  # three are alike
        ((0, 1, 2, 3), (0, 1, 2, 3), back.or_else(ITSELF)),
    ):
        assert looked_at(letters_examples(*named), first) == expected, (named, first)


def test_a_row_beside_a_sink_is_named_by_what_it_brings_and_no_share_is_zero() -> None:
    """The value of the start is 0. Each row has the attention that is written here."""
    weights = torch.eye(4)
    weights[2:] = torch.tensor([[0.6, 0.4, 0, 0], [0.97, 0.015, 0.015, 0]])

    def block(_: int, x: Tensor, attend: BlockAttend) -> Tensor:
        query, key = (its.expand(len(x), 1, 4, 4) for its in (torch.eye(4), weights.log().T))
        brought: Tensor = attend(query, key.clamp_min(-99), x[:, None], scale=1.0)
        return x + brought[:, 0]

    code = nn.Embedding.from_pretrained(torch.eye(4) - torch.eye(4)[:1].T @ torch.eye(4)[:1])
    model = BlockAdapter(code, block, lambda x: x, code, (1, 1))

    def draw(count: int, _: int) -> Drawn:
        tokens = torch.arange(4).expand(count, -1)
        chain = (tokens > 0).long()
        return Drawn(tokens, tokens[:, 2:3], ["start", "token", "letter", "query"], chain)

    task = OwnTask(draw, roles=["start", "token", "letter", "query"], chance=1.0)
    found = proposed_targets(examples_of(task, 4), model, 0.2)
    letter, query = ([*map(str, found[(0, 0), Role(its)])] for its in ("letter", "query"))
    assert letter == ["0.40 token + 0.60 start of all chains", "start of all chains"]
    assert query == ["start of all chains"]


def test_a_model_that_has_not_learned_is_refused_unless_forced(two_hops: Planted) -> None:
    config = Model(layers=1, heads=1, d_model=8)
    model = Transformer.seeded(config, two_hops.task.interface(), 0)
    with pytest.raises(
        NotLearned, match=r"mean loss is 0\.\d+ \(by hop: 0\.\d+, .* 50% of chance \(0\.083\)"
    ):
        discover(model, two_hops.task, examples=8)
    found = discover(model, two_hops.task, examples=8, force=True)
    assert found.found.forced
    assert found.verdict.startswith("Nothing to explain")
    alone = one_hot(hops=2, chains=1)  # the loss at chance is 0
    model = Transformer.seeded(Model(layers=2, heads=1, d_model=8), alone.interface(), 0)
    for force in (False, True):
        with pytest.raises(CircuitError, match="the loss at chance is 0 on this task"):
            discover(model, alone, examples=8, force=force)
    assert attention_maps(model, alone, 4).own.shape[:2] == (2, 1)


def test_more_examples_than_the_machine_holds_are_refused_at_once(
    two_hops: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Examples alone, or what a search takes for them, although the examples have room."""
    with pytest.raises(CircuitError, match=r"examples of 10 positions would take about .* GiB"):
        discover(two_hops.model, two_hops.task, examples=2 * 10**9)
    memory = CACHES * KEPT_BYTES + 2**24
    monkeypatch.setattr("hopscope.circuits.budget.memory_bytes", lambda: memory)
    with pytest.raises(CircuitError, match=r"with examples=1,000 would.*: lower examples$"):
        discover(two_hops.model, two_hops.task, examples=1_000, fresh=2)
    with pytest.raises(CircuitError, match=r"with fresh=1,000 would.*: lower fresh$"):
        discover(two_hops.model, two_hops.task, examples=4, fresh=1_000)


def test_settings_are_kept_checked_and_heeded(two_hops: Planted) -> None:
    strict = discover(two_hops.model, two_hops.task, examples=16, fresh=32, needed=1)
    assert strict.found.settings == Discovery(examples=16, fresh=32, needed=1)
    assert {each.kind for each in strict.components} <= {"weak", "routes"}
    with pytest.raises(ConfigError, match="Discovery.needed: .* got 2"):
        discover(two_hops.model, two_hops.task, needed=2)


def test_within_a_step_the_rest_is_told_from_what_is_done() -> None:
    said: list[str] = []
    now = [0.0]
    with watched(said.append):
        its = Progress(clock=lambda: now[0])
    its.step("which of 8 rows")
    its.at(1, 8)
    now[0] = SECONDS
    its.at(0, 8)
    its.at(2, 8)
    its.at(3, 8)
    assert said == ["which of 8 rows", f"which of 8 rows: 2 of 8, about {3 * SECONDS:.0f} s left"]
    its.step("measuring")
    now[0] = 3 * SECONDS
    its.at(4, 5)
    assert said[-1] == f"measuring: 4 of 5, about {2 * SECONDS / 4:.0f} s left"


def test_long_analyses_tell_how_much_is_done(
    two_hops: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, said = Study(two_hops.model, two_hops.task), list[str]()
    with watched(said.append):
        study.ablate("0.0", examples=4)
    assert not said  # a few seconds need no word

    monkeypatch.setattr(progress, "SECONDS", 0)
    study.attention(4)
    assert not said  # not watched
    for size, analysis, *lines in (
        (1, partial(study.ablate, "0.0", examples=4), "ablations: 2 of 2, about 0 s left"),
        (1, partial(study.attention, 4), "attention: 3 of 4, about "),
        (
            *(1, partial(study.discover, examples=4, fresh=4)),
            *("mean attention: 3 of 4, about ", "what each of 3 heads is worth: 1 of 6, about "),
        ),
        (100_000, partial(study.patch, 4), "patching: 3 of 4, about "),
        (1, partial(study.probe, 45), "probing: 1 of "),
        (1, partial(study.baselines, 4), "EAP-IG: 3 of 4, about "),
    ):
        monkeypatch.setattr(budget, "CALL_BYTES", size)  # an example at a time
        said.clear()
        with watched(said.append):
            analysis()
        for line in lines:
            assert any(each.startswith(line) for each in said), (line, said)


def test_a_search_says_how_many_targets_and_steps_are_examined(
    two_hops: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SECONDS", 0)
    said: list[str] = []
    with watched(said.append):
        search = Search(adapter_of(two_hops.model), two_hops.task, Discovery(examples=16), 0)
        state = completed(search, search.nothing)  # all rows are missing
        lightened(search, state, Required(*np.zeros((3, 2))))
    targets = f"what each of {len(search.proposals)} more targets adds: 1 of "
    for begin in (targets, "which steps are needed: "):
        assert any(line.startswith(begin) for line in said), (begin, said)


def test_ablations_share_what_is_equal() -> None:
    nothing = Ablation.of({(0, head): Pattern() for head in range(4)})
    looks = nothing.looking_at([((0, 1), Role("query"))], PREVIOUS)
    for other in (looks, looks.without([((0, 1), Role("query"))])):
        same = [its is before for its, before in zip(other.changes, nothing.changes, strict=True)]
        assert same == [True, False, True, True]
