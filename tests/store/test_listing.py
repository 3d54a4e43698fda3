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


@pytest.fixture
def run(store: Store) -> RunFolder:
    folder = store.create(Experiment())
    folder.commit({"metrics/part-00000000-00000007.parquet": b"1234567"}, step=7)
    os.utime(folder.path / "manifest.json", (WHEN.timestamp(), WHEN.timestamp()))
    return folder


def only(store: Store) -> Listed:
    (found,), _ = store.listed()
    return found


def test_a_stopped_run(store: Store, run: RunFolder) -> None:
    store.tag(run.name, "b", "a")
    found = only(store)
    steps = run.recipe.steps
    assert (found.state, found.step, found.steps) == ("stopped", 7, steps)
    assert found.told == f"stopped at step 7 of {steps:,}"
    assert (found.date, found.tags) == (WHEN, ("a", "b"))
    assert found.size == sum(path.stat().st_size for path in run.path.rglob("*") if path.is_file())
    assert found.to_dict() == {
        "name": run.name, "state": "stopped", "step": 7, "steps": steps,
        "date": "2026-03-04T05:06:07+00:00", "bytes": found.size, "tags": ["a", "b"], "problem": "",
    }  # fmt: skip


def test_its_size_is_what_removing_it_frees(store: Store, run: RunFolder, tmp_path: Path) -> None:
    before = only(store).size
    (run.path / "figures").mkdir()
    (run.path / "figures" / "a.svg").write_text("x" * 1_000)
    (tmp_path / "large").write_text("x" * 5_000)
    (run.path / "link").symlink_to(tmp_path / "large")
    assert before + 1_000 <= only(store).size < before + 5_000


def test_training_and_complete(store: Store, run: RunFolder) -> None:
    with run.locked():
        assert only(store).told == f"in training at step 7 of {run.recipe.steps:,}"
        run.commit({}, complete=True)
        assert only(store).told == "complete"  # who locks it keeps something beside, as a circuit
    assert only(store).state == "complete"


@pytest.mark.parametrize(
    ("harm", "problem"),
    [
        (lambda path: path.joinpath("config.json").unlink(), "config.json is missing"),
        (lambda path: path.joinpath("manifest.json").write_text("{"), "is not a manifest"),
        (
            lambda path: next(path.glob("metrics/*")).write_bytes(b"123"),
            "parquet is damaged (3 bytes, expected 7)",
        ),
        (lambda path: next(path.glob("metrics/*")).unlink(), "parquet is missing"),
    ],
)
def test_a_damaged_run_is_listed_as_such(
    store: Store, run: RunFolder, harm: object, problem: str
) -> None:
    other = store.create(Experiment(task=Retrieval(hops=1)))
    harm(run.path)  # type: ignore[operator]
    found, problems = store.listed()
    states = {each.name: each.told for each in found}
    assert states == {
        run.name: "damaged",
        other.name: f"stopped at step 0 of {other.recipe.steps:,}",
    }
    assert len(problems) == 1
    assert problem in problems[0]
    assert next(each.problem for each in found if each.name == run.name) == problems[0]


def test_the_list_says_of_a_damaged_file_what_its_run_says(store: Store, run: RunFolder) -> None:
    run.commit({"circuit.json": b"{}"})
    for name, remedy in (
        ("circuit.json", "restore it from a copy, or make it again"),
        ("config.json", f"restore it from a copy, or `hopscope rm {run.name}` and train again"),
    ):
        before = (run.path / name).read_bytes()
        (run.path / name).write_bytes(b"")
        assert store.listed()[1] == [
            f"{run.path / name} is damaged (0 bytes, expected {len(before)}): {remedy}"
        ]
        with pytest.raises(RunDamaged, match=f"{remedy}$"):
            run.read(name)
        (run.path / name).write_bytes(before)


def cyclic(path: Path) -> None:
    """As no hopscope writes it."""
    config = json.dumps(
        {"kind": "facts", "task": {"kind": "conditional", "facts": ["a->b", "b->a"]}}
    )
    entry = FileEntry.of(config.encode())
    manifest = Manifest(name=path.name, files={"config.json": entry})
    (path / "config.json").write_text(config)
    (path / "manifest.json").write_bytes(manifest.to_bytes())


def test_facts_that_are_none_are_damage_of_their_run_alone(store: Store, run: RunFolder) -> None:
    other = store.create(Experiment(task=Retrieval(hops=1)))
    cyclic(other.path)
    found, problems = store.listed()
    assert {each.name: each.state for each in found} == {run.name: "stopped", other.name: "damaged"}
    assert len(problems) == 1
    assert "describes no run" in problems[0]


def test_a_date_that_no_calendar_has_is_none(store: Store, run: RunFolder) -> None:
    class Far(Path().__class__):  # type: ignore[misc]
        """Not every file system can hold such a date, so that it is told here."""

        def lstat(self) -> object:
            return SimpleNamespace(st_mtime=1e12)

    assert committed(run.path) == WHEN
    assert committed(Far(run.path)) is None


def test_a_folder_without_a_manifest_is_a_problem_and_no_run(store: Store, run: RunFolder) -> None:
    (run.path / "manifest.json").unlink()
    found, problems = store.listed()
    assert found == []
    assert len(problems) == 1
    assert "has a config.json and no manifest.json" in problems[0]
