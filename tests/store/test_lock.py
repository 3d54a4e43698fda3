"""Who may write to a run: the process that holds its lock, for as long as it lives and is heard of.

Two may believe that it is theirs: the later one has it, and the other's commit is refused.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from hopscope.configs import Experiment
from hopscope.errors import RunBusy, StoreUnwritable
from hopscope.store import RunFolder, Store, lock
from hopscope.store.files import write_inside
from hopscope.store.lock import LEASE_SECONDS, LOCK, holder_of, lock_content, locked

LATE = "checkpoints/step-00000003.safetensors"
HOLDER = """
import sys
from pathlib import Path
from hopscope.errors import RunBusy
from hopscope.store import RunFolder, lock
lock.LEASE_SECONDS = 0.4
folder = RunFolder(Path(sys.argv[1]))
with folder.locked():
    print("held", flush=True)
    sys.stdin.readline()
    try:
        folder.commit({sys.argv[2]: b"late"}, step=3)
    except RunBusy as error:
        print(error, flush=True)
"""


@pytest.fixture
def folder(tiny: Experiment, store: Store) -> RunFolder:
    return store.create(tiny)


@pytest.fixture
def other(folder: RunFolder) -> Iterator[Any]:
    """A process that holds the run's lock, and touches it every 0.13 seconds."""
    command = [sys.executable, "-c", HOLDER, str(folder.path), LATE]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        try:
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()


def leave(folder: RunFolder, content: bytes, seconds: float = 0) -> None:
    """What somebody else may have left, that many seconds from now."""
    (folder.path / LOCK).write_bytes(content)
    then = time.time() + seconds
    os.utime(folder.path / LOCK, (then, then))


ELSEWHERE = b'{"host": "elsewhere", "pid": 7, "nonce": "x"}'


def test_one_process_holds_a_run_until_it_ends(folder: RunFolder, other: Any) -> None:
    holder = holder_of(folder.path)
    assert holder is not None
    assert (holder.host, holder.pid) == (socket.gethostname(), other.pid)
    assert folder.in_training()
    with pytest.raises(RunBusy, match="trained by another process"), folder.locked():
        pass
    other.kill()
    other.wait()
    assert holder_of(folder.path) is None
    assert lock_content(folder.path)  # who was killed leaves them
    with folder.locked():
        folder.commit({LATE: b"in time"}, step=3)
        assert folder.in_training()
        assert folder.untracked() == folder.leftovers() == []
    assert lock_content(folder.path) == b""
    assert not folder.in_training()


def test_who_was_stopped_for_too_long_cannot_commit(
    folder: RunFolder, other: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "LEASE_SECONDS", 1.0)
    time.sleep(1.5)  # it touches its lock, so that it is heard of
    with pytest.raises(RunBusy), folder.locked():
        pass
    other.send_signal(signal.SIGSTOP)
    until = time.monotonic() + 20
    while folder.in_training():
        assert time.monotonic() < until
        time.sleep(0.02)
    with folder.locked():
        folder.commit({LATE: b"taken over"}, step=5)
        other.send_signal(signal.SIGCONT)
        other.stdin.write("\n")
        other.stdin.flush()
        line = other.stdout.readline()
        assert line.startswith(f"{folder.name} was taken over by process {os.getpid()} on ")
        other.wait(30)
        assert (
            json.loads(lock_content(folder.path))["pid"] == os.getpid()
        )  # it strikes out its own alone
        folder.commit({}, step=6)
    again = RunFolder(folder.path)
    assert (again.manifest.step, again.read(LATE)) == (6, b"taken over")


def test_who_holds_it_on_another_machine_is_believed_until_it_is_silent(folder: RunFolder) -> None:
    for seconds in (0, 5, 600, -LEASE_SECONDS + 5):  # another clock may be ahead of ours
        leave(folder, ELSEWHERE, seconds)
        assert folder.in_training()
        with pytest.raises(RunBusy, match=r"wait for it, .*\(process 7 on elsewhere\)"):
            folder.locked().__enter__()
    for seconds in (-LEASE_SECONDS - 1, -3e7, 3e7):
        leave(folder, ELSEWHERE, seconds)
        assert not folder.in_training()
        with folder.locked():
            assert json.loads(lock_content(folder.path))["pid"] == os.getpid()


def test_two_that_see_an_expired_holder_do_not_both_take_its_place(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave(folder, ELSEWHERE, -LEASE_SECONDS - 1)
    faster, flock, ended = RunFolder(folder.path), lock._flock, ExitStack()

    def overtaken(descriptor: int, kind: int) -> bool:
        monkeypatch.setattr(lock, "_flock", flock)
        ended.enter_context(faster.locked())
        return flock(descriptor, kind)

    monkeypatch.setattr(lock, "_flock", overtaken)
    with ended:
        with pytest.raises(RunBusy, match="trained by another process"), folder.locked():
            pass
        faster.commit({LATE: b"whole"}, step=3)


def test_what_says_nothing_of_a_holder_holds_nothing(folder: RunFolder) -> None:
    for content in (b"", b"{", b"[]", b"[" * 4_000, b'{"host": "x"}', b'{"pid": []}', b"\xff"):
        leave(folder, content)
        assert not folder.in_training()
        with folder.locked():
            assert folder.in_training()


def test_a_commit_of_who_lost_the_lock_is_refused_before_anything_is_written(
    folder: RunFolder,
) -> None:
    with folder.locked():
        leave(folder, ELSEWHERE)
        with pytest.raises(RunBusy, match="was taken over by process 7 on elsewhere, because"):
            folder.commit({LATE: b"late"}, step=3)
        (folder.path / LOCK).unlink()
        with pytest.raises(RunBusy, match="was continued elsewhere, because this process did not"):
            folder.commit({LATE: b"late"}, step=3)
    assert not (folder.path / LATE).exists()
    assert RunFolder(folder.path).manifest.step == 0


def test_what_is_no_lock_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    target = tmp_path / "diary.txt"
    target.write_text("dear diary")
    for name, text in (("link", "a symbolic link is in the way"), ("pipe", "not a regular file")):
        folder = tmp_path / name
        folder.mkdir()
        if name == "link":
            (folder / LOCK).symlink_to(target)
        else:
            os.mkfifo(folder / LOCK)
        with pytest.raises(StoreUnwritable, match=text), locked(folder, "busy"):
            pass
        assert holder_of(folder) is None
    assert target.read_text() == "dear diary"


def test_a_lock_of_a_folder_that_was_made_anew_counts_for_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    with locked(folder, "busy"):
        folder.rename(tmp_path / "gone")
        folder.mkdir()
        assert holder_of(folder) is None  # another file: nobody holds it
        with locked(folder, "busy"):
            assert holder_of(folder) is not None


def test_a_run_that_is_taken_while_files_are_written_is_not_committed(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = folder.manifest.step

    def taken_meanwhile(root: Path, files: dict[str, bytes]) -> None:
        write_inside(root, files)
        leave(folder, ELSEWHERE, 0)

    with folder.locked():
        monkeypatch.setattr("hopscope.store.folder.write_inside", taken_meanwhile)
        with pytest.raises(RunBusy, match=r"was taken over by process 7 on elsewhere"):
            folder.commit({LATE: b"late"}, step=9)
    again = RunFolder(folder.path)
    assert again.manifest.step == step
    assert LATE not in again.manifest.files


def test_who_takes_a_run_knows_what_was_committed_meanwhile(folder: RunFolder) -> None:
    late = RunFolder(folder.path)
    with folder.locked():
        folder.commit({LATE: b"first"}, step=3)
    with late.locked():
        late.commit({}, step=4)
    assert RunFolder(folder.path).read(LATE) == b"first"
