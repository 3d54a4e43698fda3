"""Examples of two hops, and the circuit of a planted model."""

import pytest

from hopscope.circuits import Circuit, Examples, discover, examples_of
from hopscope.models.planted import Planted


@pytest.fixture
def examples(two_hops: Planted) -> Examples:
    return examples_of(two_hops.task, 6)


@pytest.fixture(scope="session")
def circuit(two_hops: Planted) -> Circuit:
    return discover(two_hops.model, two_hops.task, examples=32)
