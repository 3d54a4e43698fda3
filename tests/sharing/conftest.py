"""Runs to be shared: a fleet of two that trained for six steps."""

from pathlib import Path

import pytest

from hopscope.configs import Experiment, KHop, Model, Training
from hopscope.store import RunFolder
from hopscope.store.gallery import find

RECIPE = Experiment(
    task=KHop(hops=2, length=9, alphabet=5),
    model=Model(layers=2, heads=2, d_model=12, init="fan-in"),
    training=Training(
        steps=6,
        batch=4,
        examples=16,
        checkpoint_every=3,
        validate_every=2,
        validation_examples=8,
        precision="float32",
    ),
    seeds=(3, 5),
)


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    from hopscope.training import train

    return train(RECIPE, tmp_path_factory.mktemp("sharing") / "runs").folder


@pytest.fixture(scope="session")
def demo() -> RunFolder:
    return find("demo")


@pytest.fixture
def empty(tmp_path: Path) -> RunFolder:
    """A run of which nothing is trained yet."""
    from hopscope.store import Store

    return Store(tmp_path / "runs").create(RECIPE)
