"""Accuracies of language models: each with its interval, beside the line of guessing."""

from dataclasses import dataclass

import pytest
from matplotlib.axes import Axes

from hopscope.report.llm import results_figure


@dataclass(frozen=True)
class Result:
    kind: str
    hops: int
    accuracy: float
    interval: tuple[float, float]
    guessing: float = 0.25


ROWS = {
    "small": [Result("equations-d1", 1, 0.5, (0.4, 0.7)), Result("kingdoms", 5, 0.3, (0.2, 0.4))],
    "large": [
        Result("equations-d1", 1, 0.9, (0.8, 0.9)),
        Result("equations-d3", 3, 0.6, (0.5, 0.7)),
    ],
}


def bars(axes: Axes) -> list[tuple[float, ...]]:
    """The two ends of each interval: x, y, x, y."""
    lines = [lines for container in axes.containers for lines in container[2]]
    segments = [segment for each in lines for segment in each.get_segments()]
    return [(*map(float, low), *map(float, high)) for low, high in segments]


def test_intervals_go_from_end_to_end() -> None:
    left, right = results_figure(ROWS).axes
    expected = ((1, 0.4, 0.7), (1, 0.8, 0.9), (3, 0.5, 0.7))
    upward = [(round(low), below, above) for low, below, _, above in bars(left)]
    assert upward == [pytest.approx(each) for each in expected]
    ends = [each[::2] for each in bars(right)]
    assert ends == [pytest.approx(row.interval) for rows in ROWS.values() for row in rows]


def test_every_kind_has_a_place_and_the_line_of_guessing() -> None:
    figure = results_figure(ROWS)
    left, right = figure.axes
    ticks = [tick.get_text() for tick in right.get_yticklabels()]
    assert ticks == ["equations-d1", "kingdoms", "equations-d3"]
    assert list(left.lines[-1].get_ydata()) == [0.25, 0.25]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["small", "large"]
