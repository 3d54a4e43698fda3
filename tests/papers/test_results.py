"""Rows on disk: they come back to the letter, garbage is refused in a line that says what to do,
and a run is kept once, whichever process measures it.
"""

from pathlib import Path
from typing import Any

import pytest
from pydantic import StrictFloat, StrictInt

from hopscope import __version__
from hopscope.configs import Experiment
from hopscope.errors import HopscopeError, ResultsError
from hopscope.papers import results as results_module
from hopscope.papers.experiment import PaperExperiment
from hopscope.papers.results import Results, machine, that_came_with_it
from hopscope.papers.row import Numbers, Record, ResultRow, read_row
from hopscope.papers.running import Keeper
from hopscope.store import RunFolder, Store
from hopscope.store.lock import locked

NAME = "musat/x"
RECIPES = tuple(Experiment(seeds=(seed,)) for seed in range(4))
RUNS = [recipe.run_name() for recipe in RECIPES]


class Inner(Record):
    values: Numbers


class Loss(ResultRow):
    loss: StrictFloat
    step: StrictInt | None = None
    inner: Inner | None = None


class Count(ResultRow):
    count: StrictInt
    of: StrictInt


KINDS = (Loss, Count)
EXPERIMENT = PaperExperiment(
    NAME, "a figure", KINDS, recipes={"full": lambda: RECIPES, "reduced": lambda: RECIPES[:2]},
    reduced="two of four",
)  # fmt: skip


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path / "results", {NAME: EXPERIMENT})


def one_line(error: HopscopeError) -> str:
    """Its text, which a terminal can show as one line."""
    assert str(error).isprintable()
    return str(error)


def test_what_is_wrong_with_a_row_is_one_line() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"count": 1}, "'Count.of': "),  # of two that lack one field, that which fits
        ({"count": 1, "of": 2.5}, "'Count.of': "),
        ({"loss": True}, "'Loss.loss': "),
        ({"loss": "1"}, "'Loss.loss': "),
        ({"loss": 1.0, "lost": 1}, "'Loss.lost': "),
        ({"loss": 1.0, "\x1b[2J": 1}, "'Loss.\\x1b[2J': "),
        ({"loss": 1.0, "inner": {"values": ["x"]}}, "'Inner.values.0': "),
    ]
    for values, text in wrong:
        with pytest.raises(ResultsError) as caught:
            read_row(KINDS, values)
        assert one_line(caught.value).startswith(text), values


def test_runs_are_kept_one_by_one_and_come_back_as_they_were(results: Results) -> None:
    assert (results.any(), results.measured(NAME), results.shown(NAME)) == (False, {}, None)
    strange = Loss(loss=float("inf"), inner=Inner(values=(0.5,)))
    results.keep(NAME, RUNS[2], [strange], "a line\u2028of two")
    results.keep(NAME, RUNS[0], [Loss(loss=0.5, step=3), Count(count=1, of=2)], machine(2, "G"))
    before = results.path(NAME).read_bytes()
    results.keep(NAME, RUNS[1], [], "here")  # nothing to say of it, and measured all the same
    assert results.path(NAME).read_bytes().startswith(before)
    known = results.measured(NAME)
    assert [*known] == [RUNS[2], RUNS[0], RUNS[1]]
    assert known[RUNS[2]].rows == (strange.model_copy(update={"run": RUNS[2]}),)
    assert known[RUNS[0]].hopscope == __version__
    assert "2 threads" in known[RUNS[0]].machine
    reduced, full = results.table(NAME, "reduced"), results.table(NAME, "full")
    assert (reduced.names, reduced.missing, reduced.remark) == (RUNS[:2], (), "two of four")
    assert (full.names, full.missing, full.remark) == (RUNS[:3], (RUNS[3],), "")
    assert full.of(Loss) == [full.rows[0], full.rows[2]]  # in the order of the recipes
    assert results.shown(NAME) == reduced  # it is complete
    results.keep(NAME, RUNS[3], [], "here")
    assert results.shown(NAME).protocol == "full"
    assert results.seconds(NAME) == {}


GARBAGE = {
    "no JSON": b"\x1b[31mred\n",
    "no text": b"\xff\xfe\x00",
    "cut off": b'{"run": "a", "hopsc',
    "too deep": b"[" * 100_000,
    "no object": b"[1, 2]\n",
    "a number": b"3\n",
    "a row of no run": b'{"loss": 0.5}\n',
    "a row before its run": b'{"run": "a", "loss": 0.5}\n',
    "a row that comes twice": b'{"run": "a", "hopscope": "", "machine": ""}\n'
    + 2 * b'{"run": "a", "loss": 0.5, "inner": {"values": []}}\n',
    "a row of another kind": b'{"run": "a", "hopscope": "", "machine": ""}\n{"run": "a", "m": 1}\n',
}


def test_garbage_is_one_line_that_says_what_to_do(results: Results) -> None:
    path = results.path(NAME)
    path.parent.mkdir(parents=True)
    for name, content in GARBAGE.items():
        path.write_bytes(content)
        with pytest.raises(ResultsError) as caught:
            results.measured(NAME)
        text = one_line(caught.value)
        assert str(path) in text, name
        assert f"`hopscope papers run {NAME}`" in text, name
        assert results.shown(NAME) is None
        assert results.seconds(NAME) == {}


def test_a_run_is_kept_once_whichever_process_measures_it(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, measured = Store(tmp_path / "runs"), list[str]()

    def measure(folder: RunFolder) -> list[ResultRow]:
        measured.append(folder.name)
        return [Loss(loss=1.0)]

    experiment = PaperExperiment(NAME, "x", KINDS, measure, EXPERIMENT.recipes)
    one, other = (Keeper(experiment, store, results, where) for where in ("here", "there"))
    folders = [store.create(recipe) for recipe in RECIPES]
    one.measure(folders[0])
    for folder in folders[:2]:
        other.measure(folder)
        one.measure(folder)
    assert measured == RUNS[:2]
    assert [run.machine for run in results.measured(NAME).values()] == ["here", "there"]
    results.keep(NAME, RUNS[0], [Loss(loss=2.0)], "late")
    assert results.measured(NAME)[RUNS[0]].machine == "here"
    monkeypatch.setattr(results_module, "PATIENCE", 0.0)
    with locked(results.root, "busy", 0.0):
        one.measure(folders[2])
    assert str(one.troubles[RUNS[2]]) == f"another process writes to {results.root}: wait for it"


def test_an_installed_package_has_its_results_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = tmp_path / "hopscope" / "papers" / "results.py"
    monkeypatch.setattr(results_module, "__file__", str(inside))
    assert that_came_with_it() is None
    (tmp_path / "results").mkdir()
    assert that_came_with_it() is None  # another package's
    (tmp_path / "pyproject.toml").write_text("")
    assert that_came_with_it() == tmp_path / "results"
    (tmp_path / "hopscope" / "results").mkdir(parents=True)
    assert that_came_with_it() == tmp_path / "hopscope" / "results"
