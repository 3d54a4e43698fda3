"""Metrics and parameters in Parquet: they come back as they went in, or the run is damaged."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from stopping import with_losses

from hopscope.configs import Experiment, NgramExperiment, Retrieval
from hopscope.errors import RunDamaged, StoreUnwritable
from hopscope.store import RunFolder, Store, tables
from hopscope.store.metrics import (
    final_losses,
    loss_rows,
    losses,
    losses_file,
    parameter_series,
    parameters_file,
)
from hopscope.store.tables import METRICS, PARAMETERS, QueryError, merged_tables, to_parquet

RECIPE = Experiment(task=Retrieval(hops=3), seeds=(7, 3))


def values(first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    steps = np.arange(first, last + 1, dtype=np.int32)
    found = np.arange(len(steps) * 2 * 3, dtype=np.float32).reshape(-1, 2, 3) + 100 * first
    return steps, found


def test_losses_come_back_by_parts_or_merged(store: Store) -> None:
    folder = store.create(RECIPE)
    assert losses(folder, "train")[1].shape == (0, 2, 3)
    one, two, validation = values(1, 4), values(5, 9), values(9, 9)
    folder.commit({METRICS.part_name(0, 4): losses_file([loss_rows("train", RECIPE, *one)])})
    second = [loss_rows("train", RECIPE, *two), loss_rows("validation", RECIPE, *validation)]
    folder.commit({METRICS.part_name(4, 9): losses_file(second)})
    before = losses(folder, "train")
    folder.commit(*merged_tables(folder))
    for steps, found in (before, losses(folder, "train")):
        assert steps.tolist() == list(range(1, 10))
        assert np.array_equal(found, np.concatenate([one[1], two[1]]))
    assert np.array_equal(losses(folder, "validation")[1], validation[1])


def test_the_same_rows_make_the_same_bytes_however_they_were_cut(tmp_path: Path) -> None:
    files = []
    for cuts in ([0, 600, 700], [0, 3, 650, 700]):
        folder = Store(tmp_path / str(len(cuts))).create(RECIPE)
        for start, stop in pairwise(cuts):
            steps = np.arange(start + 1, stop + 1, dtype=np.int32)
            found = np.sin(np.arange(stop * 6, dtype=np.float32)[start * 6 :]).reshape(-1, 2, 3)
            rows = loss_rows("train", RECIPE, steps, found)
            folder.commit({METRICS.part_name(start, stop): losses_file([rows])})
        files.append(METRICS.merged(folder))
    assert files[0] == files[1]


def test_a_folder_that_is_called_like_a_setting_changes_no_number(tmp_path: Path) -> None:
    """DuckDB would take `loss=3` for the values of a column."""
    files, found = [], []
    for inner in ("plain", "split=train/loss=3/seed=5/step=1"):
        store = Store(tmp_path / inner)
        folder = store.create(RECIPE)
        rows = [loss_rows(split, RECIPE, *values(1, 4)) for split in ("train", "validation")]
        folder.commit({METRICS.part_name(0, 4): losses_file(rows)})
        parts = losses(folder, "validation")[1].tolist(), store.sql("from metrics").rows()
        files.append(METRICS.merged(folder))
        folder.commit(*merged_tables(folder))
        merged = losses(folder, "validation")[1].tolist(), store.sql("from metrics").rows()
        found.append((parts, merged))
    assert files[0] == files[1]
    assert found[0] == found[1]


def test_files_without_a_column_a_row_or_their_bytes_are_damage(
    store: Store, tiny: Experiment
) -> None:
    folder, one = store.create(tiny), {"one": np.ones(1)}
    row = "'train' as split, 0::integer as seed, 0.5::float as loss"
    steps, found = np.arange(1, 200, dtype=np.int32), np.random.default_rng(0).random((199, 1, 2))
    zeroed = bytearray(losses_file([loss_rows("train", tiny, steps, found.astype(np.float32))]))
    zeroed[4 : len(zeroed) // 2] = bytes(len(zeroed) // 2 - 4)  # the footer is whole
    for data in (
        to_parquet(one, f"select {row}, 1::integer as step, 1::tinyint as hop from rows"),
        to_parquet(one, f"select {row}, null::integer as step, 1::tinyint as hop from rows"),
        to_parquet(one, f"select {row}, 1::integer as step from rows"),
        bytes(zeroed),
        b"PAR1 and nothing else",
    ):
        folder.commit({METRICS.part_name(0, 1): data})
        with pytest.raises(RunDamaged, match="exactly one row for each|cannot be read") as caught:
            losses(folder, "train")
        assert "\n" not in str(caught.value)


def test_a_flipped_byte_is_damage_even_if_the_file_can_be_read(
    store: Store, tiny: Experiment
) -> None:
    found = np.random.default_rng(0).random((199, 1, 2), np.float32)
    folder = with_losses(store, tiny, found)
    (name,) = folder.files("metrics/")
    whole = (folder.path / name).read_bytes()
    for place in range(5, len(whole), len(whole) // 40):
        flipped = bytearray(whole)
        flipped[place] ^= 1
        (folder.path / name).write_bytes(flipped)
        for read in (lambda: losses(folder, "train"), lambda: METRICS.merged(folder)):
            with pytest.raises(RunDamaged):
                read()


def test_missing_losses_are_nan(store: Store, tiny: Experiment) -> None:
    folder = store.create(tiny)
    rows = loss_rows("train", tiny, np.arange(1, 3, dtype=np.int32), np.zeros((2, 1, 2), "f4"))
    lost = "case when step = 1 and hop = 2 then null else loss end::float as loss"
    query = f"select 'train' as split, step, seed, hop, {lost} from rows"
    folder.commit({METRICS.part_name(0, 2): to_parquet(rows, query)})
    found = losses(folder, "train")[1]
    assert not np.ma.isMaskedArray(found)
    assert np.array_equal(found[:, 0], [[0, np.nan], [0, 0]], equal_nan=True)


def test_final_losses_are_the_mean_over_a_hundred_steps_however_many_were_recorded() -> None:
    steps = np.array([1, 2, 150, 200, 201, 250, 300])
    found = np.arange(14.0).reshape(7, 1, 2)
    assert final_losses(steps, found).tolist() == [[10.0, 11.0]]  # of steps 201, 250 and 300
    early = np.array([0, 3])  # nothing was trained before the first step
    assert final_losses(early, found[:2]).tolist() == [[2.0, 3.0]]
    assert final_losses(early[:1], found[:1]).tolist() == [[0.0, 1.0]]


def test_parameters_come_back_by_parts_or_merged(store: Store) -> None:
    folder = store.create(NgramExperiment(seeds=(3, 1)))
    assert parameter_series(folder, 3)["step"].tolist() == []
    numbers = np.random.default_rng(0).random((2, 2, 5))
    for start, stop in ((0, 3), (3, 5)):
        named = {
            seed: dict(zip(("w[0]", "a"), numbers[at, :, start:stop], strict=True))
            for at, seed in enumerate((3, 1))
        }
        data = parameters_file(np.arange(start, stop, dtype=np.int32), named)
        folder.commit({PARAMETERS.part_name(start, stop): data})
    before = [parameter_series(folder, seed) for seed in (3, 1)]
    folder.commit(*merged_tables(folder))
    for found in (before, [parameter_series(folder, seed) for seed in (3, 1)]):
        assert [each["step"].tolist() for each in found] == [[0, 1, 2, 3, 4]] * 2
        assert np.array_equal([[each["w[0]"], each["a"]] for each in found], numbers)
    data = parameters_file(np.array([7], np.int32), {3: {"a": np.zeros(1)}})
    folder.commit({PARAMETERS.part_name(5, 7): data})  # b has no row there
    with pytest.raises(RunDamaged, match="do not have exactly one row for each step and name"):
        parameter_series(folder, 3)


def test_a_full_temporary_folder_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables.tempfile, "tempdir", "/nowhere")
    with pytest.raises(StoreUnwritable, match="cannot write a temporary file .* set TMPDIR"):
        to_parquet({"one": np.ones(1)}, "select * from rows")


def test_a_wrong_query_is_not_called_a_full_folder() -> None:
    with pytest.raises(QueryError, match="Binder Error"):
        to_parquet({"one": np.ones(1)}, "select two from rows")


def test_a_table_is_read_while_its_parts_are_merged(store: Store) -> None:
    folder = with_losses(store, RECIPE, values(1, 4)[1])
    early = RunFolder(folder.path)
    folder.commit(*merged_tables(folder))
    assert len(losses(early, "train")[0]) == 4


def test_a_database_fetches_no_extension() -> None:
    with tables.open_database() as duck:
        duck.execute("select name, value from duckdb_settings() where name like 'auto%extensions'")
        assert dict(duck.fetchall()) == {
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
        }
