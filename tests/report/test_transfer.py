"""A trained n-gram model on other chains: a column for what is varied, means over seeds."""

import numpy as np
import pytest

from hopscope.report.look import drawn
from hopscope.report.transfer import LINES, Transfer, draw_transfer

LENGTHS = Transfer(
    "length", np.array([10, 100]), 100,
    np.array([[[1.0, 2.0, 3.0, 4.0]] * 2, [[3.0, 2.0, 3.0, 4.0]] * 2]),
    np.array([[0.5, 0.1], [0.7, 0.3]]),
)  # fmt: skip
ALPHAS = Transfer("alpha", np.array([0.1, 1.0]), 0.1, np.ones((2, 2, 4)), np.full((2, 2), 0.2))


def test_every_line_is_a_mean_and_the_training_is_marked() -> None:
    above, _, below, other = drawn(draw_transfer)([LENGTHS, ALPHAS], "title").axes
    lines = {str(line.get_label()): line for line in above.lines}
    assert [name for name in lines if name in LINES] == list(LINES)
    assert list(lines["model"].get_ydata()) == pytest.approx([2.0, 2.0])
    assert list(lines["truth"].get_ydata()) == pytest.approx([4.0, 4.0])
    assert list(below.lines[0].get_ydata()) == pytest.approx([0.6, 0.2])
    assert list(above.lines[-1].get_xdata()) == [100, 100]
    assert (below.get_xlabel(), other.get_xlabel()) == ("length of the chain", "α of the prior")
