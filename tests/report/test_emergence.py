"""Figures of emergence: every path once, in its order, and every event where it was."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.collections import QuadMesh

from hopscope.circuits.emergence import Emergence
from hopscope.facts import Role
from hopscope.report.emergence import (
    emergence_figure,
    emergence_rows,
    label,
    order_figure,
)
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


def test_marks_stand_where_paths_emerged_and_where_hops_were_learned() -> None:
    (axes,) = order_figure(STORY).axes
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    first, second, third = label(EARLY), "x₁ learned", label(LATE)
    assert names == ["x₂ learned", label(NEVER), third, second, first]
    marks = {names[round(line.get_ydata()[0])]: line.get_xdata()[0] for line in axes.lines}
    assert marks == pytest.approx({first: 5, second: 14, third: 15})
    assert [text.get_text() for text in axes.texts] == ["never", "never"]


def test_what_is_not_known_of_hops_is_not_drawn() -> None:
    (axes,) = order_figure(replace(STORY, learned_at=None)).axes
    assert len(axes.lines) == 2


def test_a_late_path_does_not_squeeze_the_others() -> None:
    assert order_figure(STORY).axes[0].get_xscale() == "linear"
    late = replace(STORY, learned_at=(14, 90))
    assert order_figure(late).axes[0].get_xscale() == "log"


@pytest.mark.parametrize(
    ("last", "steps"),
    [(90, ["5", "10", "20", "50", "100"]), (4_000, ["10", "100", "1,000"])],
)
def test_steps_far_apart_are_plain_numbers(last: int, steps: list[str]) -> None:
    (axes,) = order_figure(replace(STORY, learned_at=(14, last))).axes
    low, high = axes.get_xlim()
    shown = zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
    assert [label.get_text() for place, label in shown if low <= place <= high] == steps
    assert axes.get_xticks(minor=True).size == 0


def test_attention_is_above_in_rows_and_losses_are_below() -> None:
    above, below, _ = emergence_figure(STORY).axes
    names = [tick.get_text() for tick in above.get_yticklabels()]
    assert names == [label(path) for path in (NEVER, LATE, EARLY)]
    (rows,) = (each for each in above.collections if isinstance(each, QuadMesh))
    assert np.asarray(rows.get_array())[-1].tolist() == [0, 1, 1, 1]
    assert [line.get_xdata()[0] for line in above.lines] == pytest.approx([15, 5])
    hops = {str(line.get_label()): list(line.get_ydata()) for line in below.lines}
    assert hops["x₁"] == [0.7, 0.6, 0.1, 0.0]
    assert hops["guess"] == [0.75, 0.75]
    assert list(below.lines[0].get_xdata()) == [0, 10, 20, 100]


def test_a_label_has_the_arrow_from_what_is_read() -> None:
    assert label(LATE) == "1.0: q ← v0"


def test_a_hop_that_is_asked_alone_has_its_number() -> None:
    last = replace(STORY, losses=STORY.losses[:, :1], learned_at=(14,), hops=(5,))
    assert Emergence.from_dict(last.to_dict()).asked == (5,)
    assert "hops" not in STORY.to_dict()
    assert emergence_rows(last)[-1][1:3] == ("hop 5 is learned", "14")
    names = [tick.get_text() for tick in order_figure(last).axes[0].get_yticklabels()]
    assert "x₅ learned" in names
    legend = emergence_figure(last).axes[1].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["x₅", "guess"]
