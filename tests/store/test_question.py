"""Answers as data frames, held against the rows that the same question gives."""

from pathlib import Path

import numpy as np
import pytest

from hopscope.configs import Experiment
from hopscope.errors import ConfigError, RunDamaged, RunWarning, StoreError
from hopscope.store import RunFolder, Store, sql
from hopscope.store import question as question_module
from hopscope.store.metrics import part, part_name, to_parquet
from hopscope.store.question import metrics_of

ALL = "select * from metrics order by all"


@pytest.fixture
def run(store: Store, tiny: Experiment) -> RunFolder:
    folder = store.create(tiny)
    steps = np.arange(1, 5, dtype=np.int32)
    values = np.linspace(0, 1, 8, dtype=np.float32).reshape(4, 1, 2)
    data = to_parquet([part("train", tiny, steps, values)])
    folder.commit({part_name(0, 4): data}, step=4)
    return folder


def test_rows_are_those_of_sql(store: Store, run: RunFolder) -> None:
    rows = store.sql(ALL).rows()
    assert rows == list(sql(store, ALL).rows)
    assert len(rows) == 8


def test_a_data_frame_has_the_same_values_and_duckdbs_types(store: Store, run: RunFolder) -> None:
    pytest.importorskip("pandas")
    frame = store.sql(ALL).df()
    assert list(frame.columns) == ["run", "split", "step", "seed", "hop", "loss"]
    assert [tuple(row) for row in frame.itertuples(index=False)] == store.sql(ALL).rows()
    assert [str(frame.dtypes[name]) for name in ("step", "hop", "loss")] == [
        "int32", "int8", "float32",
    ]  # fmt: skip


def test_an_arrow_table_has_them_too(store: Store, run: RunFolder) -> None:
    pytest.importorskip("pyarrow")
    table = store.sql(ALL).arrow()
    assert [tuple(row.values()) for row in table.to_pylist()] == store.sql(ALL).rows()
    assert str(table.schema.field("step").type) == "int32"


def test_runs_are_told_with_state_date_and_tags(store: Store, run: RunFolder) -> None:
    store.tag(run.name, "b", "a")
    question = store.sql("select kind, state, tags, date from runs")
    ((kind, state, tags, date),) = question.rows()
    assert (kind, state, tags) == ("facts", "stopped", ["a", "b"])
    (listed,), _ = store.listed()
    assert listed.date is not None
    assert date == listed.date.replace(tzinfo=None)


@pytest.mark.parametrize("form", ["rows", "df", "arrow"])
@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("drop table runs", "the query is DROP"),
        ("select * from read_text('{secret}')", "Permission Error"),
        ("from secret", "does not exist"),
        ("selec", "Parser Error"),
        ("select nothing from runs", "Binder Error"),
    ],
)
def test_every_form_is_as_protected(
    store: Store, run: RunFolder, tmp_path: Path, form: str, query: str, why: str
) -> None:
    if form != "rows":
        pytest.importorskip({"df": "pandas", "arrow": "pyarrow"}[form])
    secret = tmp_path / "secret.csv"
    secret.write_text("word\nswordfish\n")
    asked = store.sql(query.format(secret=tmp_path / "secret.csv"))
    with pytest.raises(StoreError, match=why) as caught:
        getattr(asked, form)()
    assert "swordfish" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_library_that_is_missing_is_named(
    store: Store, run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(question_module, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="needs pandas: `pip install pandas`; rows"):
        store.sql(ALL).df()
    with pytest.raises(ConfigError, match="needs pyarrow: `pip install pyarrow`; rows"):
        store.sql(ALL).arrow()
    assert len(store.sql(ALL).rows()) == 8


def test_runs_that_are_left_out_are_told(store: Store, run: RunFolder) -> None:
    (run.path / run.files("metrics/")[0]).write_bytes(b"")
    with pytest.warns(RunWarning, match="left out: .* is damaged"):
        assert store.sql(ALL).rows() == []


def test_the_losses_of_one_run(store: Store, run: RunFolder) -> None:
    rows = metrics_of(run).rows()
    assert rows == [row[1:] for row in store.sql(ALL).rows()]
    (run.path / run.files("metrics/")[0]).write_bytes(b"")
    with pytest.raises(RunDamaged, match="is damaged"):
        metrics_of(run).rows()
    with pytest.raises(RunDamaged, match="is damaged"):
        metrics_of(run).answer()


def test_an_answer_names_its_columns(store: Store, run: RunFolder) -> None:
    answer = store.sql(ALL).answer()
    assert answer.columns == ("run", "split", "step", "seed", "hop", "loss")
    assert list(answer.rows) == store.sql(ALL).rows()
    (run.path / run.files("metrics/")[0]).write_bytes(b"")
    (problem,) = store.sql(ALL).answer().problems
    assert "is damaged" in problem
