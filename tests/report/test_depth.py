from matplotlib.patches import Arc

from hopscope.facts import chain_of_facts, parse_facts
from hopscope.report.depth import CODE_COLOUR, SYMBOL_COLOUR, grid, shared_information
from hopscope.theory import flow


def test_arcs_join_equal_symbols_above_and_pairs_below() -> None:
    (axes,) = shared_information(chain_of_facts(5)).axes
    arcs = [patch for patch in axes.patches if isinstance(patch, Arc)]
    above = [arc for arc in arcs if arc.theta1 == 0]
    below = [arc for arc in arcs if arc.theta1 == 180]
    assert len(above) == 5  # x_0 … x_4 occur twice, x_5 once
    assert len(below) == 5  # one per pair
    assert {arc.width for arc in below} == {1}
    assert SYMBOL_COLOUR != CODE_COLOUR
    labels = [text.get_text() for text in axes.texts]
    assert labels[:4] == ["x₄", "k4", "x₅", "v4"]
    assert labels[-2:] == ["x₀", "q"]


def test_the_grid_has_a_row_per_layer_and_a_cell_per_reading() -> None:
    found = flow(chain_of_facts(3))
    rows = grid(found, found.schedule("x3")).splitlines()
    assert rows[0].split()[:8] == ["layer", "k2", "v2", "k1", "v1", "k0", "v0", "q"]
    assert rows[1].split()[:8] == ["1", "·", "k2", "·", "k1", "·", "k0", "·"]
    assert rows[3].split() == ["3", *"······", "v1", "x0,", "x1,", "x2,", "x3"]


def test_wide_schedules_are_listed() -> None:
    found = flow(chain_of_facts(40))
    assert grid(found, found.schedule("x40")).startswith("layer 1: value")


def test_keys_of_one_fact_are_told_apart() -> None:
    found = flow(parse_facts(["f,i->o"]))
    text = grid(found, found.schedule("o"))
    assert "q1" in text
    assert "k0.1" in text


def test_several_readings_of_a_layer_share_a_cell() -> None:
    found = flow(chain_of_facts(5), causal=False)
    readings = found.schedule("x5")
    doubled = [
        r for r in readings if sum((r.layer, r.reader) == (o.layer, o.reader) for o in readings) > 1
    ]
    text = grid(found, readings)
    assert text.count("+") == len(doubled) - len({(r.layer, r.reader) for r in doubled})
    assert doubled
