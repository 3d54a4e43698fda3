"""Heads of a language model as a figure: a panel for each purpose, rings where beyond chance."""

import numpy as np
import pytest

from hopscope.facts import Role
from hopscope.llm.heads import HeadScores, Route
from hopscope.report.heads import heads_figure

ROUTES = (
    Route(Role("query"), Role("key"), "look-up"),
    Route(Role("query"), Role("value"), "look-up"),
    Route(Role("answer"), Role("value"), "answer"),
)


def test_a_panel_shows_each_head_s_best_route() -> None:
    own = np.zeros((3, 2, 2))
    own[0, 1, 0], own[1, 1, 0], own[2, 0, 1] = 0.4, 0.9, 0.05
    others = np.zeros_like(own)
    others[1, 1, 0] = 0.2
    scores = HeadScores("tiny", "kind", ROUTES, own, others, np.full(3, 0.1), own, own, 8, 3)
    figure = heads_figure(scores)
    lookups, answers, _ = figure.axes
    assert (lookups.get_title(), answers.get_title()) == ("look-up", "answer")
    shown = np.asarray(lookups.images[0].get_array())
    assert shown.tolist() == [[0, 0], [pytest.approx(0.7), 0]]
    (rings,) = lookups.lines
    assert list(zip(rings.get_xdata(), rings.get_ydata(), strict=True)) == [(0, 1)]
    assert not len(answers.lines[0].get_xdata())  # 0.05 is within chance
    assert "8 questions, 3 answered" in figure.caption
