"""Losses as curves: all points of a short training, means of a long one."""

import numpy as np
import pytest

from hopscope.configs import Experiment
from hopscope.errors import ConfigError
from hopscope.runs import train
from hopscope.store import Store
from hopscope.store.metrics import losses
from hopscope.web import curves as module
from hopscope.web.curves import curves, seed_of


def test_a_short_training_is_shown_as_it_was(store: Store, tiny: Experiment) -> None:
    folder = train(tiny, store).folder
    found = curves(folder)
    for split in ("train", "validation"):
        steps, values = losses(folder, split)
        np.testing.assert_array_equal(found[f"{split}_steps"], steps)
        np.testing.assert_array_equal(found[split], values)


def test_points_of_a_long_one_are_means_of_several_steps(
    store: Store, tiny: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = train(tiny, store).folder
    monkeypatch.setattr(module, "POINTS", 5)
    _, values = losses(folder, "train")
    found = curves(folder)
    assert found["train_steps"].tolist() == [3, 6, 9, 12]
    np.testing.assert_allclose(found["train"][1], values[3:6].mean(0), rtol=1e-6)


def test_a_run_without_losses_has_empty_curves(store: Store, tiny: Experiment) -> None:
    found = curves(store.create(tiny))
    assert {name: len(values) for name, values in found.items()} == {
        "train_steps": 0, "train": 0, "validation_steps": 0, "validation": 0,
    }  # fmt: skip


def test_another_seed_is_refused(store: Store, tiny: Experiment) -> None:
    folder = store.create(tiny)
    assert seed_of(folder, tiny, None) == 0
    with pytest.raises(ConfigError, match=r"seed is 3; .* has the seeds 0"):
        seed_of(folder, tiny, 3)
