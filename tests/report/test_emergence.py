"""Figures of emergence: every path once, in its order, and every event where it was."""

from dataclasses import replace

import numpy as np
import pytest

from hopscope.circuits.emergence import Emergence
from hopscope.facts import Role
from hopscope.report.emergence import emergence_figure, label, order_figure
from hopscope.theory import Path

LATE = Path(1, 0, Role("query"), Role("value"))
EARLY = Path(0, 2, Role("value"), Role("key"))
NEVER = Path(0, 1, Role("value", 1), Role("key", 1))
STORY = Emergence(
    (LATE, EARLY, NEVER),
    (0, 10, 20, 100),
    np.array([[0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, 1.0], [0.1, 0.1, 0.1, 0.1]]),
    np.array([[0.7, 0.7], [0.6, 0.7], [0.1, 0.7], [0.0, 0.6]]),
    0.75,
    None,
    (14, None),
)


def test_bars_end_where_paths_emerged_and_lines_stand_where_hops_were_learned() -> None:
    (axes,) = order_figure(STORY).axes
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    assert names == [label(path) for path in (NEVER, LATE, EARLY)]
    ends = {round(bar.get_y() + bar.get_height() / 2): bar.get_width() for bar in axes.patches}
    assert ends == pytest.approx({1: 15, 2: 5})
    texts = {text.get_text(): text.get_position()[0] for text in axes.texts}
    assert texts == pytest.approx({"never": 1, "$x_{1}$": 14})
    (line,) = axes.lines
    assert list(line.get_xdata()) == [14, 14]


def test_what_is_not_known_of_hops_is_not_drawn() -> None:
    (axes,) = order_figure(replace(STORY, learned_at=None)).axes
    assert not axes.lines
    assert len(axes.patches) == 2


def test_attention_is_above_and_losses_are_below() -> None:
    above, below = emergence_figure(STORY).axes
    names = [str(line.get_label()) for line in above.lines]
    assert names[:3] == [label(path) for path in (EARLY, LATE, NEVER)]
    assert list(above.lines[0].get_ydata()) == [0, 1, 1, 1]
    hops = {str(line.get_label()): list(line.get_ydata()) for line in below.lines}
    assert hops["$x_{1}$"] == [0.7, 0.6, 0.1, 0.0]
    assert hops["guess"] == [0.75, 0.75]
    assert list(below.lines[0].get_xdata()) == [0, 10, 20, 100]


def test_a_label_has_the_arrow_from_what_is_read() -> None:
    assert label(LATE) == "1.0: q ← v0"
