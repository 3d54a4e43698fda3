"""Examples of two hops, what measures ablations on them, and the circuit of a planted model."""

import pytest

from hopscope.circuits import Ablator, Circuit, Examples, adapter_of, discover, examples_of
from hopscope.models import Transformer
from hopscope.models.planted import Planted


@pytest.fixture
def examples(two_hops: Planted) -> Examples:
    return examples_of(two_hops.task, 6)


@pytest.fixture
def ablator(random_model: Transformer, examples: Examples) -> Ablator:
    return Ablator(adapter_of(random_model), examples)


@pytest.fixture(scope="session")
def circuit(two_hops: Planted) -> Circuit:
    return discover(two_hops.model, two_hops.task, examples=32)
