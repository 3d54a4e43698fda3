"""Minimal pairs against a search for what differs; symbols against what is asked for."""

import pytest
import torch

from hopscope.configs import MQAR, ConditionalRetrieval, KHop, Retrieval, Task, VectorTask
from hopscope.tasks import askers, dataset, partners, symbols

COUNT = 6
VECTORS: list[VectorTask] = [
    Retrieval(hops=3, chains=5, dim=4),
    Retrieval(hops=2, chains=2, symbols="one-hot", dim=6, curriculum=False),
    ConditionalRetrieval(dim=6, decoys=2, order="shuffled"),
]
TOKENS = MQAR(pairs=5, alphabet=20, length=24, queries=3)


@pytest.mark.parametrize("task", [*VECTORS, TOKENS], ids=lambda task: task.kind)
def test_chains_swap_one_symbol_and_all_else_stays_to_the_bit(task: Task) -> None:
    assert partners(5).tolist() == [1, 0, 3, 2, 4]
    plain, known = dataset(task, 3, COUNT), symbols(task, 3, COUNT)
    others, width = known[:, partners(known.shape[1])], known[0, 0, 0].numel()
    in_a_chain = plain.roles.chain < known.shape[1]
    for number, name in enumerate(task.symbol_names()):
        pair = dataset(task, 3, COUNT, swapped=(name,))
        assert torch.equal(pair.roles.role, plain.roles.role)
        assert torch.equal(pair.roles.chain, plain.roles.chain)
        for example in range(COUNT):
            was, now = (each.inputs[example].unflatten(0, (-1, 1)) for each in (plain, pair))
            was, now = was.flatten(1), now.flatten(1)
            expected = was.clone()
            # A decoy borrows keys of other chains, which then are these chains' new ones.
            for old, new in zip(known[example, :, number], others[example, :, number], strict=True):
                here = (was[:, :width] == old).all(-1) & in_a_chain[example]
                expected[here, :width] = new
            assert torch.equal(now, expected), name


@pytest.mark.parametrize("task", VECTORS, ids=lambda task: task.kind)
def test_symbols_are_those_that_are_asked_for(task: VectorTask) -> None:
    batch, known = dataset(task, 1, COUNT), symbols(task, 1, COUNT)
    chain = askers(task, 1, COUNT)
    assert torch.equal(chain, batch.roles.chain[:, -task.interface().read :].long())
    names, facts = task.symbol_names(), task.graph().facts
    for hop, number in enumerate(task.asked_hops()):
        column = names.index(facts[number - 1].value)
        expected = known[torch.arange(COUNT)[:, None], chain, column]
        assert torch.equal(batch.targets[:, :, hop], expected)


def test_symbols_of_tokens() -> None:
    batch, known = dataset(TOKENS, 1, COUNT), symbols(TOKENS, 1, COUNT)
    assert torch.equal(batch.inputs[:, 0:10:2], known[:, :, 0])
    assert torch.equal(batch.inputs[:, 1:10:2], known[:, :, 1])
    pair = askers(TOKENS, 1, COUNT)
    assert torch.equal(known[..., 1].gather(1, pair), batch.targets[..., 0])
    hops = KHop(hops=3, length=20, alphabet=4)
    batch, known = dataset(hops, 1, COUNT), symbols(hops, 1, COUNT)
    assert known.shape == (COUNT, 1, 4)
    assert not askers(hops, 1, COUNT).any()
    assert torch.equal(known[:, 0, 0], batch.inputs[:, -1])
    assert torch.equal(known[:, 0, 1:], batch.targets[:, -1])
