from pathlib import Path

import pytest

from hopscope.configs import Experiment, Model
from hopscope.errors import ConfigError
from hopscope.report.comparison import comparison_figure
from hopscope.report.saving import save_figure
from hopscope.store import Store
from hopscope.store.gallery import find
from hopscope.study import compare
from hopscope.training import train


def test_a_panel_for_each_hop(store: Store, tmp_path: Path) -> None:
    copy = store.copy(find("demo"), "mine")
    figure = comparison_figure(compare("gallery/demo", copy))
    assert [axes.get_title() for axes in figure.axes] == ["hop 1", "hop 2"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["gallery/demo", "mine", "guess"]
    assert figure.caption.endswith("Dotted: guessing. The axis ends at 1.6 times the highest.")
    curves = [line for line in figure.axes[1].lines if len(line.get_xdata()) > 100]
    assert len(curves) == 2
    assert save_figure(figure, tmp_path / "a.svg").is_file()


def test_without_losses_there_is_nothing_to_draw(store: Store) -> None:
    one = store.create(Experiment())
    other = store.create(Experiment(model=Model(layers=2)))
    with pytest.raises(ConfigError, match=f"neither {one.name} nor {other.name} has losses"):
        comparison_figure(compare(one, other))


def test_levels_that_differ_have_the_colours_of_their_runs(store: Store, tiny: Experiment) -> None:
    other = tiny.model_copy(update={"task": tiny.task.model_copy(update={"chains": 4})})
    runs = [train(each, store).folder for each in (tiny, other)]
    figure = comparison_figure(compare(*runs, store))
    (legend,) = figure.legends
    one, two, *guess = legend.get_lines()
    assert [line.get_color() for line in guess] == [one.get_color(), two.get_color()]
    assert figure.caption.endswith(
        "Dotted: guessing, each in its run's colour. The axis ends at 1.6 times the highest."
    )
