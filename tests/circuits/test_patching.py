"""What arrows carry: exact on planted models; attribution and patching against a model run with its
edits by hand, and against finite differences.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from every_task import one_hot
from slow import walked
from torch import Tensor, nn

from hopscope.circuits import Adapter, CallbackModel, EncoderAdapter, adapter_of
from hopscope.circuits.account import Site
from hopscope.circuits.baselines import Attribution, held_against
from hopscope.circuits.components import Estimate
from hopscope.circuits.patching import Pairs, pairs_of, patch
from hopscope.circuits.ranking import Arrow, Switches
from hopscope.configs import MQAR, ConditionalRetrieval, KHop, Model, Retrieval, VectorTask
from hopscope.errors import CircuitError, NotLearned
from hopscope.facts import Role
from hopscope.models import Transformer
from hopscope.models.planted import Planted, planted
from hopscope.theory import Path, follow

Wanted = Callable[[Role, Role, bool], bool]
"""Is it wanted by a destination from a source, of its own chain or of another?"""
TASK = Retrieval(hops=2, chains=2, dim=6, symbols="one-hot")


@pytest.fixture
def pairs(monkeypatch: pytest.MonkeyPatch) -> Pairs:
    # A random model has no answers of its own; arithmetic is held to all the same.
    monkeypatch.setattr("hopscope.circuits.baselines.check_answers", lambda *_: None)
    monkeypatch.setattr("hopscope.circuits.baselines.has_answers", lambda _: torch.tensor(True))
    return pairs_of(TASK, 5, 0)


def encoder() -> EncoderAdapter:
    """A model from elsewhere, whose attention is far from even."""
    torch.manual_seed(3)
    layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0, "gelu", batch_first=True, norm_first=True)
    inside = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    shape = TASK.interface()
    enter, leave = nn.Linear(shape.inputs, 16), nn.Linear(16, shape.outputs)
    with torch.no_grad():
        leave.weight.mul_(4)
        for each in inside.layers:
            each.self_attn.in_proj_weight.mul_(3)  # type: ignore[operator, union-attr]
    return EncoderAdapter(inside, embed=enter, unembed=leave, causal=True)


@pytest.fixture(params=["ours", "from elsewhere"])
def adapter(request: pytest.FixtureRequest, random_model: Transformer) -> Adapter:
    return adapter_of(random_model) if request.param == "ours" else encoder()


def onward(adapter: Adapter, x: Tensor, layer: int, more: Tensor | float = 0.0) -> Tensor:
    """The stream after a layer, in which more may be brought."""
    heads = adapter.project(layer, x)
    return adapter.finish(layer, x, heads.weights() @ heads.values + more)


def outputs(adapter: Adapter, x: Tensor, added: tuple[int, Tensor] | None = None) -> Tensor:
    """The model from what enters its first layer on, with more brought in one layer."""
    for layer in range(adapter.layers):
        x = onward(adapter, x, layer, added[1] if added and layer == added[0] else 0.0)
    return adapter.unembed(x[:, -TASK.interface().read :])


def distance(pairs: Pairs, answers: Tensor) -> Tensor:
    """How much nearer the other chain's symbols are than the own one's, for each hop."""
    marks = pairs.nearness(answers[None])[:, 0]
    return (marks[0] - marks[1]).sum(0)


def brought_more(
    adapter: Adapter, pairs: Pairs, symbol: str, at: tuple[int, int], wanted: Wanted
) -> Tensor:
    """What the donor brings more to each position in a head [batch, seq, d_head], from where it is
    wanted.
    """
    (layer, head), examples, both = at, pairs.examples, []
    for inputs in (pairs.counterfactuals[symbol], examples.inputs):
        x = adapter.embed(inputs)
        for number in range(layer):
            x = onward(adapter, x, number)
        pattern = adapter.project(layer, x).weights()
        both.append((pattern[:, head], adapter.project(layer, x).values[:, head]))
    (there, more), (here, less) = both
    found = torch.zeros_like(less)
    for example in range(len(examples)):
        roles, chains = (
            each[example].tolist() for each in (examples.roles.role, examples.roles.chain)
        )
        for i, j in torch.cartesian_prod(*[torch.arange(examples.length)] * 2).tolist():
            same = chains[i] == chains[j]
            if wanted(examples.table[roles[i]], examples.table[roles[j]], same):
                found[example, i] += there[example, i, j] * more[example, j]
                found[example, i] -= here[example, i, j] * less[example, j]
    return found


def changes(adapter: Adapter, pairs: Pairs, symbol: str, arrow: Arrow) -> Tensor:
    """What the donor brings more along an arrow [batch, head, seq, d_head]."""

    def wanted(destination: Role, source: Role, same: bool) -> bool:
        its = (arrow.destination, arrow.source, arrow.chain)
        return (destination, source, "own" if same else "others") == its

    more = brought_more(adapter, pairs, symbol, (arrow.layer, arrow.head), wanted)
    found = more.new_zeros(len(more), adapter.heads, *more.shape[1:])
    found[:, arrow.head] = more
    return found


def some_arrows(attribution: Attribution) -> list[Arrow]:
    every = attribution.possible().nonzero().tolist()
    return [attribution.arrow(at) for at in every[:: len(every) // 9]]


@torch.no_grad()
def test_gradients_are_what_small_patches_do(adapter: Adapter, pairs: Pairs) -> None:
    """EAP-IG: the answers' slope along what an arrow brings more, at inputs between the two."""
    attribution = Attribution(adapter, pairs)
    found = attribution.by_gradient(steps=2)
    small = 0.02  # losses are float32, and their differences must be told from rounding
    for arrow in some_arrows(attribution):
        for number, symbol in enumerate(pairs.counterfactuals):
            change, slopes = changes(adapter, pairs, symbol, arrow), []
            own, donor = (
                adapter.embed(x) for x in (pairs.examples.inputs, pairs.counterfactuals[symbol])
            )
            for part in (0.25, 0.75):
                x = own + part * (donor - own)
                ends = [
                    distance(pairs, outputs(adapter, x, (arrow.layer, sign * small * change)))
                    for sign in (1, -1)
                ]
                slopes.append((ends[0] - ends[1]) / (2 * small))
            wanted = torch.stack(slopes).mean(0) / (2 * attribution.sure)
            mine = found[number, :, *attribution.place(arrow)]
            assert torch.allclose(mine, wanted, atol=5e-4, rtol=0.02), arrow
    assert found.abs().max() > 0.1


@torch.no_grad()
def test_what_goes_straight_to_the_output_and_what_is_patched(
    adapter: Adapter, pairs: Pairs
) -> None:
    attribution = Attribution(adapter, pairs)
    arrows = some_arrows(attribution)
    direct, patched = attribution.direct(), attribution.patched(arrows)
    own = adapter.embed(pairs.examples.inputs)
    plain = distance(pairs, outputs(adapter, own))
    end = own
    for layer in range(adapter.layers):
        end = onward(adapter, end, layer)
    for arrow in arrows:
        for number, symbol in enumerate(pairs.counterfactuals):
            change = changes(adapter, pairs, symbol, arrow)
            moved = distance(pairs, outputs(adapter, own, (arrow.layer, change))) - plain
            wanted = moved / (2 * attribution.sure)
            assert torch.allclose(
                patched[number, :, *attribution.place(arrow)], wanted, atol=1e-5
            ), arrow
            more = adapter.added(arrow.layer, change) - adapter.added(arrow.layer, 0 * change)
            read = adapter.unembed((end + more)[:, -TASK.interface().read :])
            wanted = (distance(pairs, read) - plain) / (2 * attribution.sure)
            assert torch.allclose(
                direct[number, :, *attribution.place(arrow)], wanted, atol=1e-5
            ), arrow
    assert direct.abs().max() > 0.01
    assert patched.abs().max() > 0.01


@torch.no_grad()
def test_a_hop_without_answers_of_its_own_has_no_score(
    random_model: Transformer, pairs: Pairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_alone = torch.tensor([True, False])
    monkeypatch.setattr("hopscope.circuits.baselines.has_answers", lambda _: first_alone)
    adapter = adapter_of(random_model)
    attribution = Attribution(adapter, pairs)
    for scores in (attribution.direct(), attribution.by_gradient(1)):
        assert scores[:, 0].isfinite().all()
        assert scores[:, 1].isnan().all()
    for ranking in held_against(adapter, pairs, (), Switches(steps=1)).rankings:
        assert {its.hop for its in ranking.scored} == {1}


EXAMPLES = 16


def brought(task: VectorTask, paths: Sequence[Path], path: Path) -> set[str]:
    """What theory says that a path brings: all that only its source holds."""
    graph = task.graph()
    before = follow(graph, [p.reading for p in paths if p.layer < path.layer]).holdings
    return {*(before[path.source] - before[path.destination])} & {*graph.symbols}


CASES: list[tuple[VectorTask, dict[str, Any]]] = [
    *((one_hot(hops), {}) for hops in range(1, 8)),
    (one_hot(3, chains=3), {}),
    (one_hot(3), {"twins": True}),
    (one_hot(3), {"spare_layers": (1,), "heads": 2}),
    (Retrieval(hops=3, symbols="sphere", dim=64), {}),
    (ConditionalRetrieval(symbols="one-hot", dim=20, decoys=1), {}),
    (ConditionalRetrieval(symbols="one-hot", dim=20, decoys=1), {"twins": True}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("task", "more"), CASES, ids=lambda part: str(part)[:40])
def test_every_true_path_names_exactly_its_symbols(task: VectorTask, more: dict[str, Any]) -> None:
    grown = planted(task, **more)
    paths = [path for path in grown.paths if path.head % 2 == 0 or not more.get("twins")]
    sites = [Site.of(path) for path in paths]
    if more.get("twins"):  # together, what they share is all of it
        sites = [site.model_copy(update={"heads": (site.heads[0], site.heads[0] + 1)})
                 for site in sites]  # fmt: skip
    for path, its in zip(paths, patch(grown.model, task, sites, EXAMPLES), strict=True):
        expected = brought(task, grown.paths, path)
        assert {*its.symbols} == expected, path
        first = path.layer == 0
        assert {*its.moved(task.graph().asked)} == (set() if first else expected), path
        assert {*its.routes("keys")} == (expected if first else set()), path
        for estimate in its.moved(task.graph().asked).values():
            assert estimate.mean == pytest.approx(1, abs=1e-3)
            assert estimate.high - estimate.low < 0.01


def test_what_tells_later_heads_where_to_look_is_told_apart() -> None:
    task = one_hot(5)
    grown = planted(task)
    found = patch(grown.model, task, [Site.of(path) for path in grown.paths], EXAMPLES)
    told = {str(its.site): (its.routes("queries"), its.routes("keys")) for its in found}
    assert told == {
        "0.0 key 0 → value 0": ({}, {"x0": (1, 2, 3, 4, 5)}),
        "0.0 key 1 → value 1": ({}, {"x1": (2, 3, 4, 5)}),
        "0.0 key 2 → value 2": ({}, {"x2": (3, 4, 5)}),
        "0.0 key 3 → value 3": ({}, {"x3": (4, 5)}),
        "0.0 key 4 → value 4": ({}, {"x4": (5,)}),
        "1.0 value 0 → query": ({"x1": (2, 3, 4, 5)}, {}),
        "1.0 value 2 → value 1": ({"x3": (4, 5)}, {}),
        "1.0 value 4 → value 3": ({}, {}),
        "2.0 value 1 → query": ({"x3": (4, 5)}, {}),
        "3.0 value 3 → query": ({}, {}),
    }


@pytest.mark.slow
def test_what_is_idle_names_none() -> None:
    """Idle heads and layers, and rows of heads that work elsewhere."""
    for task, more in ((one_hot(3), {"heads": 2, "spare_layers": (1,)}), (one_hot(4), {})):
        grown = planted(task, **more)  # type: ignore[arg-type]
        config = grown.model.config
        working = {(path.layer, path.head, path.destination) for path in grown.paths}
        rows = [
            Site(layer=layer, heads=(head,), destinations=(role,))
            for layer in range(config.layers)
            for head in range(config.heads)
            for role in task.roles()
        ]
        # The first position can only read itself. It is no key for what reads its own symbol
        # (the plan takes a part of it off), but it would be for another: then that one's answer is
        # lost.
        misleads = (0, 0, Role("key", len(task.graph().facts) - 1))
        for its in patch(grown.model, task, rows, EXAMPLES):
            row = (its.site.layer, its.site.heads[0], its.site.destinations[0])
            if row == misleads:
                assert all(m.way in ("all", "keys") and m.share.mean < 0.1 for m in its.moves)
            else:
                assert bool(its.symbols) == (row in working), its.site


def test_each_of_two_twins_carries_a_half_and_one_that_is_cut_nothing() -> None:
    task = one_hot(2)
    grown = planted(task, twins=True)
    sites = [Site.of(path) for path in grown.paths]
    for path, its in zip(grown.paths, patch(grown.model, task, sites, EXAMPLES), strict=True):
        carried = its.moved(task.graph().asked)
        assert {*carried} == (brought(task, grown.paths, path) if path.layer else set())
        assert all(each.mean == pytest.approx(0.5, abs=1e-3) for each in carried.values())
    width = grown.model.config.head_width
    with torch.no_grad():
        out = grown.model.blocks[1].attention.out.weight  # type: ignore[union-attr]
        out[:, :width] = 0  # type: ignore[operator, index]
        out[:, width:] *= 2  # type: ignore[operator, index]
    sites = [Site.of(path) for path in grown.paths if path.layer == 1]
    cut, whole = patch(grown.model, task, sites, EXAMPLES)
    assert cut.site.heads == (0,)
    assert cut.moves == ()
    assert {*whole.moved(task.graph().asked)} == brought(task, grown.paths, grown.paths[4])


def test_examples_in_lots_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    grown = planted(one_hot(2))
    sites = [Site.of(path) for path in grown.paths]
    whole = patch(grown.model, grown.task, sites, 7)
    monkeypatch.setattr("hopscope.circuits.budget.CALL_BYTES", 1 << 20)
    for one, other in zip(whole, patch(grown.model, grown.task, sites, 7), strict=True):
        for a, b in zip(one.moves, other.moves, strict=True):
            assert (a.symbol, a.way, a.hop) == (b.symbol, b.way, b.hop)
            assert a.share.mean == pytest.approx(b.share.mean, abs=1e-5)


def test_tokens_follow_by_their_logits() -> None:
    """A model of one layer that answers with the token before the match: by hand, for MQAR."""
    task = MQAR(pairs=2, alphabet=8, length=12, queries=2)
    model = Transformer.seeded(Model(layers=2, heads=1, d_model=16), task.interface(), 0)
    with pytest.raises(NotLearned, match="so that no way from one to the other"):
        patch(model, task, [Site(layer=1, heads=(0,), destinations=(Role("query"),))], 8)
    pairs = pairs_of(task, 8)
    logits = torch.zeros(8, task.interface().read, task.alphabet)
    assert torch.allclose(pairs.examples.losses(logits), pairs.other(logits))


def test_losses_of_pairs_are_given_outputs_of_three_axes(two_hops: Planted) -> None:
    pairs, seen = pairs_of(two_hops.task, 4), list[torch.Size]()

    def other(outputs: Tensor) -> Tensor:
        seen.append(outputs.shape)
        return pairs.other(outputs)

    outputs = torch.randn(2, 4, 2, two_hops.task.interface().outputs)
    found = replace(pairs, other=other).nearness(outputs)
    assert seen == [outputs.shape[1:]] * 2
    assert torch.equal(found, pairs.nearness(outputs))


@pytest.mark.parametrize("to_a_set", [False, True], ids=["to a position", "to a set"])
def test_what_comes_along_a_relation_is_what_comes_from_the_role_there(
    two_hops: Planted, to_a_set: bool
) -> None:
    pairs = pairs_of(two_hops.task, 8)
    role, chain = pairs.examples.roles.role, pairs.examples.roles.chain
    same = chain[:, :, None] == chain[:, None, :]
    first = pairs.examples.number(Role("value", 0))
    leads = same & (role == first)[:, None, :]
    relation = leads if to_a_set else leads.byte().argmax(-1)
    related = replace(pairs, examples=replace(pairs.examples, relations={"x1": relation}))
    path = next(p for p in two_hops.paths if p.source == Role("value", 0))
    by_role = Site.of(path)
    along = by_role.model_copy(update={"source": None, "relation": "x1"})
    elsewhere = along.model_copy(update={"destinations": (Role("key", 0),)})
    one, other, nothing = patch(two_hops.model, related, [by_role, along, elsewhere])
    assert other.moves == one.moves
    assert other.moves
    assert not nothing.moves
    assert str(along) == f"{path.layer}.{path.head} x1 → query"
    for wrong, message in (
        ({"relation": "x9"}, "there is no relation 'x9' here; the relations are x1"),
        ({"source": Role("key", 0)}, "comes along a relation; expected no source and no other"),
    ):
        with pytest.raises(CircuitError, match=message):
            patch(two_hops.model, related, [along.model_copy(update=wrong)])


def test_what_cannot_be_patched_is_said_in_a_line(two_hops: Planted) -> None:
    model, task = two_hops.model, two_hops.task
    row = Site(layer=0, heads=(0,), destinations=(Role("query"),))
    whole = CallbackModel(model.forward, model, (3, 1))
    changes: tuple[dict[str, Any], ...] = (
        {"layer": 7}, {"source": Role("key", 9)}, {"destinations": ()}, {"chain": "others"}
    )  # fmt: skip
    deep, far, nowhere, others = (row.model_copy(update=its) for its in changes)
    pairs = pairs_of(task, 4)
    inputs = pairs.examples.inputs

    def of(**other: Any) -> object:
        return patch(model, replace(pairs, **other), [row])

    for ask, line in (
        (lambda: patch(model, KHop(), [row], 4), "examples of khop cannot be paired"),
        (lambda: patch(model, Retrieval(chains=1), [row], 4), "it has 1 chain"),
        (lambda: patch(model, lambda *_: None, [row], 4), "draws no minimal pairs"),  # type: ignore[arg-type, return-value]
        (lambda: patch(model, task, [deep], 4), "there is no head 7.0"),
        (lambda: patch(model, task, [far], 4), "there is no role 'key 9' here"),
        (lambda: patch(whole, task, [row], 4), "a CallbackModel cannot replace head outputs"),
        (lambda: patch(model, task, [row], 1), "examples is 1"),
        (lambda: pairs_of(task, 10**9), "1,000,000,000 examples"),
        (lambda: pairs_of(task, 4, seed=2**70), "seed is "),
        (lambda: patch(model, task, [nowhere], 4), "names no destination"),
        (lambda: patch(model, task, [others], 4), "comes from everywhere; expected the source"),
        (lambda: of(counterfactuals={}), "counterfactuals is empty"),
        (lambda: of(counterfactuals={"x1": inputs[:1]}), r"of x1 is \(1, .*the examples are \(4,"),
        (lambda: of(counterfactuals={"x1": inputs * torch.nan}), "counterfactual of x1"),
        (lambda: of(other=lambda o: o.new_zeros(1, 2)), r"of `other` are \[1, 2\], the exam"),
        (lambda: of(third=lambda o: o.new_zeros(4)), r"losses of `third` are \[4\]"),
        (lambda: of(examples=pairs.examples.part([0])), "examples is 1; an interval needs"),
        (lambda: of(hops=(1,)), r"hops is \(1,\), and .* losses of 2 answers"),
    ):
        with pytest.raises(CircuitError, match=line) as caught:
            ask()
        assert "\n" not in str(caught.value)


def by_hand(model: Transformer, pairs: Pairs, site: Site, symbol: str, way: str) -> Tensor:
    """One site, one symbol, one way: the model with its own edits, or layer by layer."""

    def wanted(destination: Role, source: Role, same: bool) -> bool:
        return destination in site.destinations and (
            site.source is None or (same and source == site.source)
        )

    at = (site.layer, site.heads[0])
    change = brought_more(adapter_of(model), pairs, symbol, at, wanted)
    return _outputs(model, pairs.examples.inputs, site, change, way)


def _outputs(model: Transformer, inputs: Tensor, site: Site, change: Tensor, way: str) -> Tensor:
    clean = model.attention(inputs)

    def heads(layer: int, mixed: Tensor) -> Tensor:
        if layer != site.layer:
            return mixed
        edited = mixed.clone()
        edited[:, site.heads[0]] += change[:, -mixed.shape[-2] :]
        return edited

    if way in ("all", "values"):
        every = walked(
            model, inputs, lambda layer, own: own if way == "all" else clean[layer], heads
        )
        return every[:, -model.interface.read :]
    # A second model walks beside the one with frozen attention, and lends its queries or keys.
    x = y = model.enter(inputs)
    for layer in range(site.layer + 1):
        own = model.blocks[layer]
        mixed = own.pattern(y, y.shape[1], range(model.config.heads)) @ own.values(y)  # type: ignore[operator]
        y, x = own.write(y, heads(layer, mixed)), own.write(y, mixed)  # type: ignore[operator]
    plain = x
    for layer in range(site.layer + 1, model.config.layers):
        block = model.blocks[layer]
        lent = x + y - plain
        norm, attention = block.attention_norm, block.attention  # type: ignore[union-attr]
        query = attention.query(norm(lent if way == "queries" else x))  # type: ignore[operator, union-attr]
        key = attention.key(norm(lent if way == "keys" else x))  # type: ignore[operator, union-attr]
        width, length = model.config.head_width, x.shape[1]
        pattern = torch.zeros(len(x), model.config.heads, length, length)
        for head in range(model.config.heads):
            part = slice(head * width, (head + 1) * width)
            for row in range(length):
                scores = (query[:, row, None, part] * key[:, : row + 1, part]).sum(-1)
                pattern[:, head, row, : row + 1] = (scores / width**0.5).softmax(-1)
        x = block.write(x, pattern @ block.values(x))  # type: ignore[operator]
        y = block.write(y, clean[layer] @ block.values(y))  # type: ignore[operator]
        plain = block.write(plain, clean[layer] @ block.values(plain))  # type: ignore[operator]
    return model.leave(x[:, -model.interface.read :])


SITES = [
    Site(layer=0, heads=(1,), destinations=(Role("value", 0),), source=Role("key", 0)),
    Site(layer=1, heads=(0,), destinations=(Role("query"), Role("value", 1))),
    Site(layer=2, heads=(1,), destinations=(Role("query"),), source=Role("value", 0)),
]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["all", "values", "queries", "keys"])
def test_all_sites_together_are_each_by_hand(
    way: str, random_model: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = pairs_of(TASK, 3)
    monkeypatch.setattr("hopscope.circuits.patching.check_answers", lambda *_: None)
    monkeypatch.setattr("hopscope.circuits.account.KEPT", 0.0)
    monkeypatch.setattr("hopscope.circuits.patching.share_of", _ratio)
    found = patch(random_model, pairs, SITES)
    with torch.no_grad():
        outputs = random_model(pairs.examples.inputs)
        plain = pairs.nearness(outputs[None])[:, 0]
        sure = pairs.other(outputs) - pairs.examples.losses(outputs)
        for site, its in zip(SITES, found, strict=True):
            for symbol in TASK.symbol_names():
                its_outputs = by_hand(random_model, pairs, site, symbol, way)
                moved = pairs.nearness(its_outputs[None])[:, 0] - plain
                for column, hop in enumerate(pairs.hops):
                    move = next(
                        m for m in its.moves if (m.symbol, m.way, m.hop) == (symbol, way, hop)
                    )
                    expected = [_ratio(sure[:, column], part[:, column]).mean for part in moved]
                    assert move.share.mean == pytest.approx(expected[0], abs=2e-4)
                    assert move.left.mean == pytest.approx(-expected[1], abs=2e-4)


def _ratio(sure: Tensor, moved: Tensor) -> Any:
    share = float(moved.sum() / sure.sum())
    return Estimate(mean=share, low=share, high=share)
