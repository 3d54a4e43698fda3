"""A kind of run that nobody but an example knows of: sums of drawn numbers."""

import numpy as np
import pytest
import torch
from stopping import Stops, content
from sums import KIND, Summing, Sums

from hopscope.configs.kinds import KINDS
from hopscope.errors import RunDamaged, RunWarning, TrainingError
from hopscope.runs import Stepper, opened, train
from hopscope.store import RunFolder, Store
from hopscope.store.checkpoints import checkpoint_name
from hopscope.store.tables import RunTable


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one entry that a kind needs."""
    monkeypatch.setitem(KINDS, "sums", KIND)


def test_it_is_carried_out_kept_and_opened(store: Store) -> None:
    run = train(Sums(), store)
    assert isinstance(Summing(Sums(), run.folder), Stepper)
    assert run.folder.manifest.complete
    assert run.folder.verify() == []
    assert run.checkpoints == [0, 10, 20, 30, 40]
    steps, losses = opened(store.find("sums")).losses()
    assert steps.tolist() == list(range(41))
    watcher = Stops(1)
    assert content(train(Sums(), store, watcher=watcher).folder) == content(run.folder)
    assert not watcher.stopped  # it was complete, and nothing was computed
    expected = sum(np.random.default_rng([0, step]).random() for step in range(1, 41))
    assert losses[-1, 0, 0] == pytest.approx(expected)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What becomes of the run if nobody interferes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(KINDS, "sums", KIND)
        return content(train(Sums(), tmp_path_factory.mktemp("whole")).folder)


@pytest.mark.parametrize("step", [1, 10, 25, 39])
def test_stopped_anywhere_it_ends_with_the_same_bytes(
    store: Store, step: int, whole: dict[str, bytes]
) -> None:
    with pytest.raises(KeyboardInterrupt, match=f"stopped by SIGTERM at step {step}"):
        train(Sums(), store, watcher=Stops(step))
    assert store.find("sums").manifest.step == step
    assert content(train(Sums(), store).folder) == whole


@pytest.mark.parametrize(
    ("ends", "error", "line"),
    [
        (torch.OutOfMemoryError("CUDA out of memory.\nmore"), TrainingError,
         r"at step 20 or after it \(CUDA out of memory"),
        (RuntimeError("[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't "
                      "allocate memory: you tried to allocate 8 bytes.\nmore"), TrainingError,
         r"at step 20 or after it \(can't allocate memory: you tried to allocate 8 bytes\.\)"),
        (RuntimeError("of another kind"), RuntimeError, "^of another kind$"),
        (MemoryError(), TrainingError, r"at step 20 or after it \(MemoryError"),
        (KeyboardInterrupt(), KeyboardInterrupt, "^$"),  # as a kill: nothing more is written
    ],
)  # fmt: skip
def test_without_memory_or_killed_it_ends_with_the_same_bytes(
    store: Store, monkeypatch: pytest.MonkeyPatch, whole: dict[str, bytes],
    ends: BaseException, error: type[BaseException], line: str,
) -> None:  # fmt: skip
    advance = Summing.advance

    def ending(self: Summing) -> np.ndarray | None:
        if self.step == 27:
            raise ends
        return advance(self)

    with monkeypatch.context() as patch:
        patch.setattr(Summing, "advance", ending)
        with pytest.raises(error, match=line) as told:
            train(Sums(), store)
    assert "\n" not in str(told.value)
    assert store.find("sums").manifest.step == 20
    assert content(train(Sums(), store).folder) == whole


def test_a_kill_between_the_last_checkpoint_and_the_end_is_made_good(
    store: Store, monkeypatch: pytest.MonkeyPatch, whole: dict[str, bytes]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(RunTable, "merged", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            train(Sums(), store)
    manifest = store.find("sums").manifest
    assert (manifest.step, manifest.complete) == (40, False)
    assert content(train(Sums(), store).folder) == whole


@pytest.fixture
def begun(store: Store) -> RunFolder:
    """The run, stopped after a step."""
    with pytest.raises(KeyboardInterrupt):
        train(Sums(), store, watcher=Stops(1))
    return store.find("sums")


def test_a_run_goes_on_without_files_that_it_does_not_need(store: Store, begun: RunFolder) -> None:
    with begun.locked():
        begun.commit({"views.json": b"{}"})
    (begun.path / "views.json").write_text("[]")
    earlier = begun.path / checkpoint_name(0)
    earlier.unlink()
    with pytest.warns(RunWarning) as warned:
        assert train(Sums(), store).folder.manifest.complete
    damaged, missing = sorted(str(each.message) for each in warned)
    assert "step-00000000.safetensors is missing" in damaged
    assert "views.json is damaged" in missing


@pytest.mark.parametrize("start", ["checkpoints/step-", "metrics/part-"])
def test_a_run_does_not_go_on_without_a_file_that_it_needs(
    store: Store, begun: RunFolder, start: str
) -> None:
    path = begun.path / begun.files(start)[-1]
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(RunDamaged, match=rf"{path.name} is damaged \(its SHA-256 differs"):
        train(Sums(), store)
    assert not RunFolder(begun.path).manifest.complete
