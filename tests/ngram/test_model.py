"""The model that walks, held against its equations for a chain that fits on a line."""

import numpy as np
import pytest
import torch

from hopscope.configs import Descent, InductionModel
from hopscope.ngram.model import InductionTransformer, loss
from hopscope.ngram.parameters import sets


def by_hand(module: InductionTransformer, tokens: list[int]) -> np.ndarray:
    """The answer, one position, head and set at a time, in plain numbers."""
    config, alphabet = module.config, module.alphabet
    weights = np.exp(module.w.detach().numpy())
    share = weights / weights.sum(axis=1, keepdims=True)
    c, a = module.c.detach().numpy() ** 2, float(module.a.detach())

    def copy(place: int, head: int) -> np.ndarray:
        mixed = np.zeros(alphabet)
        for lag in range(1, config.window + 1):
            mixed[tokens[place - lag]] += share[head, lag - 1]
        return mixed

    end, scores = len(tokens), []
    for place in range(config.window, end):
        total = 0.0
        for number, heads in enumerate(sets(config)):
            each = [copy(place, head) @ copy(end, head) for head in heads]
            total += c[number] / c.sum() * np.prod(each)
        scores.append(a * total)
    attention = np.exp(scores) / np.exp(scores).sum()
    answer = np.zeros(alphabet)
    for weight, place in zip(attention, range(config.window, end), strict=True):
        answer[tokens[place]] += weight
    return answer


@pytest.mark.parametrize("constant", [False, True])
def test_it_answers_as_its_equations_do(constant: bool) -> None:
    module = InductionTransformer(InductionModel(constant=constant), 3)
    generator = np.random.default_rng(0)
    with torch.no_grad():
        module.a.fill_(4.0)
        module.c.copy_(torch.from_numpy(generator.random(module.c.shape)))
    chains = generator.integers(3, size=(5, 11))
    found = module(torch.from_numpy(chains)).detach().numpy()
    for tokens, answer in zip(chains.tolist(), found, strict=True):
        np.testing.assert_allclose(answer, by_hand(module, tokens), atol=1e-12)


def test_unit_copies_have_length_one() -> None:
    module = InductionTransformer(InductionModel(unit_copies=True), 3)
    tokens = torch.randint(3, (4, 8), generator=torch.Generator().manual_seed(0))
    copies = module.copies(*module.seen(tokens, 8))
    np.testing.assert_allclose(copies.norm(dim=-1).detach().numpy(), 1, atol=1e-12)


def test_a_full_first_layer_is_drawn_by_its_seed() -> None:
    config = InductionModel(first="full", noise=0.1)
    one, same, other = (InductionTransformer(config, 3, seed) for seed in (1, 1, 2))
    assert torch.equal(one.w_q, same.w_q)
    assert not torch.equal(one.w_q, other.w_q)
    assert (one.w_v - torch.eye(3)).abs().max() < 1 < (one.w_v[:, 0, 0]).sum()


@pytest.mark.parametrize("kind", ["log", "softmax"])
def test_losses_are_means_over_chains(kind: str) -> None:
    answers = torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]).double()
    targets = torch.tensor([1, 2])
    found = float(loss(Descent(loss=kind, epsilon=0.01), answers, targets))
    if kind == "log":
        expected = -(np.log(0.26) + np.log(0.81)) / 2
    else:
        powers = np.exp(answers.numpy())
        expected = -np.log(powers[[0, 1], [1, 2]] / powers.sum(axis=1)).mean()
    assert found == pytest.approx(expected)
