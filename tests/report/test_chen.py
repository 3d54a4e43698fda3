"""What the figures of Chen et al. show is what the rows say."""

import chen_rows
import pytest

from hopscope.papers.chen.judges import NEAR
from hopscope.papers.row import Row
from hopscope.papers.table import Table
from hopscope.report.chen import settings_figures, training_figures


def table(rows: list[Row]) -> Table:
    return Table("chen/training", "full", tuple(rows))


def test_other_chains_are_means_over_seeds_in_order_of_their_values() -> None:
    rows: list[Row] = [chen_rows.course_row(seed) for seed in (0, 1)]
    for seed, length, loss in ((0, 400, 0.2), (0, 10, 0.4), (1, 10, 0.6), (1, 400, 0.1)):
        row = chen_rows.transfer_row(seed, "length", length, 0.1)
        losses = row.loss.model_copy(update={"model": loss})
        rows.append(row.model_copy(update={"loss": losses}))
    rows += [chen_rows.transfer_row(seed, "alpha", 100, 0.5) for seed in (0, 1)]
    _, (_, figure) = training_figures(table(rows))
    lengths = figure.axes[0]
    model, *others, trained = lengths.lines
    assert list(model.get_xdata()) == [10, 400]
    assert list(model.get_ydata()) == pytest.approx([0.5, 0.15])
    assert [line.get_label() for line in others] == ["GIH", "Bayes", "truth"]
    assert list(trained.get_xdata()) == [100, 100]


def test_settings_that_chose_other_lags_stand_out() -> None:
    right = [chen_rows.setting_row("the paper's", seed) for seed in (0, 1)]
    other = chen_rows.setting_row("alphabet 8")
    wrong = other.model_copy(update={"chosen_lags": (1,), "distance": 0.5})
    ((_, figure),) = settings_figures(table([*right, wrong]))
    assert "2 settings" in figure.caption
    assert figure.name.endswith("2 seeds")
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["alphabet 8", "the paper's"]
    upper, lower, limit = axes.lines
    assert (list(upper.get_xdata()), list(upper.get_ydata())) == ([0.006, 0.006], [1, 1])
    assert (list(lower.get_xdata()), list(lower.get_ydata())) == ([0.5], [0])
    assert upper.get_color() != lower.get_color()
    assert list(limit.get_xdata()) == [NEAR, NEAR]
