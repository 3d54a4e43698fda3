"""Patches that go through the layers they need alone are patches of the whole model, by hooks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor

from hopscope.circuits.adapters import Llama
from hopscope.configs import Prompts
from hopscope.llm.exchange import names
from hopscope.llm.lens import lens
from hopscope.llm.local import LocalModel
from hopscope.llm.pairs import pairs, role_table
from hopscope.llm.patches import Rerun, by_head, by_role, met, others, proofs
from hopscope.llm.walking import Batch, batches

TWO = Prompts(formulation="equations", hops=2)
NAMES = names(TWO)


@pytest.fixture(scope="module")
def local(make_tiny: Callable[..., LocalModel]) -> LocalModel:
    return make_tiny("raw", 1)


@pytest.fixture(scope="module")
def batch(local: LocalModel) -> Batch:
    (its,) = batches(Llama(local.model), pairs(local, TWO, 0, 0, 3), len(role_table(TWO)))
    return its


@contextmanager
def hooked(module: Any, change: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """What enters a module is changed."""
    handle = module.register_forward_pre_hook(lambda _, args: (change(args[0]), *args[1:]))
    try:
        yield
    finally:
        handle.remove()


@torch.no_grad()
def logits(local: LocalModel, tokens: Tensor) -> Tensor:
    return local.model(tokens).logits[:, -1]


@torch.no_grad()
def entering(local: LocalModel, module: Any, tokens: Tensor) -> Tensor:
    kept: list[Tensor] = []
    with hooked(module, lambda x: kept.append(x) or x):
        local.model(tokens)
    return kept[0]


def marks(batch: Batch, name: str, patched: Tensor, clean: Tensor) -> Tensor:
    """The marks by their definition, of logits."""
    rows = []
    for row, pair in enumerate(batch.pairs):
        told = []
        for its in (patched[row], clean[row]):
            third = its[list(pair.answers.thirds(name))].mean()
            own, other = its[pair.answers.own], its[pair.answers.others[name]]
            loss = -torch.log_softmax(its[list(pair.answers.acceptable)], -1)
            own_loss = loss[pair.answers.acceptable.index(pair.answers.own)]
            told.append(torch.stack([other - third, own - third, own_loss]))
        rows.append(told[0] - told[1])
    return torch.stack(rows).double()


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-3)


def test_a_role_s_stream_is_replaced(local: LocalModel, batch: Batch) -> None:
    with torch.no_grad():
        found = by_role(batch, [0, 1, 2], NAMES)
    clean = logits(local, batch.tokens)
    after = [*local.model.model.layers, local.model.model.norm]
    moved = 0
    for n, name in enumerate(NAMES):
        for layer, module in enumerate(after):
            theirs = entering(local, module, batch.donors[name])
            for role in range(batch.roles):
                at = batch.at(role)[:, :, None]
                with hooked(module, lambda x, at=at, new=theirs: torch.where(at, new, x)):
                    patched = logits(local, batch.tokens)
                expected = marks(batch, name, patched, clean)
                close(found[n, role, layer], expected)
                moved += bool(expected.abs().max() > 1e-3)
    assert moved > 20


def test_what_a_head_brings_is_replaced(local: LocalModel, batch: Batch) -> None:
    clean, size = logits(local, batch.tokens), local.model.config.head_dim
    for layer, role in ((0, batch.roles - 1), (1, batch.roles - 1), (0, 1)):
        module = local.model.model.layers[layer].self_attn.o_proj
        with torch.no_grad():
            found = by_head(batch, layer, role, NAMES)
        for n, name in enumerate(NAMES):
            theirs = entering(local, module, batch.donors[name])
            for head in range(4):
                at = torch.zeros_like(theirs, dtype=torch.bool)
                at[:, :, head * size : (head + 1) * size] = batch.at(role)[:, :, None]
                with hooked(module, lambda x, at=at, new=theirs: torch.where(at, new, x)):
                    expected = marks(batch, name, logits(local, batch.tokens), clean)
                close(found[n, head], expected)


def test_all_but_some_rows_are_the_donor_s(local: LocalModel, batch: Batch) -> None:
    rows = [(0, 1, 1), (1, 2, batch.roles - 1), (1, 3, 0)]
    donor = proofs((2, 4, batch.roles), rows, 2, 0)
    assert [int(its.sum()) for its in donor] == [3, 8 * batch.roles - 3, 8 * batch.roles, 3, 3]
    clean, size, name = logits(local, batch.tokens), local.model.config.head_dim, "x1…"
    with torch.no_grad():
        found = Rerun(donor[:, None].expand(-1, 3, -1, -1, -1)).marks(batch, name)
    modules = [layer.self_attn.o_proj for layer in local.model.model.layers]
    theirs = [entering(local, module, batch.donors[name]) for module in modules]
    for variant, chosen in enumerate(donor):
        changes = []
        for layer, new in enumerate(theirs):
            at = chosen[layer][:, batch.role].permute(1, 2, 0).repeat_interleave(size, -1)
            changes.append(lambda x, at=at, new=new: torch.where(at, new, x))
        with hooked(modules[0], changes[0]), hooked(modules[1], changes[1]):
            expected = marks(batch, name, logits(local, batch.tokens), clean)
        close(found[variant], expected)


def test_questions_meet_variants_of_their_own(batch: Batch) -> None:
    donor = proofs((2, 4, batch.roles), [(1, 2, batch.roles - 1)], 3, 0)
    chosen = [met(pair.index, 3, 1) for pair in batch.pairs]
    with torch.no_grad():
        found = Rerun(torch.stack([donor[its] for its in chosen], 1)).marks(batch, "x2")
        every = Rerun(donor[:, None].expand(-1, 3, -1, -1, -1)).marks(batch, "x2")
    assert len({tuple(its) for its in chosen}) == 3
    for row, its in enumerate(chosen):
        torch.testing.assert_close(found[:, row], every[its, row], atol=1e-5, rtol=1e-4)


def test_what_all_questions_begin_with_is_walked_once(local: LocalModel, batch: Batch) -> None:
    same = Batch(batch.subject, [batch.pairs[0]] * 2, batch.roles)
    with torch.no_grad():
        whole = same._walked(same.tokens, None, 0, looks=True)
        shared = [torch.equal(its[0], its[1]) for its in same.own.streams]
    assert all(shared)
    for name in ("streams", "mixed", "looks"):
        for expected, found in zip(getattr(whole, name), getattr(same.own, name), strict=True):
            torch.testing.assert_close(found, expected, atol=1e-3, rtol=1e-3)
    right = logits(local, same.tokens)[:, list(batch.pairs[0].answers.acceptable)].argmax(-1)
    own = batch.pairs[0].answers
    assert same.right() == [own.acceptable[n] == own.own for n in right.tolist()]


def test_random_rows_are_of_the_same_layers_and_never_the_circuit_s() -> None:
    from random import Random

    rows = [(0, 0, 2), (0, 1, 2), (1, 3, 5)]
    drawn = [others((2, 4, 6), rows, Random(n)) for n in range(50)]
    assert all(sorted(row[0] for row in each) == [0, 0, 1] for each in drawn)
    assert all({role for _, _, role in each} == {2, 5} for each in drawn)
    assert not {row for each in drawn for row in each} & set(rows)
    assert len({tuple(each) for each in drawn}) > 3
    assert others((1, 2, 1), [(0, 0, 0), (0, 1, 0)], Random(0)) == []  # there are no others


def test_the_lens_is_the_model_s_own_end(local: LocalModel, batch: Batch) -> None:
    with torch.no_grad():
        found = lens(batch, [0, 1, 2], range(batch.roles))
        streams = [entering(local, module, batch.tokens)
                   for module in (*local.model.model.layers, local.model.model.norm)]  # fmt: skip
        table = role_table(TWO)
        for row, pair in enumerate(batch.pairs):
            for role, name in enumerate(map(str, table)):
                places = enumerate(zip(pair.roles, pair.chains, strict=True))
                mine = [n for n, (its, chain) in places if its == role and chain == 0]
                for layer, stream in enumerate(streams):
                    own = local.model.lm_head(local.model.model.norm(stream[row, mine[-1]]))
                    for n, words in enumerate(pair.candidates.values()):
                        chance, rank = found[n, role, layer, row].tolist()
                        expected = torch.softmax(own[list(words)], 0)[0]
                        assert chance == pytest.approx(float(expected), abs=1e-5), name
                        assert rank == int((own > own[words[0]]).sum())


def test_attention_is_told_by_role(local: LocalModel, batch: Batch) -> None:
    with torch.no_grad():
        attention = local.model(batch.tokens, output_attentions=True).attentions
    for layer, whole in enumerate(attention):
        found = batch.own.looks[layer]
        for row in range(len(batch.pairs)):
            for reader in range(batch.roles):
                start = int(batch.last(reader)[row])
                for source in range(batch.roles):
                    there = batch.at(source)[row] & (batch.chain[row] == 0)
                    expected = whole[row, :, start, there].sum(-1)
                    torch.testing.assert_close(found[row, :, reader, source], expected)
