"""Shared fixtures: tiny experiments, and a store that lives as long as a test."""

from pathlib import Path

import pytest

from hopscope.configs import Experiment, Model, Retrieval, Training
from hopscope.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "runs")


@pytest.fixture
def tiny() -> Experiment:
    """Trains in well under a second."""
    return Experiment(
        task=Retrieval(hops=2, chains=2),
        model=Model(layers=2, heads=2, d_model=16),
        training=Training(
            steps=12,
            batch=8,
            examples=64,
            checkpoint_every=5,
            validate_every=4,
            validation_examples=16,
            precision="float32",
        ),
    )
