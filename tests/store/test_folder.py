import json
import multiprocessing
from pathlib import Path

import pytest

from hopscope.configs import Experiment
from hopscope.errors import RunBusy, RunDamaged, RunMismatch, RunTooNew
from hopscope.store import RunFolder, Store
from hopscope.store.manifest import MANIFEST


@pytest.fixture
def run(store: Store, tiny: Experiment) -> RunFolder:
    folder = store.create(tiny)
    folder.commit(
        {"checkpoints/a.safetensors": b"weights", "metrics/b.parquet": b"numbers"}, step=3
    )
    return folder


def test_committed_files_are_read_back_by_another_process(run: RunFolder) -> None:
    again = RunFolder(run.path)
    assert again.read("checkpoints/a.safetensors") == b"weights"
    assert again.manifest.step == 3
    assert again.files("metrics/") == ["metrics/b.parquet"]
    assert again.recipe == run.recipe
    assert again.verify() == []


def test_dropped_files_go_after_the_manifest_has_forgotten_them(run: RunFolder) -> None:
    run.commit({"checkpoints/c.safetensors": b"later"}, drop=("checkpoints/a.safetensors",))
    assert not (run.path / "checkpoints/a.safetensors").exists()
    assert RunFolder(run.path).files("checkpoints/") == ["checkpoints/c.safetensors"]


@pytest.mark.parametrize(
    ("harm", "text"),
    [
        (lambda p: p.write_bytes(b"weight"), "6 bytes, expected 7"),
        (lambda p: p.write_bytes(b"wEights"), "its SHA-256 differs"),
        (lambda p: p.unlink(), "is missing"),
    ],
)
def test_damage_is_found(run: RunFolder, harm: object, text: str) -> None:
    harm(run.path / "checkpoints/a.safetensors")  # type: ignore[operator]
    with pytest.raises(RunDamaged, match=text):
        run.read("checkpoints/a.safetensors")
    assert len(run.verify()) == 1


def test_leftovers_are_named_and_swept(run: RunFolder) -> None:
    (run.path / "checkpoints" / ".b.safetensors.77.tmp").write_bytes(b"half")
    assert "in no manifest" in run.verify()[0]
    run.sweep_leftovers()
    assert run.verify() == []


def test_a_newer_format_is_refused(run: RunFolder) -> None:
    manifest = json.loads((run.path / MANIFEST).read_text())
    del manifest["check"]
    (run.path / MANIFEST).write_text(json.dumps(manifest | {"format": 3, "news": 1}))
    with pytest.raises(RunTooNew, match="format 3; this hopscope reads up to 2: upgrade"):
        RunFolder(run.path)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": "x"}', '{"name": 3}'])
def test_what_is_no_manifest_is_refused(run: RunFolder, content: str) -> None:
    (run.path / MANIFEST).write_text(content)
    with pytest.raises(RunDamaged, match="is not a manifest"):
        RunFolder(run.path)


def test_a_config_of_another_run_is_refused(run: RunFolder, store: Store) -> None:
    other = store.create(Experiment())
    for name in ("config.json", MANIFEST):
        (run.path / name).write_bytes((other.path / name).read_bytes())
    manifest = other.manifest.model_copy(update={"name": run.name})
    (run.path / MANIFEST).write_bytes(manifest.to_bytes())
    with pytest.raises(RunMismatch, match="restore the file that was changed"):
        RunFolder(run.path)


def hold(path: Path, ready: object, done: object) -> None:
    with RunFolder(path).locked():
        ready.set()  # type: ignore[attr-defined]
        done.wait(30)  # type: ignore[attr-defined]


def test_only_one_process_trains_a_run(run: RunFolder) -> None:
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    other = context.Process(target=hold, args=(run.path, ready, done))
    other.start()
    try:
        assert ready.wait(30)
        with pytest.raises(RunBusy, match="trained by another process"), run.locked():
            pass
        other.kill()  # a lock ends with its process
        other.join()
        with run.locked():
            pass
    finally:
        other.kill()
        other.join()


def test_removal_takes_the_whole_folder(run: RunFolder, store: Store) -> None:
    run.remove()
    assert store.names() == []
    assert not run.path.exists()
