"""A planted model that is small and exact, and a random one that attends to everything."""

import pytest
import torch

from hopscope.circuits import Ablator, Exam, exam_of, subject_of
from hopscope.configs import Model, Retrieval
from hopscope.models import Transformer
from hopscope.models.planted import Planted, planted

TWO_HOPS = Retrieval(hops=2, chains=2, dim=6, symbols="one-hot")


@pytest.fixture(scope="session")
def two_hops() -> Planted:
    return planted(TWO_HOPS)


@pytest.fixture
def exam() -> Exam:
    return exam_of(TWO_HOPS, 6)


@pytest.fixture
def random_model() -> Transformer:
    """Three layers of two heads with large random weights: nothing in it is nearly zero."""
    config = Model(layers=3, heads=2, d_model=12, init="fan-in")
    model = Transformer.seeded(config, TWO_HOPS.interface(), 3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    return model


@pytest.fixture
def ablator(random_model: Transformer, exam: Exam) -> Ablator:
    return Ablator(subject_of(random_model), exam)
