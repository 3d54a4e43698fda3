from pathlib import Path

import numpy as np
import pytest

from hopscope.configs import Experiment
from hopscope.errors import StoreUnwritable
from hopscope.report.curves import WINDOW, loss_curves, smoothed
from hopscope.report.saving import save_figure
from hopscope.store import Store
from hopscope.training import train


def test_smoothing_is_a_running_mean() -> None:
    values = np.sin(np.arange(90.0)).reshape(-1, 1, 1)
    slow = [values[max(0, i + 1 - WINDOW) : i + 1].mean() for i in range(90)]
    assert np.allclose(smoothed(values)[:, 0, 0], slow)
    assert smoothed(values[:0]).shape == (0, 1, 1)


@pytest.mark.parametrize("seeds", [(0,), (0, 1)])
def test_the_figure_shows_every_hop(
    store: Store, tiny: Experiment, tmp_path: Path, seeds: tuple[int, ...]
) -> None:
    run = train(tiny.model_copy(update={"seeds": seeds}), store)
    figure = loss_curves(run)
    (axes,) = figure.axes
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["x₁", "x₂", "guess"]
    assert len(axes.collections) == (2 if len(seeds) > 1 else 0)
    path = save_figure(figure, tmp_path / "figures" / "loss.svg")
    assert path.read_text().startswith("<svg")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnwritable, match="cannot write"):
        save_figure(figure, tmp_path / "file" / "loss.svg")


def test_where_guessing_is_perfect_the_axis_has_room_for_losses(
    store: Store, tiny: Experiment
) -> None:
    alone = tiny.task.model_copy(update={"chains": 1})
    figure = loss_curves(train(tiny.model_copy(update={"task": alone}), store))
    assert figure.axes[0].get_ylim()[1] > 1
    assert "times guessing" not in figure.caption
