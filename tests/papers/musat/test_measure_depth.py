"""What the theorem says, counted in two ways, and transformers that prove it."""

import json

import pytest

from hopscope.papers.musat.measure_depth import PLANTED, depth_rows
from hopscope.papers.musat.rows import DepthRow, Layers, PlantedRow
from hopscope.papers.row import read_row


@pytest.fixture(scope="module")
def rows() -> list[DepthRow | PlantedRow]:
    return depth_rows("smoke")


def test_rows_survive_json(rows: list[DepthRow | PlantedRow]) -> None:
    again = [read_row((DepthRow, PlantedRow), json.loads(row.to_json())) for row in rows]
    assert again == rows


def test_a_row_for_each_number_of_hops(rows: list[DepthRow | PlantedRow]) -> None:
    counted = [row for row in rows if isinstance(row, DepthRow)]
    assert [row.hops for row in counted] == list(range(1, 9))
    for row in counted:
        assert row.simulated == Layers(bidirectional=row.bidirectional, causal=row.causal)
        bound = row.theorem_1
        assert 3 ** (bound - 1) < 2 * row.hops <= 3**bound  # the least t ≥ log3(2D)
        assert bound <= row.bidirectional <= row.causal


def test_weights_written_by_hand_solve_it_in_as_many_layers(
    rows: list[DepthRow | PlantedRow],
) -> None:
    planted = {row.planted: row for row in rows if isinstance(row, PlantedRow)}
    causal = {row.hops: row.causal for row in rows if isinstance(row, DepthRow)}
    assert tuple(planted) == PLANTED
    for hops, row in planted.items():
        assert (row.layers, row.heads) == (causal[hops], 1)
        assert 0 <= row.error < 1e-6
