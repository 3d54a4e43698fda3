import multiprocessing
import os
from pathlib import Path

import pytest

from hopscope.errors import RunBusy, StoreUnwritable
from hopscope.store.lock import LOCK, is_locked, locked


def hold(folder: Path, ready: object, done: object) -> None:
    with locked(folder, "busy"):
        ready.set()  # type: ignore[attr-defined]
        done.wait(30)  # type: ignore[attr-defined]


def test_one_process_at_a_time(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    other = context.Process(target=hold, args=(tmp_path, ready, done))
    assert not is_locked(tmp_path)
    other.start()
    try:
        assert ready.wait(60)
        assert is_locked(tmp_path)
        with pytest.raises(RunBusy, match="somebody has it"), locked(tmp_path, "somebody has it"):
            pass
    finally:
        other.kill()  # the lock ends with its process
        other.join()
    assert not is_locked(tmp_path)
    with locked(tmp_path, "busy"):
        assert is_locked(tmp_path)


def test_a_link_is_not_followed_and_its_target_stays_as_it_is(tmp_path: Path) -> None:
    target = tmp_path / "diary.txt"
    target.write_text("dear diary")
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / LOCK).symlink_to(target)
    line = r"cannot write .*\.lock: a symbolic link is in the way: remove it"
    with pytest.raises(StoreUnwritable, match=line), locked(folder, "busy"):
        pass
    assert target.read_text() == "dear diary"
    assert not is_locked(folder)


def test_a_pipe_is_no_lock(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / LOCK)
    with pytest.raises(StoreUnwritable, match="it is no regular file"), locked(tmp_path, "busy"):
        pass


def test_what_is_in_the_lock_stays(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text("a note")
    with locked(tmp_path, "busy"):
        pass
    assert (tmp_path / LOCK).read_text() == "a note"


def test_a_lock_of_a_folder_that_was_made_anew_counts_for_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    with locked(folder, "busy"):
        folder.rename(tmp_path / "gone")
        folder.mkdir()
        assert not is_locked(folder)  # another file: nobody holds it
        with locked(folder, "busy"):
            assert is_locked(folder)
