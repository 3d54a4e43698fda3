"""SQL over many runs: they are only read, and one that cannot be read hides no other."""

import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from stopping import with_losses
from waiting import ctrl_c

from hopscope.configs import Experiment
from hopscope.errors import ConfigError, RunDamaged, RunWarning, StoreError
from hopscope.store import RunFolder, Store
from hopscope.store.metrics import losses
from hopscope.store.query import SqlQuery, metrics_of
from hopscope.store.tables import METRICS, connection, merged_tables

ALL = "select * from metrics order by all"
FOREVER = "select sum(a.i * b.i) from range(10000000) a(i), range(10000000) b(i)"
COUNTS = "select run, count(*) from metrics group by all order by run"
QUESTIONS = (
    "from metrics", "with a as (from runs) select * from a", "describe metrics", "show tables",
    "summarize METRICS", "values (1)", "table runs", "select * from metrics;",
)  # fmt: skip
REFUSED = (
    ("copy (select 1) to '{file}'", "the query is COPY"),
    ("explain analyze copy (select 1) to '{file}'", "the query is EXPLAIN"),
    ("attach '{folder}/new.db'", "the query is ATTACH"),
    ("install httpfs", "the query is LOAD"),
    ("insert into runs select * from runs", "the query is INSERT"),
    ("set enable_external_access = true", "the query is SET"),
    ("select 1; copy (select 1) to '{file}'", "the query is 2 statements"),
    ("-- a word", "the query is empty"),
    ("pivot metrics on split using avg(loss)", r"PIVOT needs its columns here, as `on split in \("),
    ("select * from read_text('{secret}')", "Permission Error"),
    ("select * from read_csv('{secret}')", "Permission Error"),
    ("select * from read_parquet('{secret}')", "Permission Error"),
    ("select * from glob('{folder}/*')", "Permission Error"),
    ("select * from '{secret}'", "Permission Error|Catalog Error"),
    ("select * from read_text('{folder}/manifest.json')", "Permission Error"),
    ("selec", "Parser Error"),
    ("select layer from runs", "not found in FROM clause; candidate bindings: .layers."),
    ("select * from metric", 'does not exist; did you mean "metrics"'),
    ("select * from losses", r"Catalog Error.*\(tables: runs, metrics, parameters\)"),
)


def few_losses(store: Store, recipe: Experiment) -> RunFolder:
    """Of four steps."""
    values = np.linspace(0, 1, 8 * len(recipe.seeds), dtype=np.float32)
    return with_losses(store, recipe, values.reshape(4, -1, 2))


@pytest.fixture
def run(store: Store, tiny: Experiment) -> RunFolder:
    return few_losses(store, tiny)


@pytest.fixture
def other(store: Store, tiny: Experiment) -> RunFolder:
    """A second run, of two seeds."""
    return few_losses(store, tiny.replace(seeds=(9, 8)))


def test_metrics_join_their_runs(store: Store, run: RunFolder, other: RunFolder) -> None:
    assert Store(store.root / "none").sql(ALL).rows() == []
    for query in QUESTIONS:
        assert len(store.sql(query).rows()) > 0, query
    joined = "from runs join metrics on run = name where hop = 2 group by all"
    assert len(store.sql(f"select seeds, layers, metrics.step {joined}").rows()) == 8
    store.tag(run.name, "b", "a")
    columns = "kind, state, tags, date, config ->> '$.task.kind'"
    asked = f"select {columns} from runs where name = '{run.name}'"
    ((kind, state, tags, date, task),) = store.sql(asked).rows()
    assert (kind, state, tags, task) == ("facts", "stopped", ["a", "b"], "retrieval")
    dates = {each.name: each.date for each in store.listed()[0]}
    assert date == dates[run.name].replace(tzinfo=None)


def test_every_form_of_an_answer_holds_the_same(
    store: Store, run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    question = store.sql(ALL)
    rows = question.rows()
    assert len(rows) == 8
    assert list(question.answer().rows) == rows
    frame, table = question.df(), question.arrow()
    assert [tuple(row) for row in frame.itertuples(index=False)] == rows
    assert [tuple(row.values()) for row in table.to_pylist()] == rows
    names = ("run", "split", "step", "seed", "hop", "loss")
    assert tuple(frame.columns) == tuple(table.column_names) == question.answer().columns == names
    assert [str(frame.dtypes[name]) for name in names[2:]] == ["int32", "int32", "int8", "float32"]
    assert metrics_of(run).rows() == [row[1:] for row in rows]
    monkeypatch.setattr("hopscope.store.query.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="needs pandas: `pip install pandas`; rows"):
        question.df()


def test_a_time_with_a_zone_is_cast_or_needs_pytz(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pytz", None)
    with pytest.raises(StoreError, match=r"needs pytz: cast it \(`now\(\)::timestamp`\), or inst"):
        store.sql("select now()").rows()
    assert len(store.sql("select now()::timestamp").rows()) == 1


def test_now_is_in_the_zone_of_the_dates(
    store: Store, run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    ages = "select date_diff('hour', date, now()::timestamp), current_setting('TimeZone') from runs"
    assert store.sql(ages).rows() == [(0, "UTC")]


def test_writing_and_other_files_are_refused(store: Store, run: RunFolder, tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("word\nswordfish\n")
    names = {"file": run.path / run.files("metrics/")[0], "folder": store.root}
    before = sorted(tmp_path.rglob("*"))
    for query, why in REFUSED:
        question = store.sql(query.format(**names, secret=tmp_path / "secret.csv"))
        for ask in (question.rows, question.df):
            with pytest.raises(StoreError, match=why) as caught:
                ask()
            assert "swordfish" not in str(caught.value), query
            assert "\n" not in str(caught.value), query
    assert sorted(tmp_path.rglob("*")) == before
    assert run.verify() == []


def holding(query: str) -> Callable[[RunFolder], None]:
    def harm(folder: RunFolder) -> None:
        path = folder.path / "other.parquet"
        duckdb.sql(f"copy ({query}) to '{path}' (format parquet, compression zstd)")
        folder.commit({METRICS.file: path.read_bytes()})

    return harm


def zeroed(folder: RunFolder) -> None:
    """The file's footer is whole, and its hash was forged with it."""
    (name,) = folder.files("metrics/")
    data = bytearray((folder.path / name).read_bytes())
    data[4 : len(data) // 3] = bytes(len(data) // 3 - 4)
    folder.commit({name: bytes(data)})


@pytest.mark.parametrize(
    ("harm", "problem"),
    [
        (lambda run: (run.path / "config.json").write_text("{}"), "config.json is damaged"),
        (holding("select 'x' as loss, 1 as step"), "cannot be read"),
        (lambda run: run.commit({METRICS.file: b"PAR1 it is not"}), "cannot be read"),
        (zeroed, "cannot be read"),
        (lambda run: (run.path / run.files("metrics/")[0]).unlink(), "is missing"),
    ],
)
def test_a_run_that_cannot_be_read_is_reported_and_hides_no_other(
    store: Store, run: RunFolder, other: RunFolder, harm: Any, problem: str
) -> None:
    harm(other)
    asked = "select run, count(*), min(split), max(hop), sum(loss) from metrics group by all"
    answer = store.sql(asked).answer()
    assert [row[:2] for row in answer.rows] == [(run.name, 8)]
    (line,) = answer.problems
    assert problem in line
    with pytest.warns(RunWarning, match="left out: "):
        assert store.sql(asked).rows() == list(answer.rows)
    with pytest.raises(RunDamaged):
        SqlQuery("from metrics", lambda: ([], [line]), strict=True).rows()


def test_files_that_are_removed_before_they_are_read_are_looked_for_again(
    store: Store, run: RunFolder, other: RunFolder
) -> None:
    calls = []

    def readable() -> tuple[list[RunFolder], list[str]]:
        """The parts of a run are merged after its files were looked for, the first time."""
        found = store.readable()
        calls.append(found)
        if len(calls) == 1:
            own = found[0][0].paths

            def paths(prefix: str, verify: bool = False) -> list[Path]:
                before = own(prefix, verify)
                late = RunFolder(run.path)
                late.commit(*merged_tables(late))
                return before

            found[0][0].paths = paths  # type: ignore[method-assign]
        return found

    answer = SqlQuery(COUNTS, readable).answer()
    assert sorted(answer.rows) == sorted([(run.name, 8), (other.name, 16)])
    assert (len(calls), answer.problems) == (2, ())


def test_names_stand_for_themselves(tmp_path: Path, tiny: Experiment) -> None:
    for odd, beside in (
        ("a*b", "aXb"), ("a[1]", "a1"), ("q?x", "qzx"), ("o'brien", "x"), ("ü", "u"),
    ):  # fmt: skip
        run = few_losses(Store(tmp_path / odd), tiny)
        few_losses(Store(tmp_path / beside), tiny)
        assert Store(tmp_path / odd).sql(COUNTS).rows() == [(run.name, 8)], odd
        run.commit(*merged_tables(run))
        assert len(losses(run, "train")[0]) == 4, odd


def test_a_run_has_the_name_of_its_folder_or_link(store: Store, run: RunFolder) -> None:
    shutil.copytree(run.path, store.root / "back\\slash's")
    elsewhere = shutil.move(run.path, store.root.parent / "elsewhere")
    run.path.symlink_to(elsewhere)
    shutil.copytree(run.path, store.root / os.fsdecode(b"odd-\x80"))
    shutil.copytree(run.path, store.root / "back\\slash*")
    answer = store.sql(COUNTS).answer()
    assert answer.rows == (("back\\slash's", 8), (run.name, 8))
    one, other = answer.problems
    assert "has a name that is not UTF-8" in one + other
    assert "has a backslash, and also *, ? or [: rename the folder" in one + other


def test_ctrl_c_ends_a_query_at_once() -> None:
    begun = time.monotonic()

    def later() -> bool:
        return time.monotonic() > begun + 0.5  # nothing tells when a query is under way

    with pytest.raises(KeyboardInterrupt), ctrl_c(later), connection() as duck:
        duck.execute(FOREVER)
    assert time.monotonic() - begun < 60  # it would take years
