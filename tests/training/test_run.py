"""A run as the rest of hopscope sees it."""

import pytest

from hopscope.configs import Experiment, Model
from hopscope.errors import RunDamaged
from hopscope.runs.checkpoint import checkpoint_name
from hopscope.store import Store
from hopscope.training import Run, train


def test_a_config_that_asks_for_more_weights_than_there_are_builds_no_model(
    store: Store, tiny: Experiment
) -> None:
    """As a forged one may: a thousand million layers would be built for minutes."""
    run = train(tiny, store)
    last = run.folder.read(checkpoint_name(run.checkpoints[-1]))
    many = tiny.model_copy(update={"model": Model(layers=10**9, heads=2, d_model=16)})
    forged = Run(store.create(many))
    forged.folder.commit({checkpoint_name(12): last})
    with pytest.raises(RunDamaged, match=r"holds [\d,]+ numbers, its config asks for [\d,]+"):
        _ = forged.model
