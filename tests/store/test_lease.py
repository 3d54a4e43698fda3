"""Who has a run: a lock and a lease say so, for as long as a process lives and is heard of.

Two may believe that it is theirs: the later one has it, and the other's commit is refused.
"""

import errno
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hopscope.configs import Experiment
from hopscope.errors import RunBusy, RunTaken, StoreUnwritable
from hopscope.store import RunFolder, Store
from hopscope.store.lease import LEASE, Lease, lease_of
from hopscope.store.lock import LOCK, is_locked, locked

LATE = "checkpoints/step-00000003.safetensors"
HOLDER = """
import sys
from pathlib import Path
from hopscope.errors import RunTaken
from hopscope.store import RunFolder, lease
lease.SECONDS = 0.4
folder = RunFolder(Path(sys.argv[1]))
with folder.locked():
    print("held", flush=True)
    sys.stdin.readline()
    try:
        folder.commit({sys.argv[2]: b"late"}, step=3)
    except RunTaken as error:
        print(error, flush=True)
"""


@pytest.fixture
def folder(tiny: Experiment, store: Store) -> RunFolder:
    return store.create(tiny)


@pytest.fixture
def other(folder: RunFolder) -> Iterator[Any]:
    """A process that holds the run's lease, which is over 0.4 seconds after it was touched."""
    command = [sys.executable, "-c", HOLDER, str(folder.path), LATE]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        try:
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()


def there(folder: RunFolder) -> Lease:
    found = lease_of(folder.path)
    assert found is not None
    return found


def leave(folder: RunFolder, dated: float = 0, **fields: object) -> None:
    """A lease as somebody else may have left it, that many seconds from now."""
    said = {"token": 4, "host": "elsewhere", "pid": 7, "seconds": 60, **fields}
    (folder.path / LEASE).write_text(json.dumps(said))
    date(folder, dated)


def date(folder: RunFolder, seconds: float) -> None:
    then = time.time() + seconds
    os.utime(folder.path / LEASE, (then, then))


def hold(folder: Path, ready: object, done: object) -> None:
    with RunFolder(folder).locked():
        ready.set()  # type: ignore[attr-defined]
        done.wait(30)  # type: ignore[attr-defined]


def test_only_one_process_trains_a_run_until_it_ends(folder: RunFolder) -> None:
    run = folder
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


def test_a_lease_is_there_while_the_run_is_held(folder: RunFolder) -> None:
    with folder.locked():
        found = there(folder)
        assert (found.token, found.said("pid"), found.over) == (1, os.getpid(), False)
        assert folder.strays().foreign == folder.strays().leftovers == ()
        folder.commit({LATE: b"in time"}, step=3)
    assert not (folder.path / LEASE).exists()
    assert not folder.in_training()


def test_who_was_stopped_for_too_long_cannot_commit(folder: RunFolder, other: Any) -> None:
    touched = (folder.path / LEASE).stat().st_mtime
    while (folder.path / LEASE).stat().st_mtime < touched + 0.5:  # longer than it would last alone
        time.sleep(0.02)
    with pytest.raises(RunBusy), folder.locked(take_over=True):
        pass
    other.send_signal(signal.SIGSTOP)
    while not there(folder).silent:
        time.sleep(0.02)
    with pytest.raises(RunBusy), folder.locked():  # who only looks on takes nothing over
        pass
    with folder.locked(take_over=True):
        assert there(folder).token == 2
        folder.commit({LATE: b"taken over"}, step=5)
        other.send_signal(signal.SIGCONT)
        other.stdin.write("\n")
        other.stdin.flush()
        line = other.stdout.readline()
        assert line.startswith(f"{folder.name} was taken over by process {os.getpid()} on ")
        other.wait(30)
        assert there(folder).token == 2  # it takes away its own alone
    again = RunFolder(folder.path)
    assert (again.manifest.step, again.read(LATE)) == (5, b"taken over")


def test_a_lease_of_another_machine_counts_until_its_time_is_over(folder: RunFolder) -> None:
    leave(folder)
    assert folder.in_training()
    line = f"{folder.name} is leased to process 7 on elsewhere: wait for it, or for 60 seconds"
    with pytest.raises(RunBusy, match=line), folder.locked(take_over=True):
        pass
    date(folder, 600)  # a clock that is a little ahead of ours
    assert not there(folder).silent
    date(folder, -61)
    assert not folder.in_training()
    with folder.locked():
        assert there(folder).token == 5


def test_a_lease_of_a_dead_process_of_this_machine_is_over_at_once(
    folder: RunFolder, other: Any
) -> None:
    alive = json.loads(there(folder).written)
    leave(folder, **alive)
    assert not there(folder).over
    leave(folder, **alive | {"born": "1"})  # its number was given anew
    assert there(folder).over
    other.kill()
    other.wait()
    leave(folder, **alive)
    assert there(folder).over


def test_nonsense_ends_no_sooner_and_no_later_than_a_lease(folder: RunFolder) -> None:
    for seconds in (60, 1e300, float("nan")):
        for ahead in (3e7, -3e7):
            leave(folder, ahead, seconds=seconds)
            with folder.locked():
                assert there(folder).token == 5, (seconds, ahead)
    for content in (b"", b"{", b"[]", b"[" * 4_000, b'{"token": "x"}'):
        (folder.path / LEASE).write_bytes(content)
        with pytest.raises(RunBusy), folder.locked():
            pass
        date(folder, -61)
        with folder.locked():
            assert there(folder).token == 1, content[:9]


def test_a_commit_without_the_lease_is_refused_before_anything_is_written(
    folder: RunFolder,
) -> None:
    with folder.locked():
        leave(folder, token=9)
        with pytest.raises(RunTaken, match="was taken over by process 7 on elsewhere, as this"):
            folder.commit({LATE: b"late"}, step=3)
        (folder.path / LEASE).unlink()
        with pytest.raises(RunTaken, match="went on elsewhere, as this process was not heard of"):
            folder.commit({LATE: b"late"}, step=3)
    assert not Path(folder.path / LATE).exists()
    assert RunFolder(folder.path).manifest.step == 0


def test_a_lease_that_cannot_be_opened_again_is_said_in_a_line_and_not_left(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file is kept open to be touched, and that open may fail as any other."""
    really = os.open

    def failing(path: Any, *others: Any, **more: Any) -> int:
        if path == folder.path / LEASE:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return really(path, *others, **more)

    monkeypatch.setattr(os, "open", failing)
    with pytest.raises(StoreUnwritable, match=r"cannot write .*/\.lease: Input/output error"):
        folder.locked().__enter__()
    assert not (folder.path / LEASE).exists()
