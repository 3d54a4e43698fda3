"""Metrics and parameters in Parquet: they come back as they went in, or the run is damaged."""

import os
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from hopscope.configs import Experiment, NgramExperiment, Retrieval
from hopscope.errors import RunDamaged, StoreUnwritable
from hopscope.store import RunFolder, Store, metrics, parameters
from hopscope.store.metrics import LOSSES, ended, losses, merged, part, part_name
from hopscope.store.parquet import check_columns, to_parquet

RECIPE = Experiment(task=Retrieval(hops=3), seeds=(7, 3))


@pytest.fixture
def folder(store: Store, tiny: Experiment) -> RunFolder:
    return store.create(tiny)


def some_losses(first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    steps = np.arange(first, last + 1, dtype=np.int32)
    values = np.arange(len(steps) * 2 * 3, dtype=np.float32).reshape(-1, 2, 3) + 100 * first
    return steps, values


def file(steps: list[int], losses: list[float], query: str = "select * from rows") -> bytes:
    rows = {"step": np.array(steps, np.int32), "loss": np.array(losses, np.float64)}
    return to_parquet(rows, query)


def test_losses_come_back_by_parts_or_merged(store: Store) -> None:
    folder = store.create(RECIPE)
    assert losses(folder, "train")[1].shape == (0, 2, 0)
    one, two = some_losses(1, 4), some_losses(5, 9)
    checked = some_losses(9, 9)
    folder.commit({part_name(0, 4): metrics.to_parquet([part("train", RECIPE, *one)])})
    second = [part("train", RECIPE, *two), part("validation", RECIPE, *checked)]
    folder.commit({part_name(4, 9): metrics.to_parquet(second)})
    before = losses(folder, "train")
    folder.commit({LOSSES: merged(folder)}, drop=tuple(folder.files("metrics/part-")))
    for steps, values in (before, losses(folder, "train")):
        assert steps.tolist() == list(range(1, 10))
        assert np.array_equal(values, np.concatenate([one[1], two[1]]))
    assert np.array_equal(losses(folder, "validation")[1], checked[1])


def test_the_same_rows_make_the_same_bytes_however_they_were_cut(tmp_path: Path) -> None:
    blobs = []
    for cuts in ([0, 600, 700], [0, 3, 650, 700]):
        folder = Store(tmp_path / str(len(cuts))).create(RECIPE)
        for start, stop in pairwise(cuts):
            steps = np.arange(start + 1, stop + 1, dtype=np.int32)
            values = np.sin(np.arange(stop * 6, dtype=np.float32)[start * 6 :]).reshape(-1, 2, 3)
            rows = metrics.to_parquet([part("train", RECIPE, steps, values)])
            folder.commit({part_name(start, stop): rows})
        blobs.append(merged(folder))
    assert blobs[0] == blobs[1]


def test_losses_without_their_place_or_their_bytes_are_damage(
    folder: RunFolder, tiny: Experiment
) -> None:
    row = {"step": "1::integer", "seed": "0::integer", "hop": "1::tinyint"}
    for missing in row:
        columns = row | {missing: f"null::{row[missing].partition('::')[2]}"}
        asked = ", ".join(f"{value} as {name}" for name, value in columns.items())
        query = f"select 'train' as split, {asked}, 0.5::float as loss from rows"
        folder.commit({part_name(0, 1): to_parquet({"one": np.ones(1)}, query)})
        with pytest.raises(RunDamaged, match="not one row for each|is missing"):
            losses(folder, "train")
    # The file's footer is whole, and its hash was forged with it.
    steps, values = np.arange(1, 200, dtype=np.int32), np.random.default_rng(0).random((199, 1, 2))
    rows = part("train", tiny, steps, values.astype(np.float32))
    data = bytearray(metrics.to_parquet([rows]))
    data[4 : len(data) // 2] = bytes(len(data) // 2 - 4)
    folder.commit({part_name(0, 1): bytes(data)})
    with pytest.raises(RunDamaged, match="cannot be read"):
        merged(folder)


def test_losses_end_at_the_mean_of_a_hundred_steps_however_many_were_recorded() -> None:
    steps = np.array([1, 2, 150, 200, 201, 250, 300])
    losses = np.arange(14.0).reshape(7, 1, 2)
    assert ended(steps, losses).tolist() == [[10.0, 11.0]]  # those of steps 201, 250 and 300
    assert ended(steps[:2], losses[:2]).tolist() == [[1.0, 2.0]]
    early = np.array([0, 3])  # before the first step nothing was trained
    assert ended(early, losses[:2]).tolist() == [[2.0, 3.0]]
    assert ended(early[:1], losses[:1]).tolist() == [[0.0, 1.0]]


def test_parameters_come_back_by_parts_or_merged(store: Store) -> None:
    folder = store.create(NgramExperiment(seeds=(3, 1)))
    assert parameters.values(folder, 3)["step"].tolist() == []
    numbers = np.random.default_rng(0).random((2, 2, 5))
    parts = {}
    for start, stop in ((0, 3), (3, 5)):
        rows = {
            seed: dict(zip(("w[0]", "a"), numbers[at, :, start:stop], strict=True))
            for at, seed in enumerate((3, 1))
        }
        data = parameters.to_parquet(np.arange(start, stop, dtype=np.int32), rows)
        parts[parameters.part_name(start, stop)] = data
    folder.commit(parts)
    before = [parameters.values(folder, seed) for seed in (3, 1)]
    folder.commit({parameters.VALUES: parameters.merged(folder)}, drop=tuple(parts))
    for found in (before, [parameters.values(folder, seed) for seed in (3, 1)]):
        assert [each["step"].tolist() for each in found] == [[0, 1, 2, 3, 4]] * 2
        assert np.array_equal([[each["w[0]"], each["a"]] for each in found], numbers)


def test_parameters_without_a_name_or_a_row_are_damage(store: Store) -> None:
    folder = store.create(NgramExperiment(seeds=(3, 1)))
    for rows, text in (
        ([("a", 0, 2), ("b", 2, 3)], "have not one row for each step and name: restore"),
    ):
        for name, start, stop in rows:
            steps = np.arange(start, stop, dtype=np.int32)
            data = parameters.to_parquet(steps, {3: {name: np.zeros(stop - start)}})
            folder.commit({parameters.part_name(start, stop): data})
        with pytest.raises(RunDamaged, match=text):
            parameters.values(folder, 3)
        folder.commit({}, drop=tuple(folder.files("parameters/")))


def test_missing_numbers_are_no_numbers(folder: RunFolder, tiny: Experiment) -> None:
    rows = part("train", tiny, np.arange(1, 3, dtype=np.int32), np.zeros((2, 1, 2), np.float32))
    lost = "case when step = 1 and hop = 2 then null else loss end::float as loss"
    query = f"select 'train' as split, step, seed, hop, {lost} from rows"
    folder.commit({part_name(0, 2): to_parquet(rows, query)})
    values = losses(folder, "train")[1]
    assert not np.ma.isMaskedArray(values)
    assert np.array_equal(values[:, 0], [[0, np.nan], [0, 0]], equal_nan=True)


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


def test_what_is_no_such_table_is_damage(folder: RunFolder) -> None:
    for data, text in (
        (
            file([1], [0.1], "select 'x' as step, loss from rows"),
            "the metrics of .* cannot be read",
        ),
        (file([1], [0.1], "select step from rows"), "the metrics of .* cannot be read"),
        (b"PAR1 and nothing else", "the metrics of .* cannot be read"),
    ):
        folder.commit({part_name(0, 1): data})
        for look in (
            lambda: losses(folder, "train"),
            lambda: check_columns(folder, "metrics", folder.paths("metrics/")),
        ):
            with pytest.raises(RunDamaged, match=text) as caught:
                look()
            assert "hopscope verify" in str(caught.value), text
            assert "\n" not in str(caught.value), text
    folder.commit({part_name(0, 1): file([1], [0.1])})
    with pytest.raises(RunDamaged, match="has the columns step integer, loss double"):
        check_columns(folder, "metrics", folder.paths("metrics/"))
