"""Figures over readings and seeds show what their rows say."""

import musat_rows
import pytest
from musat_rows import loss_row, with_

from hopscope.papers.musat.circuit_claims import AS_WE_TAKE_IT
from hopscope.papers.musat.reading_map import tried
from hopscope.papers.table import Table
from hopscope.report.readings import batch_figure, law_figure, map_figure


def test_each_line_says_what_models_end_at_and_for_how_many_a_claim_holds() -> None:
    rows = [*musat_rows.reading_rows("torch")[:2], *musat_rows.reading_rows("fan-in")]
    rows[0], rows[1] = (with_(row, final=[0.4] * 3, clean=0.4) for row in rows[:2])
    rows[3] = with_(rows[3], final=[0.02] * 3, clean=0.02)
    figure = map_figure(tried([Table("musat/readings", "reduced", tuple(rows))]))
    ends, claims = figure.axes
    assert [label.get_text() for label in ends.get_yticklabels()] == ["fan-in", "torch"]
    dots = [line for line in ends.lines if line.get_marker() == "o"]
    losses = [loss for dot in dots for loss in dot.get_xdata()]
    assert losses == pytest.approx([0.004, 0.02, 0.004, 0.4, 0.4])
    assert [list(dot.get_ydata()) for dot in dots] == [[0, 0, 0], [1, 1]]
    cells = {text.get_position(): text.get_text() for text in claims.texts}
    assert len(cells) == 2 * len(AS_WE_TAKE_IT)
    assert (cells[0, 0], cells[0, 1]) == ("2/3", "0/2")
    assert "6,400 steps, 150 TFLOP each" in figure.caption


def test_models_are_counted_by_depth_and_by_hops() -> None:
    rows = [
        loss_row(1, [0.75, 0.75]), loss_row(2, [0.1, 0.75]), loss_row(2, [0.1, 0.75], seed=1),
        loss_row(2, [0.75, 0.75], seed=2), loss_row(3, [0.1, 0.1]),
    ]  # fmt: skip
    (axes,) = law_figure(rows).axes
    shown = {text.get_position(): text.get_text() for text in axes.texts}
    assert shown == {(1, 0): "1", (2, 1): "2", (2, 0): "1", (3, 2): "1"}
    (law,) = axes.lines
    assert (list(law.get_xdata()), list(law.get_ydata())) == ([1, 2, 3], [0, 1, 2])


def test_models_stand_at_their_batch_where_a_hop_was_learned() -> None:
    rows = [
        with_(loss_row(4, [0.1, final], [90, step]), batch=batch)
        for batch, final, step in ((64, 0.7, None), (128, 0.2, 400))
    ]
    when, end = batch_figure(rows).axes
    learned = [(list(line.get_xdata()), list(line.get_ydata())) for line in when.lines]
    assert learned == [([64, 128], [90, 90]), ([128], [400])]
    assert [list(line.get_ydata()) for line in end.lines] == [[0.1, 0.1], [0.7, 0.2]]
