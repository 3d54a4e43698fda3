"""What arrows carry: exact on planted models, and against a model run with its edits by hand."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from hopscope.circuits import Whole, subject_of
from hopscope.circuits.carrying import Cargo, Site
from hopscope.circuits.pairs import Pairs, pairs_of
from hopscope.circuits.parts import Estimate
from hopscope.circuits.patching import cargo
from hopscope.configs import MQAR, ConditionalRetrieval, KHop, Model, Retrieval, VectorTask
from hopscope.errors import CircuitError, NotLearned
from hopscope.facts import Role
from hopscope.models import Transformer
from hopscope.models.planted import Planted, planted
from hopscope.theory import Path, follow

EXAMPLES = 16


def one_hot(hops: int, chains: int = 4) -> Retrieval:
    count = chains * (hops + 1)
    return Retrieval(hops=hops, chains=chains, symbols="one-hot", dim=max(4, count + count % 2))


def answers(task: VectorTask) -> dict[str, int]:
    return {fact.value: number for number, fact in enumerate(task.graph().facts, 1)}


def brought(task: VectorTask, paths: Sequence[Path], path: Path) -> set[str]:
    """What theory says that a path brings: all that the source holds and the reader does not."""
    graph = task.graph()
    before = follow(graph, [p.reading for p in paths if p.layer < path.layer]).holdings
    return {*(before[path.source] - before[path.reader])} & {*graph.symbols}


CASES: list[tuple[VectorTask, dict[str, Any]]] = [
    *((one_hot(hops), {}) for hops in range(1, 8)),
    (one_hot(3, chains=3), {}),
    (one_hot(3), {"twins": True}),
    (one_hot(3), {"spare_layers": (1,), "heads": 2}),
    (Retrieval(hops=3, symbols="sphere", dim=64), {}),
    (ConditionalRetrieval(symbols="one-hot", dim=20, decoys=1), {}),
    (ConditionalRetrieval(symbols="one-hot", dim=20, decoys=1), {"twins": True}),
]


@pytest.mark.parametrize(("task", "more"), CASES, ids=lambda part: str(part)[:40])
def test_every_true_path_names_exactly_its_symbols(task: VectorTask, more: dict[str, Any]) -> None:
    grown = planted(task, **more)
    paths = [path for path in grown.paths if path.head % 2 == 0 or not more.get("twins")]
    sites = [Site.of(path) for path in paths]
    if more.get("twins"):  # together, what they share is all of it
        sites = [site.model_copy(update={"heads": (site.heads[0], site.heads[0] + 1)})
                 for site in sites]  # fmt: skip
    for path, its in zip(paths, cargo(grown.model, task, sites, EXAMPLES), strict=True):
        expected = brought(task, grown.paths, path)
        assert {*its.symbols} == expected, path
        first = path.layer == 0
        assert {*its.carried(answers(task))} == (set() if first else expected), path
        assert {*its.tells("keys")} == (expected if first else set()), path
        for estimate in its.carried(answers(task)).values():
            assert estimate.mean == pytest.approx(1, abs=1e-3)
            assert estimate.high - estimate.low < 0.01


def test_each_of_two_twins_carries_a_half() -> None:
    task = one_hot(3)
    grown = planted(task, twins=True)
    for path in grown.paths:
        (its,) = cargo(grown.model, task, [Site.of(path)], EXAMPLES)
        expected = brought(task, grown.paths, path) if path.layer else set()
        carried = its.carried(answers(task))
        assert {*carried} == expected
        assert all(each.mean == pytest.approx(0.5, abs=1e-3) for each in carried.values())


def test_what_tells_later_heads_where_to_look_is_told_apart() -> None:
    task = one_hot(5)
    grown = planted(task)
    found = cargo(grown.model, task, [Site.of(path) for path in grown.paths], EXAMPLES)
    told = {str(its.site): (its.tells("queries"), its.tells("keys")) for its in found}
    assert told == {
        "0.0 value 0 ← key 0": ({}, {"x0": (1, 2, 3, 4, 5)}),
        "0.0 value 1 ← key 1": ({}, {"x1": (2, 3, 4, 5)}),
        "0.0 value 2 ← key 2": ({}, {"x2": (3, 4, 5)}),
        "0.0 value 3 ← key 3": ({}, {"x3": (4, 5)}),
        "0.0 value 4 ← key 4": ({}, {"x4": (5,)}),
        "1.0 query ← value 0": ({"x1": (2, 3, 4, 5)}, {}),
        "1.0 value 1 ← value 2": ({"x3": (4, 5)}, {}),
        "1.0 value 3 ← value 4": ({}, {}),
        "2.0 query ← value 1": ({"x3": (4, 5)}, {}),
        "3.0 query ← value 3": ({}, {}),
    }


@pytest.mark.parametrize(
    ("task", "more"),
    [(one_hot(3), {"heads": 2, "spare_layers": (1,)}), (one_hot(4), {})],
    ids=("idle heads", "idle rows"),
)
def test_what_is_idle_names_none(task: VectorTask, more: dict[str, Any]) -> None:
    grown = planted(task, **more)
    config = grown.model.config
    working = {(path.layer, path.head, path.reader) for path in grown.paths}
    rows = [
        Site(layer=layer, heads=(head,), readers=(role,))
        for layer in range(config.layers)
        for head in range(config.heads)
        for role in task.roles()
    ]
    # The first position can only read itself. It is no key for the reader of its own symbol (the
    # plan takes a part of it off), but it would be for another: then that one's answer is lost.
    misleads = (0, 0, Role("key", len(task.graph().facts) - 1))
    for its in cargo(grown.model, task, rows, EXAMPLES):
        row = (its.site.layer, its.site.heads[0], its.site.readers[0])
        if row == misleads:
            assert all(move.way in ("all", "keys") and move.share.mean < 0.1 for move in its.moves)
        else:
            assert bool(its.symbols) == (row in working), its.site


def test_a_removed_path_names_none() -> None:
    """Both twins of a step do it; one is cut. It names nothing, and the other all of it."""
    task = one_hot(2)
    grown = planted(task, twins=True)
    width = grown.model.config.head_width
    with torch.no_grad():
        out = grown.model.blocks[1].attention.out.weight  # type: ignore[union-attr]
        out[:, :width] = 0  # type: ignore[operator, index]
        out[:, width:] *= 2  # type: ignore[operator, index]
    sites = [Site.of(path) for path in grown.paths if path.layer == 1]
    cut, whole = cargo(grown.model, task, sites, EXAMPLES)
    assert cut.site.heads == (0,)
    assert cut.moves == ()
    assert {*whole.carried(answers(task))} == brought(task, grown.paths, grown.paths[4])


# By hand -----------------------------------------------------------------------------------------


def by_hand(model: Transformer, pairs: Pairs, site: Site, symbol: str, way: str) -> Tensor:
    """One site, one symbol, one way: the model with its own edits, or layer by layer."""
    exam = pairs.exam
    own, donor = _heads(model, exam.inputs), _heads(model, pairs.donors[symbol])
    looks = model.attention(exam.inputs), model.attention(pairs.donors[symbol])
    change = torch.zeros_like(own[site.layer][:, site.heads[0]])
    for example in range(len(exam)):
        roles, chains = exam.roles.role[example].tolist(), exam.roles.chain[example].tolist()
        for row, role in enumerate(roles):
            if exam.table[role] not in site.readers:
                continue
            for source, other in enumerate(roles):
                mine = chains[source] == chains[row] and exam.table[other] == site.source
                if site.source is None or mine:
                    for sign, its, look in ((1, donor, looks[1]), (-1, own, looks[0])):
                        weight = look[site.layer, example, site.heads[0], row, source]
                        change[example, row] += (
                            sign * weight * _values(its)[site.layer][example, site.heads[0], source]
                        )
    return _outputs(model, exam.inputs, site, change, way)


def _heads(model: Transformer, inputs: Tensor) -> Any:
    """What heads carry in each layer, and their values beside it."""
    x, values, mixed = model.enter(inputs), [], []
    for layer, block in enumerate(model.blocks):
        values.append(block.values(x))  # type: ignore[operator]
        pattern = block.look(x, x.shape[1], range(model.config.heads))  # type: ignore[operator]
        mixed.append(pattern @ values[-1])
        x = model.layer(layer, x)
    return _Heads(mixed, values)


class _Heads(list[Tensor]):
    def __init__(self, mixed: list[Tensor], values: list[Tensor]) -> None:
        super().__init__(mixed)
        self.values = values


def _values(its: _Heads) -> list[Tensor]:
    return its.values


def _outputs(model: Transformer, inputs: Tensor, site: Site, change: Tensor, way: str) -> Tensor:
    clean = model.attention(inputs)

    def heads(layer: int, mixed: Tensor) -> Tensor:
        if layer != site.layer:
            return mixed
        edited = mixed.clone()
        edited[:, site.heads[0]] += change[:, -mixed.shape[-2] :]
        return edited

    def frozen(layer: int, pattern: Tensor) -> Tensor:
        return clean[layer][..., -pattern.shape[-2] :, :]

    if way == "all":
        return model(inputs, heads=heads)
    if way == "values":
        return model(inputs, heads=heads, attention=frozen)
    # A second model walks beside the one with frozen attention, and lends its queries or keys.
    x = y = model.enter(inputs)
    for layer in range(site.layer + 1):
        own = model.blocks[layer]
        mixed = own.look(y, y.shape[1], range(model.config.heads)) @ own.values(y)  # type: ignore[operator]
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
    Site(layer=0, heads=(1,), readers=(Role("value", 0),), source=Role("key", 0)),
    Site(layer=1, heads=(0,), readers=(Role("query"), Role("value", 1))),
    Site(layer=2, heads=(1,), readers=(Role("query"),), source=Role("value", 0)),
]


@pytest.mark.parametrize("way", ["all", "values", "queries", "keys"])
def test_all_sites_together_are_each_by_hand(
    way: str, random_model: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = Retrieval(hops=2, chains=2, dim=6, symbols="one-hot")
    pairs = pairs_of(task, 3)
    monkeypatch.setattr("hopscope.circuits.patching._check_answers", lambda *_: None)
    monkeypatch.setattr("hopscope.circuits.patching.KEPT", 0.0)
    monkeypatch.setattr("hopscope.circuits.patching._share", _ratio)
    found = cargo(random_model, pairs, SITES)
    with torch.no_grad():
        outputs = random_model(pairs.exam.inputs)
        plain = pairs.marks(outputs[None])[:, 0]
        sure = pairs.other(outputs) - pairs.exam.losses(outputs)
        for site, its in zip(SITES, found, strict=True):
            for symbol in task.symbol_names():
                its_outputs = by_hand(random_model, pairs, site, symbol, way)
                moved = pairs.marks(its_outputs[None])[:, 0] - plain
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


def test_examples_in_lots_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    grown = planted(one_hot(2))
    sites = [Site.of(path) for path in grown.paths]
    whole = cargo(grown.model, grown.task, sites, 7)
    monkeypatch.setattr("hopscope.circuits.budget.CALL_BYTES", 1 << 20)
    parts = cargo(grown.model, grown.task, sites, 7)
    for one, other in zip(whole, parts, strict=True):
        assert [(m.symbol, m.way, m.hop) for m in one.moves] == [
            (m.symbol, m.way, m.hop) for m in other.moves
        ]
        for a, b in zip(one.moves, other.moves, strict=True):
            assert a.share.mean == pytest.approx(b.share.mean, abs=1e-5)


class Closed:
    """A subject that shows no more than it must."""

    def __init__(self, model: Transformer) -> None:
        its = subject_of(model)
        self.layers, self.heads, self.causal = its.layers, its.heads, True
        self.device = its.device
        for name in ("enter", "look", "values", "write", "leave", "answers_at", "digest"):
            setattr(self, name, getattr(its, name))


def test_a_subject_that_shows_less_tells_queries_and_keys_not_apart(two_hops: Planted) -> None:
    sites = [Site.of(path) for path in two_hops.paths]
    closed = cargo(Closed(two_hops.model), two_hops.task, sites, 8)  # type: ignore[arg-type]
    opened = cargo(two_hops.model, two_hops.task, sites, 8)
    for one, other in zip(closed, opened, strict=True):
        assert not one.told
        assert other.told
        assert one.moves == tuple(m for m in other.moves if m.way in ("all", "values"))


def test_tokens_follow_by_their_logits() -> None:
    """A model of one layer that answers with the token before the match: by hand, for MQAR."""
    task = MQAR(pairs=2, alphabet=8, length=12, queries=2)
    model = Transformer.seeded(Model(layers=2, heads=1, d_model=16), task.interface(), 0)
    with pytest.raises(NotLearned, match="it answers at guessing level, so that none can follow"):
        cargo(model, task, [Site(layer=1, heads=(0,), readers=(Role("query"),))], 8)
    pairs = pairs_of(task, 8)
    logits = torch.zeros(8, task.interface().read, task.alphabet)
    assert torch.allclose(pairs.exam.losses(logits), pairs.other(logits))


def test_what_cannot_be_patched_is_said_in_a_line(two_hops: Planted) -> None:
    model, task = two_hops.model, two_hops.task
    row = Site(layer=0, heads=(0,), readers=(Role("query"),))
    for asked, message in (
        ((model, KHop(), [row]), "examples of khop cannot be paired: a token stands in the facts"),
        ((model, Retrieval(chains=1), [row]), "of retrieval cannot be paired: it has 1 chain"),
        ((model, lambda *_: None, [row]), "draw no minimal pairs: give a task, or Pairs of your"),
        (
            (model, task, [row.model_copy(update={"layer": 7})]),
            "there is no head 7.0; this model has layers 0 … 2 with heads 0 … 0",
        ),
        (
            (model, task, [row.model_copy(update={"source": Role("key", 9)})]),
            "there is no role 'key 9' here; the roles are",
        ),
        (
            (Whole(model.forward, model, (3, 1)), task, [row]),
            "cannot be replaced through a whole model's function: write an adapter",
        ),
    ):
        with pytest.raises(CircuitError, match=message) as caught:
            cargo(*asked, 4)  # type: ignore[arg-type]
        assert "\n" not in str(caught.value)


def test_cargo_is_kept_as_json(two_hops: Planted) -> None:
    for its in cargo(two_hops.model, two_hops.task, [Site.of(p) for p in two_hops.paths], 4):
        assert Cargo.from_json(its.canonical_json()) == its
