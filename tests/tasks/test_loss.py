import math

import pytest
import torch

from hopscope.configs import ConditionalRetrieval, KHop, Retrieval
from hopscope.errors import CircuitError
from hopscope.tasks import dataset, hop_losses, total


def test_the_mean_of_the_candidates_reaches_the_guessing_level() -> None:
    for symbols in ("gaussian", "sphere", "one-hot"):
        task = Retrieval(hops=2, symbols=symbols, dim=12)
        batch = dataset(task, 0, 20_000)
        candidates = batch.targets.mean(dim=1, keepdim=True).expand_as(batch.targets)
        losses = hop_losses(task, candidates.flatten(2), batch)
        assert losses.tolist() == pytest.approx([task.chance()] * 2, rel=0.01), symbols


def test_losses_are_means_over_examples_queries_and_numbers() -> None:
    task = Retrieval(hops=2, chains=2)
    batch = dataset(task, 0, 6)
    outputs = torch.randn(6, 2, 8)
    for hop in range(2):
        slow = sum(
            (float(outputs[e, q, hop * 4 + n]) - float(batch.targets[e, q, hop, n])) ** 2
            for e in range(6) for q in range(2) for n in range(4)
        ) / 48  # fmt: skip
        assert float(hop_losses(task, outputs, batch)[hop]) == pytest.approx(slow, rel=1e-5)


def test_a_fleet_has_the_losses_of_its_members() -> None:
    task = KHop()
    batch = dataset(task, 0, 10)
    outputs = torch.randn(10, 32, 18)
    fleet = hop_losses(task, outputs.unflatten(0, (2, 5)), batch.stacked(2))
    for member in range(2):
        rows = slice(5 * member, 5 * member + 5)
        part = dataset(task, 0, 10)
        alone = torch.stack([
            -outputs[rows].unflatten(-1, (2, 9)).log_softmax(-1)[..., hop, :]
            .gather(-1, part.targets[rows][..., hop, None]).mean()
            for hop in range(2)
        ])  # fmt: skip
        assert torch.allclose(fleet[member], alone)
    assert torch.allclose(total(fleet), fleet.mean(1))


def test_several_known_symbols_are_answered_at_the_last() -> None:
    task = ConditionalRetrieval(facts=("f,i->o",), chains=2)
    batch = dataset(task, 0, 4)
    outputs = torch.full((4, 4, 4), math.nan)
    outputs[:, 1::2] = batch.targets.flatten(2)
    assert hop_losses(task, outputs, batch).tolist() == [0.0]


def test_a_model_of_another_number_of_classes_is_named() -> None:
    task = KHop(hops=2, alphabet=4, length=6)
    batch = dataset(task, 0, 3)
    line = "gives 7 numbers at each position; this task needs 10: 5 classes for each of 2 hops"
    with pytest.raises(CircuitError, match=line):
        hop_losses(task, torch.zeros(3, 6, 7), batch)
