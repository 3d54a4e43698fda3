"""The order in which heads emerge, of look-ups and of paths that join pairs."""

from musat_rows import KNOWN, D, emerging_row, judged, tables, with_

from hopscope.papers.musat.rows import ReadingRow
from hopscope.papers.table import Table


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


def under_a_reading(last: int | None) -> list[Table]:
    """Transformer D as we take the paper, which learns one hop; and three under a reading of it."""
    alone = with_(tables()[D][0], crossed=(700, None, None, None))
    rows = [
        ReadingRow(
            **{**emerging_row(262_144).model_dump(exclude_unset=True), "seed": seed},
            reading="fan-in pair",
            flop=1e14,
        )
        for seed in range(3)
    ]
    rows[2] = with_(rows[2], crossed=(100, 200, 300, last))
    return [Table(D, "full", (alone,)), Table("musat/fig7-readings", "reduced", tuple(rows))]


def test_a_reading_over_seeds_stands_beside_what_we_take_the_paper_for() -> None:
    claim = KNOWN["musat/d-hops-in-order"]
    assert claim.beside == ("musat/fig7-readings",)
    found = claim.judge(under_a_reading(400))
    assert found.verdict == "under a reading"
    assert found.evidence.endswith("with “fan-in pair”")
    assert found.ours.endswith("100 < 200 < 300 < 400 with “fan-in pair”")
    assert claim.judge(under_a_reading(None)).verdict == "not reproduced"
