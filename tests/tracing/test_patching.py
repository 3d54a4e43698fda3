"""What arrows carry: exact on planted models, and against a model run with its edits by hand."""

from collections.abc import Sequence
from dataclasses import replace
from inspect import unwrap
from typing import Any

import pytest
import torch

from hopscope.circuits import Whole, subject_of
from hopscope.circuits.carrying import Cargo, Site
from hopscope.configs import MQAR, ConditionalRetrieval, KHop, Model, Retrieval, VectorTask
from hopscope.errors import CircuitError, NotLearned
from hopscope.facts import Role
from hopscope.models import Transformer
from hopscope.models.planted import Planted, planted
from hopscope.theory import Path, follow
from hopscope.tracing.pairs import pairs_of
from hopscope.tracing.patching import cargo

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


@pytest.mark.slow
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


@pytest.mark.slow
def test_what_is_idle_names_none() -> None:
    """Idle heads and layers, and rows of heads that work elsewhere."""
    for task, more in ((one_hot(3), {"heads": 2, "spare_layers": (1,)}), (one_hot(4), {})):
        grown = planted(task, **more)  # type: ignore[arg-type]
        config = grown.model.config
        working = {(path.layer, path.head, path.reader) for path in grown.paths}
        rows = [
            Site(layer=layer, heads=(head,), readers=(role,))
            for layer in range(config.layers)
            for head in range(config.heads)
            for role in task.roles()
        ]
        # The first position can only read itself. It is no key for the reader of its own symbol
        # (the plan takes a part of it off), but it would be for another: then that one's answer is
        # lost.
        misleads = (0, 0, Role("key", len(task.graph().facts) - 1))
        for its in cargo(grown.model, task, rows, EXAMPLES):
            row = (its.site.layer, its.site.heads[0], its.site.readers[0])
            if row == misleads:
                assert all(m.way in ("all", "keys") and m.share.mean < 0.1 for m in its.moves)
            else:
                assert bool(its.symbols) == (row in working), its.site


def test_each_of_two_twins_carries_a_half_and_one_that_is_cut_nothing() -> None:
    task = one_hot(2)
    grown = planted(task, twins=True)
    sites = [Site.of(path) for path in grown.paths]
    for path, its in zip(grown.paths, cargo(grown.model, task, sites, EXAMPLES), strict=True):
        carried = its.carried(answers(task))
        assert {*carried} == (brought(task, grown.paths, path) if path.layer else set())
        assert all(each.mean == pytest.approx(0.5, abs=1e-3) for each in carried.values())
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


def test_examples_in_lots_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    grown = planted(one_hot(2))
    sites = [Site.of(path) for path in grown.paths]
    whole = cargo(grown.model, grown.task, sites, 7)
    monkeypatch.setattr("hopscope.circuits.budget.CALL_BYTES", 1 << 20)
    for one, other in zip(whole, cargo(grown.model, grown.task, sites, 7), strict=True):
        for a, b in zip(one.moves, other.moves, strict=True):
            assert (a.symbol, a.way, a.hop) == (b.symbol, b.way, b.hop)
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


@pytest.mark.parametrize("to_a_set", [False, True], ids=["to a position", "to a set"])
def test_what_comes_along_a_relation_is_what_comes_from_the_role_there(
    two_hops: Planted, to_a_set: bool
) -> None:
    pairs = pairs_of(two_hops.task, 8)
    role, chain = pairs.exam.roles.role, pairs.exam.roles.chain
    same = chain[:, :, None] == chain[:, None, :]
    first = pairs.exam.number(Role("value", 0))
    leads = same & (role == first)[:, None, :]
    relation = leads if to_a_set else leads.byte().argmax(-1)
    related = replace(pairs, exam=replace(pairs.exam, relations={"x1": relation}))
    path = next(p for p in two_hops.paths if p.source == Role("value", 0))
    by_role = Site.of(path)
    along = by_role.model_copy(update={"source": None, "relation": "x1"})
    elsewhere = along.model_copy(update={"readers": (Role("key", 0),)})
    one, other, nothing = cargo(two_hops.model, related, [by_role, along, elsewhere])
    assert other.moves == one.moves
    assert other.moves
    assert not nothing.moves
    assert str(along) == f"{path.layer}.{path.head} query ← x1"
    for wrong, message in (
        ({"relation": "x9"}, "there is no relation 'x9' here; the relations are x1"),
        ({"source": Role("key", 0)}, "comes along a relation; expected no source and no other"),
    ):
        with pytest.raises(CircuitError, match=message):
            cargo(two_hops.model, related, [along.model_copy(update=wrong)])


def test_what_cannot_be_patched_is_said_in_a_line(two_hops: Planted) -> None:
    model, task = two_hops.model, two_hops.task
    row = Site(layer=0, heads=(0,), readers=(Role("query"),))
    whole = Whole(model.forward, model, (3, 1))
    no_layer, no_role = {"layer": 7}, {"source": Role("key", 9)}
    for asked, line in (
        ((model, KHop(), [row], 4), "examples of khop cannot be paired: a token stands in the fac"),
        ((model, Retrieval(chains=1), [row], 4), "of retrieval cannot be paired: it has 1 chain"),
        ((model, lambda *_: None, [row], 4), "draw no minimal pairs: give a task, or Pairs of yo"),
        (
            (model, task, [row.model_copy(update=no_layer)], 4),
            "there is no head 7.0; this model has layers 0 … 2 with heads 0 … 0",
        ),
        (
            (model, task, [row.model_copy(update=no_role)], 4),
            "there is no role 'key 9' here; the roles are",
        ),
        ((whole, task, [row], 4), "cannot be replaced through a whole model's function: write an"),
        ((model, task, [row], 1), "examples is 1; minimal pairs are at least 2"),
    ):
        with pytest.raises(CircuitError, match=line) as caught:
            cargo(*asked)  # type: ignore[arg-type]
        assert "\n" not in str(caught.value)
    (its,) = cargo(model, task, [Site.of(two_hops.paths[0])], 4)
    with pytest.raises(CircuitError, match="by queries or by keys; got 'key'"):
        unwrap(Cargo.tells)(its, "key")
    with pytest.raises(CircuitError, match='expected for each symbol its hop, as {"x1": 1}'):
        unwrap(Cargo.carried)(its, {1: "x1"})
