import os
import shutil
from pathlib import Path

import duckdb
import numpy as np
import pytest

from hopscope.configs import Experiment
from hopscope.errors import RunDamaged, StoreError
from hopscope.store import RunFolder, Store, sql
from hopscope.store.metrics import LOSSES, losses, merged, part, part_name, to_parquet


def with_losses(store: Store, experiment: Experiment) -> RunFolder:
    folder = store.create(experiment)
    steps = np.arange(1, 5, dtype=np.int32)
    values = np.ones((4, len(experiment.seeds), 2), np.float32)
    data = to_parquet([part("train", experiment, steps, values)])
    folder.commit({part_name(0, 4): data}, step=4)
    return folder


@pytest.fixture
def run(store: Store, tiny: Experiment) -> RunFolder:
    return with_losses(store, tiny)


@pytest.mark.parametrize(
    "question",
    [
        "from metrics", "with a as (from runs) select * from a", "describe metrics", "show tables",
        "summarize metrics", "values (1)", "table runs", "select * from metrics;",
    ],
)  # fmt: skip
def test_questions_are_answered(store: Store, run: RunFolder, question: str) -> None:
    assert len(sql(store, question).rows) > 0


@pytest.mark.parametrize(
    ("order", "got"),
    [
        ("copy (select 1) to '{file}'", "COPY"),
        ("explain analyze copy (select 1) to '{file}'", "EXPLAIN"),
        ("attach '{folder}/new.db'", "ATTACH"),
        ("install httpfs", "LOAD"),
        ("insert into runs select * from runs", "INSERT"),
        ("drop table runs", "DROP"),
        ("set enable_external_access = true", "SET"),
        ("pragma version", "PRAGMA"),
        ("select 1; copy (select 1) to '{file}'", "2 statements"),
    ],
)
def test_orders_are_refused(store: Store, run: RunFolder, order: str, got: str) -> None:
    file = run.path / run.files("metrics/")[0]
    before = sorted(path for path in store.root.rglob("*"))
    line = f"the query is {got}.*expected one SELECT, .*runs are only read here"
    with pytest.raises(StoreError, match=line):
        sql(store, order.format(file=file, folder=store.root))
    assert sorted(path for path in store.root.rglob("*")) == before
    assert run.verify() == []


@pytest.mark.parametrize(
    "question",
    [
        "select * from read_text('{secret}')",
        "select * from read_csv('{secret}')",
        "select * from read_parquet('{secret}')",
        "select * from glob('{folder}/*')",
        "select * from '{secret}'",
        "select * from read_text('{manifest}')",
    ],
)
def test_other_files_are_not_to_be_had(
    store: Store, run: RunFolder, tmp_path: Path, question: str
) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("word\nswordfish\n")
    asked = question.format(secret=secret, folder=tmp_path, manifest=store.root / "manifest.json")
    with pytest.raises(StoreError, match="Permission Error|Catalog Error") as caught:
        sql(store, asked)
    assert "swordfish" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_empty_question_is_named(store: Store) -> None:
    for nothing in ("", "  ", "-- a word"):
        with pytest.raises(StoreError, match="the query is empty"):
            sql(store, nothing)


def harmed_metrics(folder: RunFolder) -> None:
    path = folder.path / folder.files("metrics/")[0]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def harmed_config(folder: RunFolder) -> None:
    (folder.path / "config.json").write_text("{}")


def other_columns(folder: RunFolder) -> None:
    path = folder.path / "other.parquet"
    duckdb.sql(f"copy (select 'x' as loss, 1 as step) to '{path}' (format parquet)")
    folder.commit({LOSSES: path.read_bytes()})


def no_parquet(folder: RunFolder) -> None:
    folder.commit({LOSSES: b"PAR1 it is not"})


def very_many_rows(folder: RunFolder) -> None:
    path = folder.path / "other.parquet"
    duckdb.sql(
        "copy (select 'train' as split, 1::int as step, 0::int as seed, 1::tinyint as hop, "
        f"0::float as loss from range(3000000)) to '{path}' (format parquet, compression zstd)"
    )
    folder.commit({LOSSES: path.read_bytes()})


@pytest.mark.parametrize(
    ("harm", "problem"),
    [
        (harmed_metrics, "its SHA-256 differs"),
        (harmed_config, "config.json is damaged"),
        (other_columns, "has the columns loss VARCHAR, step INTEGER"),
        (no_parquet, "cannot be read"),
        (very_many_rows, "has 3,000,000 rows in so few bytes"),
    ],
)
def test_a_run_that_cannot_be_read_is_told_and_hides_no_other(
    store: Store, run: RunFolder, tiny: Experiment, harm: object, problem: str
) -> None:
    other = with_losses(store, tiny.model_copy(update={"seeds": (9,)}))
    harm(other)  # type: ignore[operator]
    answer = sql(store, "select run, count(*) from metrics group by all")
    assert answer.rows == ((run.name, 8),)
    assert sql(store, "select name from runs").rows == ((run.name,),)
    assert len(answer.problems) == 1
    assert problem in answer.problems[0]


def test_columns_that_cannot_be_unpacked_hide_no_other_run(
    store: Store, run: RunFolder, tiny: Experiment
) -> None:
    """Where the file's footer is whole, and its hash was forged with it."""
    other = with_losses(store, tiny.model_copy(update={"seeds": (9,)}))
    data = bytearray((other.path / other.files("metrics/")[0]).read_bytes())
    data[4 : len(data) // 3] = bytes(len(data) // 3 - 4)
    other.commit({other.files("metrics/")[0]: bytes(data)})
    answer = sql(
        store, "select run, count(*), min(split), max(hop), sum(loss) from metrics group by all"
    )
    assert [row[:2] for row in answer.rows] == [(run.name, 8)]
    assert len(answer.problems) == 1
    assert f"the metrics of {other.name} cannot be read" in answer.problems[0]
    with pytest.raises(StoreError, match="Catalog Error"):
        sql(store, "select * from nothing")


class Meanwhile(RunFolder):
    """While its files are looked at, the parts of another run are merged, once."""

    def __init__(self, path: Path, other: RunFolder) -> None:
        super().__init__(path)
        self.other = other

    def checked(self, prefix: str) -> list[Path]:
        if parts := tuple(self.other.files("metrics/part-")):
            self.other.commit({LOSSES: merged(self.other)}, drop=parts)
        return super().checked(prefix)


class Slow(Store):
    """A store in which a run is trained on while it is asked."""

    def readable(self) -> tuple[list[RunFolder], list[str]]:
        runs, problems = super().readable()
        first, last = runs
        return [first, Meanwhile(last.path, RunFolder(first.path))], problems


def test_files_that_go_before_they_are_read_are_asked_for_anew(
    store: Store, run: RunFolder, tiny: Experiment
) -> None:
    with_losses(store, tiny.model_copy(update={"seeds": (9,)}))
    answer = sql(Slow(store.root), "select run, count(*) from metrics group by all order by run")
    assert [row[1] for row in answer.rows] == [8, 8]
    assert not answer.problems
    merged_now = [LOSSES in each.manifest.files for each in store.readable()[0]]
    assert merged_now == [True, False]


def test_a_store_under_an_odd_name(tmp_path: Path, tiny: Experiment) -> None:
    for name in ("o'brien", "a [b] *", "per%20cent", "ünï"):
        store = Store(tmp_path / name)
        with_losses(store, tiny)
        assert sql(store, "select count(*) from metrics").rows == ((8,),)


@pytest.mark.parametrize(("odd", "beside"), [("a*b", "aXb"), ("a[1]", "a1"), ("q?x", "qzx")])
def test_a_name_that_looks_like_a_pattern_stands_for_itself(
    tmp_path: Path, tiny: Experiment, odd: str, beside: str
) -> None:
    run = with_losses(Store(tmp_path / odd), tiny)
    with_losses(Store(tmp_path / beside), tiny)
    assert sql(Store(tmp_path / odd), "select count(*) from metrics").rows == ((8,),)
    assert len(losses(run, "train")[0]) == 4
    run.commit({LOSSES: merged(run)}, drop=tuple(run.files("metrics/part-")))
    assert len(losses(run, "train")[0]) == 4


def test_a_run_whose_name_is_not_utf_8_is_told_and_hides_no_other(
    store: Store, run: RunFolder
) -> None:
    odd = store.root / os.fsdecode(b"odd-\x80")
    shutil.copytree(run.path, odd)
    answer = sql(store, "select run, count(*) from metrics group by all")
    assert answer.rows == ((run.name, 8),)
    assert len(answer.problems) == 1
    assert r"odd-\udc80' has a name that is not UTF-8" in answer.problems[0]
    with pytest.raises(
        RunDamaged, match="is not UTF-8, so that no table of it can be read: rename"
    ):
        losses(RunFolder(odd), "train")


def test_a_run_goes_by_the_name_of_its_folder_whatever_that_is(
    store: Store, run: RunFolder
) -> None:
    shutil.copytree(run.path, store.root / "back\\slash's")
    found = sql(store, "select distinct run from metrics order by run").rows
    assert found == (("back\\slash's",), (run.name,))


def test_a_run_that_is_a_link_goes_by_the_name_of_the_link(store: Store, run: RunFolder) -> None:
    elsewhere = store.root.parent / "elsewhere"
    shutil.move(run.path, elsewhere)
    run.path.symlink_to(elsewhere)
    assert sql(store, "select distinct run from metrics").rows == ((run.name,),)
