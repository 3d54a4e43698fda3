"""Figures on places show what their rows say."""

from musat_rows import changed_row, place_row

from hopscope.report.places import changed_figure, place_figure


def test_models_stand_by_what_they_know_of_other_places_and_how_long_they_wait() -> None:
    rows = [
        place_row("shuffled", 0.3, [400, 440]), place_row("backward", 1.1, [400, 800]),
        place_row("backward", 1.0, [400, None]), place_row("backward", 1.0, [None, None]),
    ]  # fmt: skip
    (axes,) = place_figure(rows).axes
    shown = {line.get_label(): line for line in axes.lines}
    points = {
        name: (list(line.get_xdata()), list(line.get_ydata()), line.get_marker())
        for name, line in shown.items()
        if name.startswith("4 layers")
    }
    assert points == {
        "4 layers, shuffled, code per pair, base 10 (1 of 1)": ([0.3], [0.1], "o"),
        "4 layers, in order, code per pair, base 10 (1 of 3)": ([1.1], [1.0], "s"),
    }
    assert [list(line.get_ydata()) for line in axes.lines if line.get_linestyle() == ":"] == [
        [0.25, 0.25]
    ]


def test_each_model_is_a_line_from_one_order_to_the_other() -> None:
    rows = [
        changed_row("shuffled", "backward", 50), changed_row("shuffled", "shuffled", 90),
        changed_row("backward", "backward", 300, seed=2),
        changed_row("backward", "shuffled", None, seed=2),
    ]  # fmt: skip
    ordered, shuffled = changed_figure(rows).axes
    assert [axes.get_title() for axes in (ordered, shuffled)] == [
        "x₁ learned with facts in order", "x₁ learned with facts shuffled",
    ]  # fmt: skip
    drawn = [
        [list(line.get_ydata()) for line in axes.lines if len(line.get_ydata()) > 1]
        for axes in (ordered, shuffled)
    ]
    assert drawn == [[[300, 600]], [[50, 90]]]
    filled = {
        line.get_ydata()[0]: line.get_markerfacecolor() == line.get_color()
        for axes in (ordered, shuffled)
        for line in axes.lines
        if len(line.get_ydata()) == 1
    }
    assert filled == {300: True, 600: False, 50: True, 90: True}
