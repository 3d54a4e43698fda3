from pathlib import Path

import pytest

from hopscope.configs import Experiment, Model
from hopscope.errors import ConfigError
from hopscope.report.comparison import comparison_figure
from hopscope.report.saving import save_figure
from hopscope.store import Store
from hopscope.store.gallery import find
from hopscope.study import compare


def test_a_panel_for_each_hop(store: Store, tmp_path: Path) -> None:
    copy = store.copy(find("demo"), "mine")
    figure = comparison_figure(compare("gallery/demo", copy))
    assert [axes.get_title() for axes in figure.axes] == ["hop 1", "hop 2"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["gallery/demo", "mine", "guess"]
    curves = [line for line in figure.axes[1].lines if len(line.get_xdata()) > 100]
    assert len(curves) == 2
    assert save_figure(figure, tmp_path / "a.svg").is_file()


def test_without_losses_there_is_nothing_to_draw(store: Store) -> None:
    one = store.create(Experiment())
    other = store.create(Experiment(model=Model(layers=2)))
    with pytest.raises(ConfigError, match=f"neither {one.name} nor {other.name} has losses"):
        comparison_figure(compare(one, other))
