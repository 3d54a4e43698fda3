"""Products of either library, of small operands and of large ones."""

import numpy as np
import pytest

from hopscope.markov.dense import SMALL, product


@pytest.mark.parametrize("rows", [1, 50, SMALL])
def test_small_and_large_products_are_sums_of_products(rows: int) -> None:
    generator = np.random.default_rng(rows)
    one, other = generator.random((rows, 3)), generator.random((3, 4))
    expected = sum(one[:, k, None] * other[k] for k in range(3))
    found = product(one, other)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    assert found.dtype == np.float64
