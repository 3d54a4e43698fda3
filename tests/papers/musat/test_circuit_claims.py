"""What an eye would see in maps, and first layers that are removed whole."""

import pytest
from musat_rows import ABC, judged, maps_of, tables, with_

from hopscope.papers.musat.circuit_claims import seen_by_eye
from hopscope.papers.musat.rows import CircuitRow, WholeHead


def test_an_eye_sees_heads_that_look_at_another_role() -> None:
    (row, *_) = tables()[ABC]
    assert seen_by_eye(row) == [(2, 0)]
    assert seen_by_eye(with_(row, maps=maps_of([0.5, 0.4, 0.1]))) == []
    itself = [[[list(sources) for sources in head] for head in layer] for layer in row.maps.own]
    for role in range(len(row.maps.roles)):
        itself[0][0][role][role] = 0.9
    assert seen_by_eye(with_(row, maps={**row.maps.model_dump(), "own": itself})) == [(2, 0)]
    assert "would call 11, 11, 11 idle" in judged("abc-mostly-idle", tables()).evidence


@pytest.mark.parametrize(("loss", "verdict"), [(0.06, "reproduced"), (0.2, "not reproduced")])
def test_a_first_head_that_was_removed_whole_counts_instead_of_its_paths(
    loss: float, verdict: str
) -> None:
    rows = tables()
    rows[ABC] = [removed(row, loss) for row in rows[ABC]]
    found = judged("abc-first-layers", rows)
    assert found.verdict == verdict
    assert found.ours.startswith(f"{loss:.2f} … {loss:.2f}; ")
    assert found.evidence.startswith("3 first heads removed whole, as in the paper; of 0 models")


def removed(row: CircuitRow, loss: float) -> CircuitRow:
    """The row, with its first head removed whole, and another one, which does not count."""
    whole = (WholeHead(head=(2, 0), loss=loss), WholeHead(head=(4, 0), loss=0.9))
    return with_(row, whole=whole)
