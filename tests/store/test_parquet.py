"""Tables of runs: nothing is read that has not the columns, or that has too many rows."""

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest

from hopscope.configs import Experiment
from hopscope.errors import RunDamaged, StoreUnwritable
from hopscope.store import RunFolder, Store, parquet
from hopscope.store.parquet import Table, to_parquet

TABLE = Table("metrics", {"step": "INTEGER", "loss": "DOUBLE"}, "order by step")
READ = "select * from read_parquet($paths) order by step"


@pytest.fixture
def folder(store: Store, tiny: Experiment) -> RunFolder:
    return store.create(tiny)


def file(steps: list[int], losses: list[float], query: str = "select * from rows") -> bytes:
    rows = {"step": np.array(steps, np.int32), "loss": np.array(losses, np.float64)}
    return to_parquet(rows, query)


def test_parts_are_joined_in_order(folder: RunFolder) -> None:
    first, second = TABLE.part_name(0, 2), TABLE.part_name(2, 3)
    assert first == "metrics/part-00000000-00000002.parquet"
    folder.commit({first: file([2, 1], [0.2, 0.1]), second: file([3], [0.3])})
    found = TABLE.select(folder, READ, {})
    assert (found["step"].tolist(), found["loss"].tolist()) == ([1, 2, 3], [0.1, 0.2, 0.3])
    folder.commit({"metrics/losses.parquet": TABLE.merged(folder)}, drop=(first, second))
    again = TABLE.select(folder, "select * from read_parquet($paths)", {})
    assert again["step"].tolist() == [1, 2, 3]


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="files in memory: Linux has them")
def test_a_file_is_written_where_a_kill_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))  # nobody writes there
    without = file([2, 1], [0.2, 0.1])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delattr(os, "memfd_create")
    assert file([2, 1], [0.2, 0.1]) == without
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(StoreUnwritable, match="cannot write a temporary file .* set TMPDIR"):
        file([2, 1], [0.2, 0.1])


def test_nothing_is_found_where_there_is_nothing(folder: RunFolder) -> None:
    assert TABLE.select(folder, READ, {}) == {}


def test_missing_numbers_are_no_numbers(folder: RunFolder) -> None:
    query = "select step, case when step = 1 then null else loss end as loss from rows"
    folder.commit({TABLE.part_name(0, 2): file([1, 2], [0.1, 0.2], query)})
    losses = TABLE.select(folder, READ, {})["loss"]
    assert np.isnan(losses).tolist() == [True, False]
    assert not np.ma.isMaskedArray(losses)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (file([1], [0.1], "select step, loss::float as loss from rows"), "has the columns step IN"),
        (file([1], [0.1], "select step from rows"), "has the columns step INTEGER"),
        (b"PAR1 and nothing else", "the metrics of .* cannot be read"),
    ],
)
def test_what_is_no_such_table_is_damage(folder: RunFolder, data: bytes, text: str) -> None:
    folder.commit({TABLE.part_name(0, 1): data})
    with pytest.raises(RunDamaged, match=text) as caught:
        TABLE.select(folder, READ, {})
    assert "hopscope verify" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_rows_that_would_fill_the_memory_are_not_read(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "FREE_ROWS", 10)
    monkeypatch.setattr(parquet, "ROWS_PER_BYTE", 0)
    folder.commit({TABLE.part_name(0, 1): file([1] * 11, [0.0] * 11)})
    with pytest.raises(RunDamaged, match="has 11 rows in so few bytes"):
        TABLE.select(folder, READ, {})
