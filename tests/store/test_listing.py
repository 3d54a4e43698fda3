"""The list of a store's runs: the state of each, and what is wrong with one hides no other."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from hopscope.configs import Experiment, Retrieval
from hopscope.errors import RunDamaged
from hopscope.store import Listed, RunFolder, Store
from hopscope.store.listing import committed
from hopscope.store.manifest import FileEntry, Manifest

WHEN = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
METRICS = "metrics/part-00000000-00000007.parquet"


@pytest.fixture
def run(store: Store) -> RunFolder:
    folder = store.create(Experiment())
    folder.commit({METRICS: b"1234567"}, step=7)
    os.utime(folder.path / "manifest.json", (WHEN.timestamp(), WHEN.timestamp()))
    return folder


def only(store: Store) -> Listed:
    (found,), _ = store.listed()
    return found


def test_a_stopped_run_one_in_training_and_a_complete_one(store: Store, run: RunFolder) -> None:
    store.tag(run.name, "b", "a")
    found, steps = only(store), run.recipe.steps
    assert found.told == f"stopped at step 7 of {steps:,}"
    assert found.size == sum(path.stat().st_size for path in run.path.rglob("*") if path.is_file())
    assert found.to_dict() == {
        "name": run.name, "state": "stopped", "step": 7, "steps": steps,
        "date": "2026-03-04T05:06:07+00:00", "bytes": found.size, "tags": ["a", "b"], "problem": "",
    }  # fmt: skip
    with run.locked():
        assert only(store).told == f"in training at step 7 of {steps:,}"
        run.commit({}, complete=True)
        assert only(store).told == "complete"  # who locks it keeps something beside, as a circuit
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
    train = f"restore it from a copy, or `hopscope rm {run.name}` and train again"
    whole = len((run.path / "config.json").read_bytes())
    for name, content, problem in (
        ("config.json", None, "config.json is missing"),
        ("config.json", b"", f"config.json is damaged (0 bytes, expected {whole}): {train}"),
        ("manifest.json", b"{", "is not a manifest"),
        (METRICS, b"123", f"parquet is damaged (3 bytes, expected 7): {train}"),
        (METRICS, None, "parquet is missing"),
        ("circuit.json", b"", "(0 bytes, expected 2): restore it from a copy, or make it again"),
    ):
        before = (run.path / name).read_bytes()
        (run.path / name).unlink() if content is None else (run.path / name).write_bytes(content)
        found, (line,) = store.listed()
        told = {each.name: (each.told, each.problem) for each in found}
        assert told == {run.name: ("damaged", line), other.name: (good, "")}, problem
        assert problem in line
        with pytest.raises(RunDamaged) as caught:  # as the run itself says
            RunFolder(run.path).read(name)
        if name != "manifest.json":
            assert str(caught.value) == line
        (run.path / name).write_bytes(before)
    (run.path / "manifest.json").unlink()
    found, (line,) = store.listed()
    assert [each.name for each in found] == [other.name]
    assert "has a config.json and no manifest.json" in line


def test_facts_that_are_none_are_damage_of_their_run_alone(store: Store, run: RunFolder) -> None:
    """As no hopscope writes them."""
    other = store.create(Experiment(task=Retrieval(hops=1)))
    task = {"kind": "conditional", "facts": ["a->b", "b->a"]}
    config = json.dumps({"kind": "facts", "task": task})
    entry = FileEntry.of(config.encode())
    (other.path / "config.json").write_text(config)
    manifest = Manifest(name=other.name, files={"config.json": entry})
    (other.path / "manifest.json").write_bytes(manifest.to_bytes())
    found, (line,) = store.listed()
    assert {each.name: each.state for each in found} == {run.name: "stopped", other.name: "damaged"}
    assert "describes no run" in line


def test_a_date_that_no_calendar_has_is_none(run: RunFolder) -> None:
    class Far(Path().__class__):  # type: ignore[misc]
        """Not every file system can hold such a date, so that it is told here."""

        def lstat(self) -> object:
            return SimpleNamespace(st_mtime=1e12)

    assert committed(run.path) == WHEN
    assert committed(Far(run.path)) is None
