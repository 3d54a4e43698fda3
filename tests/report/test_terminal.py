import numpy as np

from hopscope.report.terminal import plot, sparkline


def test_sparklines_shrink_and_clip() -> None:
    assert sparkline([]) == ""
    assert sparkline([0.0, 0.5, 1.0, 2.0, -1.0], width=5) == "▁▅██▁"
    assert sparkline(np.repeat([0.0, 1.0], 50), width=4) == "▁▁██"


def test_the_plot_puts_each_hop_where_its_loss_is() -> None:
    steps = np.arange(1, 129)
    losses = np.stack([np.linspace(1, 0, 128), np.full(128, 0.75)], axis=1)
    lines = plot(steps, losses, level=0.75).splitlines()
    assert lines[-1].split() == ["0", "step", "128"]
    assert "1.05" in lines[0]
    assert "│11" in lines[1]
    assert lines[11].endswith("11")
    level = next(line for line in lines if line.startswith(" 0.75"))
    assert level.count("2") >= 56


def test_a_plot_of_few_steps_has_gaps_and_no_error() -> None:
    text = plot(np.array([1, 2]), np.array([[0.5], [0.25]]), level=0.75)
    assert text.count("1") == 2 + 1  # two marks, and the axis label 1.05


def test_what_is_not_a_number_leaves_a_gap() -> None:
    values = np.array([0.0, np.nan, 1.0])
    assert sparkline(values, width=3) == "▁ █"
    drawn = plot(np.arange(3), values[:, None], level=0.75)
    assert plot(np.arange(3), np.full((3, 1), np.nan), 0.75).count("1") < drawn.count("1")
