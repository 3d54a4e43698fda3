import math

import numpy as np
import pytest
import torch

from hopscope.tasks import counter


def splitmix(state: int) -> int:
    """SplitMix64's finaliser in Python's whole numbers."""
    mask = 2**64 - 1
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & mask
    return state ^ (state >> 31)


def test_mix_is_splitmix64() -> None:
    numbers = [0, 1, -1, 123456789, -(2**63), 2**63 - 1]
    mixed = counter.mix(torch.tensor(numbers)).tolist()
    assert [m % 2**64 for m in mixed] == [splitmix(n % 2**64) for n in numbers]


def test_normals_agree_with_box_muller_by_the_library() -> None:
    raw = counter.bits(torch.tensor([5]), 2_000)[0].tolist()
    drawn = counter.normals(torch.tensor([5]), 4_000)[0].tolist()
    for number, (first, second) in zip(raw, zip(drawn[::2], drawn[1::2], strict=True), strict=True):
        high, low = (number >> 32) % 2**32, number % 2**32
        radius = math.sqrt(-2 * math.log((high + 0.5) / 2**32))
        angle = ((low % 2**30) + 0.5) / 2**30 * math.pi / 2 - math.pi / 4
        angle += math.pi / 2 * ((low >> 30) % 2) + math.pi * (low >> 31)
        assert first == pytest.approx(radius * math.cos(angle), abs=3e-7)
        assert second == pytest.approx(radius * math.sin(angle), abs=3e-7)


def test_roots_are_rounded_correctly() -> None:
    """As NumPy's are, which are the processor's own."""
    drawn = torch.Generator().manual_seed(0)
    exponents = torch.randint(-200, 200, (200_000,), generator=drawn)
    numbers = torch.rand(200_000, generator=drawn, dtype=torch.float64) + 0.5
    numbers = torch.cat(
        [numbers * 2.0 ** exponents.double(), torch.tensor([1.0, 2.0, 4.0]).double()]
    )
    assert counter.root(numbers).tolist() == np.sqrt(numbers.numpy()).tolist()
