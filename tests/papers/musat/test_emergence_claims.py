"""The order in which heads emerge, of look-ups and of paths that join pairs."""

from musat_rows import D, judged, tables, with_


def test_pairs_may_be_joined_in_any_order() -> None:
    rows = tables()
    early = [
        path.model_copy(update={"reader": "value 3", "source": "key 3", "emerged_at_step": 10.0})
        for path in rows[D][0].emergence.paths[:1]
    ]
    known = rows[D][0].emergence
    told = known.model_copy(update={"paths": (*early, *known.paths)})
    rows[D][0] = with_(rows[D][0], emergence=told)
    found = judged("d-order", rows)
    assert found.verdict == "reproduced"
    assert "4,900 (with pairs joined 3,500 < 3,900 < 4,400 < 10) with" in found.ours
