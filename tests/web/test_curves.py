"""Losses as curves: all points of a short training, means of a long one."""

import numpy as np
import pytest

from hopscope.configs import Experiment
from hopscope.runs import train
from hopscope.store import Store
from hopscope.store.metrics import losses
from hopscope.web import curves as module
from hopscope.web.curves import curves


def test_a_short_training_is_shown_as_it_was_and_a_long_one_by_means(
    store: Store, tiny: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {len(values) for values in curves(store.create(tiny)).values()} == {0}
    folder = train(tiny, store).folder
    found = curves(folder)
    for split in ("train", "validation"):
        steps, values = losses(folder, split)
        np.testing.assert_array_equal(found[f"{split}_steps"], steps)
        np.testing.assert_array_equal(found[split], values)
    monkeypatch.setattr(module, "POINTS", 5)
    _, values = losses(folder, "train")
    found = curves(folder)
    assert found["train_steps"].tolist() == [3, 6, 9, 12]
    np.testing.assert_allclose(found["train"][1], values[3:6].mean(0), rtol=1e-6)
