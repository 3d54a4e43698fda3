"""A planted model that is small and exact, and a random one that attends to everything."""

import pytest
import torch

from hopscope.circuits import Bench, Probe, probe_of, subject_of
from hopscope.configs import Model, Retrieval
from hopscope.models import Transformer
from hopscope.models.planted import Planted, planted
from hopscope.tasks import interface

TWO_HOPS = Retrieval(hops=2, chains=2, dim=6, symbols="one-hot")


@pytest.fixture(scope="session")
def two_hops() -> Planted:
    return planted(TWO_HOPS)


@pytest.fixture
def probe() -> Probe:
    return probe_of(TWO_HOPS, 6)


@pytest.fixture
def random_model() -> Transformer:
    """Three layers of two heads with large random weights: nothing in it is nearly zero."""
    config = Model(layers=3, heads=2, d_model=12, init="fan-in")
    model = Transformer.seeded(config, interface(TWO_HOPS), 3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    return model


@pytest.fixture
def bench(random_model: Transformer, probe: Probe) -> Bench:
    return Bench(subject_of(random_model), probe)
