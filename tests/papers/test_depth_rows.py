"""What the theorem says, counted in two ways, and transformers that prove it."""

import json

import pytest

from hopscope.papers.depth_rows import PLANTED, depth_rows
from hopscope.papers.results import Row


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return depth_rows("smoke")


def test_rows_survive_json(rows: list[Row]) -> None:
    assert json.loads(json.dumps(rows)) == rows


def test_a_row_for_each_number_of_hops(rows: list[Row]) -> None:
    counted = [row for row in rows if "hops" in row]
    assert [row["hops"] for row in counted] == list(range(1, 9))
    for row in counted:
        assert row["simulated"] == {kind: row[kind] for kind in ("bidirectional", "causal")}
        bound = row["theorem_1"]
        assert 3 ** (bound - 1) < 2 * row["hops"] <= 3**bound  # the least t ≥ log3(2D)
        assert bound <= row["bidirectional"] <= row["causal"]


def test_weights_written_by_hand_solve_it_in_as_many_layers(rows: list[Row]) -> None:
    planted = {row["planted"]: row for row in rows if "planted" in row}
    causal = {row["hops"]: row["causal"] for row in rows if "hops" in row}
    assert tuple(planted) == PLANTED
    for hops, row in planted.items():
        assert (row["layers"], row["heads"]) == (causal[hops], 1)
        assert 0 <= row["error"] < 1e-6
