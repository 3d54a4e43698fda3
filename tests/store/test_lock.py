"""One process at a time has a folder, and for as long as it lives."""

import multiprocessing
import os
from pathlib import Path

import pytest

from hopscope.configs import Experiment
from hopscope.errors import RunBusy, StoreUnwritable
from hopscope.store import RunFolder, Store
from hopscope.store.lock import LOCK, is_locked, locked


def hold(folder: Path, ready: object, done: object) -> None:
    with RunFolder(folder).locked():
        ready.set()  # type: ignore[attr-defined]
        done.wait(30)  # type: ignore[attr-defined]


def test_only_one_process_trains_a_run_until_it_ends(store: Store, tiny: Experiment) -> None:
    run = store.create(tiny)
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    other = context.Process(target=hold, args=(run.path, ready, done))
    assert not is_locked(run.path)
    other.start()
    try:
        assert ready.wait(60)
        assert is_locked(run.path)
        with pytest.raises(RunBusy, match="trained by another process"), run.locked():
            pass
        with pytest.raises(RunBusy, match="it has it"), locked(run.path, "it has it"):
            pass
    finally:
        other.kill()  # the lock ends with its process
        other.join()
    assert not is_locked(run.path)
    with run.locked():
        assert is_locked(run.path)


def test_what_is_no_lock_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    target, folders = tmp_path / "diary.txt", [tmp_path / name for name in ("link", "pipe", "note")]
    target.write_text("dear diary")
    for folder in folders:
        folder.mkdir()
    (folders[0] / LOCK).symlink_to(target)
    os.mkfifo(folders[1] / LOCK)
    (folders[2] / LOCK).write_text("a note")
    for folder, text in zip(folders, ("a symbolic link is in the way", "no regular"), strict=False):
        with pytest.raises(StoreUnwritable, match=text), locked(folder, "busy"):
            pass
        assert not is_locked(folder)
    with locked(folders[2], "busy"):
        pass
    assert (folders[2] / LOCK).read_text() == "a note"
    assert target.read_text() == "dear diary"


def test_a_lock_of_a_folder_that_was_made_anew_counts_for_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    with locked(folder, "busy"):
        folder.rename(tmp_path / "gone")
        folder.mkdir()
        assert not is_locked(folder)  # another file: nobody holds it
        with locked(folder, "busy"):
            assert is_locked(folder)
