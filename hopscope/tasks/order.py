"""The order in which a finite training set is visited, without storing it.

Every epoch is a permutation of the examples, computed position by position. It is a Feistel network
over the next even power of two, applied again until the result is a valid index (cycle walking,
Black & Rogaway 2002). So the examples of step s are a pure function of (seed, s), and the only
state that a resumed training needs is its step.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from hopscope.tasks import counter

ROUNDS = 6
"""Rounds of the Feistel network."""
ORDER_STREAM = 2
"""The number of the order in the keys of random numbers; the splits have 0 and 1."""


def visited(
    seeds: Int[Tensor, "model"], step: int, batch: int, examples: int
) -> Int[Tensor, "model batch"]:
    """The numbers of the examples for each seed's model at a step (0-based)."""
    place = torch.arange(batch, device=seeds.device) + step * batch
    epoch = place // examples
    key = counter.keys(seeds[:, None], ORDER_STREAM, epoch[None, :])
    return permuted(key, (place % examples).expand_as(key), examples)


def permuted(
    key: Int[Tensor, "*shape"], place: Int[Tensor, "*shape"], size: int
) -> Int[Tensor, "*shape"]:
    """The image of each place under the key's permutation of range(size)."""
    half = max(1, ((size - 1).bit_length() + 1) // 2)
    result = _feistel(key, place, half)
    while (outside := result >= size).any():
        result = torch.where(outside, _feistel(key, result, half), result)
    return result


def _feistel(key: Tensor, place: Tensor, half: int) -> Tensor:
    mask = (1 << half) - 1
    left, right = place >> half, place & mask
    for number in range(ROUNDS):
        scrambled = counter.mix(key ^ ((right << 8 | number) * counter.GOLDEN))
        left, right = right, left ^ (scrambled & mask)
    return left << half | right
