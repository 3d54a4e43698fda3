"""The list of a store's runs: the state of each, and what is wrong with one hides no other."""

import os
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from stopping import with_losses

from hopscope.configs import Experiment, Retrieval
from hopscope.errors import RunDamaged
from hopscope.store import Listed, RunFolder, Store, summary
from hopscope.store.summary import CACHE, summaries
from hopscope.store.tables import METRICS

WHEN = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
PART = METRICS.part_name(0, 7)


@pytest.fixture
def run(store: Store) -> RunFolder:
    folder = store.create(Experiment())
    folder.commit({PART: b"1234567"}, step=7)
    os.utime(folder.path / "manifest.json", (WHEN.timestamp(), WHEN.timestamp()))
    return folder


def only(store: Store) -> Listed:
    (found,), _ = store.listed()
    return found


def test_a_stopped_run_one_in_training_and_a_complete_one(store: Store, run: RunFolder) -> None:
    store.tag(run.name, "b", "a")
    found, steps = only(store), run.recipe.steps
    assert found.status == f"stopped at step 7 of {steps:,}"
    assert found.size == sum(path.stat().st_size for path in run.path.rglob("*") if path.is_file())
    assert found.to_dict() == {
        "name": run.name, "state": "stopped", "step": 7, "steps": steps,
        "date": "2026-03-04T05:06:07+00:00", "bytes": found.size, "tags": ["a", "b"], "problem": "",
    }  # fmt: skip
    with run.locked():
        assert only(store).status == f"in training at step 7 of {steps:,}"
        run.commit({}, complete=True)
        assert only(store).status == "complete"  # a circuit is written beside it
    assert only(store).state == "complete"


def test_its_size_is_what_removing_it_frees(store: Store, run: RunFolder, tmp_path: Path) -> None:
    before = only(store).size
    (run.path / "figures").mkdir()
    (run.path / "figures" / "a.svg").write_text("x" * 1_000)
    (tmp_path / "large").write_text("x" * 5_000)
    (run.path / "link").symlink_to(tmp_path / "large")
    assert before + 1_000 <= only(store).size < before + 5_000


def test_a_damaged_run_is_listed_as_such_and_hides_no_other(store: Store, run: RunFolder) -> None:
    run.commit({"circuit.json": b"{}"})
    other = store.create(Experiment(task=Retrieval(hops=1)))
    good = f"stopped at step 0 of {other.recipe.steps:,}"
    train = f"restore it from a copy, or `{run.command('rm')}` and train again"
    for name, content, problem in (
        ("config.json", None, "config.json is missing"),
        ("manifest.json", b"{", "is not a manifest"),
        (PART, b"123", f"parquet is damaged (3 bytes, expected 7): {train}"),
        (PART, None, "parquet is missing"),
        ("circuit.json", b"", "(0 bytes, expected 2): restore it from a copy, or make it again"),
    ):
        before = (run.path / name).read_bytes()
        (run.path / name).unlink() if content is None else (run.path / name).write_bytes(content)
        found, (line,) = store.listed()
        states = {each.name: (each.status, each.problem) for each in found}
        assert states == {run.name: ("damaged", line), other.name: (good, "")}, problem
        assert problem in line
        with pytest.raises(RunDamaged):
            RunFolder(run.path).read(name)
        (run.path / name).write_bytes(before)
    (run.path / "manifest.json").unlink()
    found, (line,) = store.listed()
    assert [each.name for each in found] == [other.name]
    assert "has a config.json and no manifest.json" in line


def trained(store: Store, recipe: Experiment, steps: int, loss: float) -> RunFolder:
    return with_losses(store, recipe, np.full((steps, 1, 2), [loss, 2 * loss], np.float32))


def test_summaries_are_read_once_and_made_again_when_losses_change(
    store: Store, tiny: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trained(store, tiny, 8, 0.25)
    damaged = trained(store, tiny.replace(seeds=(5,)), 8, 0.5)
    damaged.commit({METRICS.part_name(0, 8): b"PAR1 and nothing else"})
    found, (problem,) = summaries(store.root, [run, damaged])
    expected = {run.name: ([0.25, 0.5], [0.375] * 8)}
    assert found == expected
    assert damaged.name in problem
    cache = store.root / CACHE
    for content in (b"", b"[]", b'{"x": 1}', cache.read_bytes()):
        cache.write_bytes(content)
        assert summaries(store.root, [run]) == (expected, [])
    with monkeypatch.context() as patch:  # nothing is asked any more
        patch.setattr(summary, "SqlQuery", None)
        assert summaries(store.root, [run]) == (expected, [])
    again = trained(store, tiny, 9, 0.125)
    assert summaries(store.root, [again])[0][run.name][0] != [0.25, 0.5]
    cache.unlink()
    cache.mkdir()  # it cannot be written
    assert summaries(store.root, [again])[0][run.name][0] != [0.25, 0.5]
