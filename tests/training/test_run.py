"""Runs as the rest of hopscope sees them: their models and losses, and when hops were learned."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
import torch
from stopping import content

from hopscope.configs import Experiment, Model
from hopscope.errors import ConfigError, RunDamaged
from hopscope.milestones import WINDOW, learned
from hopscope.runs import opened
from hopscope.store import Store
from hopscope.store.checkpoints import checkpoint_name
from hopscope.store.tables import METRICS
from hopscope.training import Run, train


def test_losses_and_models_that_there_are_not(store: Store, tiny: Experiment) -> None:
    begun = opened(store.create(tiny))
    with pytest.raises(ConfigError, match="is not complete: step 0 of .*`hopscope resume"):
        begun.final_losses()
    run = train(tiny, store)
    with pytest.raises(ConfigError, match="no losses of 'test'; expected train or valid"):
        run.losses("test")
    with pytest.raises(ConfigError, match="step is 6; .* has no checkpoint there, the nearest is"):
        run.model_at(6)
    with pytest.raises(ConfigError, match="gallery/planted has no losses: nothing was trained"):
        opened(store.find("gallery/planted")).final_losses()


def test_each_model_says_when_it_learned_each_hop(store: Store, tiny: Experiment) -> None:
    fleet = train(tiny.replace(seeds=(5, 1)), store)
    steps, losses = fleet.losses("train")
    checked, validation = fleet.losses("validation")
    level = float(losses[WINDOW:].mean())  # some hop of some model is below, and some above
    found = fleet.learned(level)
    assert len(found) == 2
    for model, its in enumerate(found):
        assert its == learned(steps, losses[:, model], checked, validation[:, model], level)
    assert fleet.learned() == fleet.learned(2 / 3 * tiny.task.chances()[0])
    assert fleet.learned(1e6) == [[WINDOW] * 2] * 2
    assert fleet.learned(0.0) == [[None] * 2] * 2


def test_a_config_that_asks_for_other_weights_or_losses_is_refused(
    store: Store, tiny: Experiment
) -> None:
    """As a forged one may: a thousand million layers would be built for minutes."""
    run = train(tiny, store)
    last = run.folder.read(checkpoint_name(run.checkpoints[-1]))
    many = Model(layers=10**9, heads=2, d_model=16)
    forged = Run(store.create(tiny.replace(model=many)))
    forged.folder.commit({checkpoint_name(12): last})
    with pytest.raises(
        RunDamaged,
        match="does not have the weights of 1,000,000,000 layers: .*: restore it from a copy",
    ):
        _ = forged.model
    task = tiny.task.replace(hops=tiny.task.hops + 1)
    forged = Run(store.create(tiny.replace(task=task)))
    forged.folder.commit({METRICS.file: run.folder.read(METRICS.file)})
    with pytest.raises(
        RunDamaged, match="not have exactly one row for each .* hop that its config"
    ):
        forged.losses()


@contextmanager
def float64() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def autocast() -> AbstractContextManager[None]:
    return torch.autocast("cpu", torch.bfloat16)


def test_the_callers_modes_change_no_run(store: Store, tmp_path: Path, tiny: Experiment) -> None:
    usual = content(train(tiny, store).folder)
    for mode in (float64, torch.no_grad, torch.inference_mode, autocast):
        with mode():
            run = train(tiny, tmp_path / mode.__name__)
            assert {p.dtype for p in run.model.parameters()} == {torch.float32}
        assert content(run.folder) == usual, mode
