from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from hopscope.configs import Experiment, Retrieval
from hopscope.errors import RunDamaged, StoreError
from hopscope.store import Store, sql
from hopscope.store.metrics import LOSSES, ended, losses, merged, part, part_name, to_parquet
from hopscope.store.parquet import to_parquet as parquet

RECIPE = Experiment(task=Retrieval(hops=3), seeds=(7, 3))


def some_losses(first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    steps = np.arange(first, last + 1, dtype=np.int32)
    values = np.arange(len(steps) * 2 * 3, dtype=np.float32).reshape(-1, 2, 3) + 100 * first
    return steps, values


def test_parts_come_back_as_they_went_in(store: Store) -> None:
    folder = store.create(RECIPE)
    assert losses(folder, "train")[1].shape == (0, 2, 0)
    one, two = some_losses(1, 4), some_losses(5, 9)
    checked = some_losses(9, 9)
    folder.commit({part_name(0, 4): to_parquet([part("train", RECIPE, *one)])})
    second = [part("train", RECIPE, *two), part("validation", RECIPE, *checked)]
    folder.commit({part_name(4, 9): to_parquet(second)})
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
            folder.commit(
                {part_name(start, stop): to_parquet([part("train", RECIPE, steps, values)])}
            )
        blobs.append(merged(folder))
    assert blobs[0] == blobs[1]


def test_sql_sees_every_metric_of_every_run(store: Store) -> None:
    assert sql(store, "select * from metrics").rows == ()
    for recipe in (RECIPE, RECIPE.model_copy(update={"seeds": (1, 2)})):
        folder = store.create(recipe)
        rows = to_parquet([part("train", recipe, *some_losses(1, 4))])
        folder.commit({part_name(0, 4): rows}, step=4)
    answer = sql(store, "select run, count(*) as n, max(loss) as top from metrics group by run")
    assert answer.columns == ("run", "n", "top")
    assert sorted(answer.rows) == sorted((name, 24, 123.0) for name in store.names())
    joined = (
        "select seeds, layers, step from runs join metrics on run = name where hop = 3 group by all"
    )
    assert len(sql(store, "select distinct on (name) * from runs").rows) == 2
    assert len(sql(store, joined.replace("step", "metrics.step")).rows) == 8
    asked = sql(store, "select config ->> '$.task.kind' as kind, steps from runs limit 1")
    assert asked.rows == (("retrieval", RECIPE.steps),)


def test_a_wrong_question_is_one_line(store: Store) -> None:
    with pytest.raises(
        StoreError, match=r"Catalog Error.*\(tables: runs, metrics, parameters\)"
    ) as caught:
        sql(store, "select * from losses")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("missing", ["step", "seed", "hop"])
def test_a_row_without_its_place_is_damage(store: Store, tiny: Experiment, missing: str) -> None:
    folder = store.create(tiny)
    columns = {"step": "1::integer", "seed": "0::integer", "hop": "1::tinyint"}
    columns[missing] = f"null::{columns[missing].partition('::')[2]}"
    row = ", ".join(f"{value} as {name}" for name, value in columns.items())
    table = parquet(
        {"one": np.ones(1)}, f"select 'train' as split, {row}, 0.5::float as loss from rows"
    )
    folder.commit({part_name(0, 1): table})
    with pytest.raises(RunDamaged, match="not one row for each|is missing"):
        losses(folder, "train")


def test_columns_that_cannot_be_unpacked_are_damage(store: Store, tiny: Experiment) -> None:
    """Where the file's footer is whole, and its hash was forged with it."""
    folder = store.create(tiny)
    steps, values = np.arange(1, 200, dtype=np.int32), np.random.default_rng(0).random((199, 1, 2))
    data = bytearray(to_parquet([part("train", tiny, steps, values.astype(np.float32))]))
    data[4 : len(data) // 2] = bytes(len(data) // 2 - 4)
    folder.commit({part_name(0, 199): bytes(data)})
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
