"""A planted model with twins and a spare layer, and its circuit: what figures and pages show."""

import pytest

from hopscope.circuits import Circuit, discover
from hopscope.configs import Retrieval
from hopscope.models.planted import Planted, planted


@pytest.fixture(scope="session")
def known() -> Planted:
    task = Retrieval(hops=2, chains=2, dim=6, symbols="one-hot")
    return planted(task, twins=True, spare_layers=[1])


@pytest.fixture(scope="session")
def circuit(known: Planted) -> Circuit:
    return discover(known.model, known.task, examples=16)
