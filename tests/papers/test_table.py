"""What a table knows of its rows."""

from hopscope.papers.row import Row
from hopscope.papers.table import Table


class Numbered(Row):
    n: int


class Named(Row):
    name: str


ROWS = (Numbered(run="b", n=1), Named(name="x"), Numbered(run="a", n=2), Numbered(run="b", n=3))


def test_rows_are_asked_for_by_kind() -> None:
    table = Table("musat/x", "full", ROWS)
    assert [row.n for row in table.of(Numbered)] == [1, 2, 3]
    assert [row.name for row in table.of(Named)] == ["x"]
    assert table.of(Row) == list(ROWS)


def test_runs_are_counted_once_in_their_order() -> None:
    assert Table("musat/x", "full", ROWS, wanted=3).runs == ("b", "a")
    assert Table("musat/x", "full", ROWS, wanted=3).missing == 1
    assert Table("musat/x", "full", ROWS, wanted=1).missing == 0
    assert Table("musat/x", "full", ROWS).missing == 0


def test_what_a_table_does_not_know_is_not_written() -> None:
    assert b"wanted" not in Table("musat/x", "full", ()).to_bytes()
    assert b'"wanted": 0' in Table("musat/x", "full", (), wanted=0).to_bytes()
