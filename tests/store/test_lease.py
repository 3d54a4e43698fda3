"""Two may believe that a run is theirs: the later one has it, and the other's commit is refused."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hopscope.configs import Experiment
from hopscope.errors import RunBusy, RunTaken, StoreUnwritable
from hopscope.store import RunFolder, Store, lease
from hopscope.store.lease import LEASE, lease_of

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


def leave(folder: RunFolder, **fields: object) -> None:
    """A lease as somebody else may have left it."""
    there = {"token": 4, "host": "elsewhere", "pid": 7, "seconds": 60, **fields}
    (folder.path / LEASE).write_text(json.dumps(there))


def test_a_lease_is_there_while_the_run_is_held(folder: RunFolder) -> None:
    with folder.locked():
        found = lease_of(folder.path)
        assert found is not None
        assert (found.token, found.said("pid"), found.over) == (1, os.getpid(), False)
        assert folder.strays().foreign == folder.strays().leftovers == ()
        assert "step" not in found.holder
        folder.commit({LATE: b"in time"}, step=3)
    assert not (folder.path / LEASE).exists()
    assert not folder.in_training()


def test_who_was_stopped_for_too_long_cannot_commit(folder: RunFolder) -> None:
    command = [sys.executable, "-c", HOLDER, str(folder.path), LATE]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as other:
        try:
            assert other.stdout.readline() == "held\n"
            time.sleep(1)  # it touches its lease, so that it does not end
            with pytest.raises(RunBusy), folder.locked(take_over=True):
                pass
            other.send_signal(signal.SIGSTOP)
            while not lease_of(folder.path).silent:
                time.sleep(0.05)
            with pytest.raises(RunBusy), folder.locked():  # who only looks on takes nothing over
                pass
            with folder.locked(take_over=True):
                assert lease_of(folder.path).token == 2
                folder.commit({LATE: b"taken over"}, step=5)
                other.send_signal(signal.SIGCONT)
                other.stdin.write("\n")
                other.stdin.flush()
                line = other.stdout.readline()
                assert line.startswith(f"{folder.name} was taken over by process {os.getpid()} on ")
                other.wait(30)
                assert lease_of(folder.path).token == 2  # it takes away its own alone
        finally:
            other.send_signal(signal.SIGCONT)
            other.kill()
    again = RunFolder(folder.path)
    assert (again.manifest.step, again.read(LATE)) == (5, b"taken over")


def test_a_lease_of_another_machine_counts_until_its_time_is_over(folder: RunFolder) -> None:
    leave(folder)
    assert folder.in_training()
    line = f"{folder.name} is leased to process 7 on elsewhere: wait for it, or for 60 seconds"
    with pytest.raises(RunBusy, match=line), folder.locked(take_over=True):
        pass
    old = time.time() - 61
    os.utime(folder.path / LEASE, (old, old))
    assert not folder.in_training()
    with folder.locked():
        assert lease_of(folder.path).token == 5


@pytest.mark.parametrize("seconds", [60, 1e300, float("nan")])
@pytest.mark.parametrize("ahead", [3e7, -3e7])
def test_a_lease_that_is_dated_nonsense_is_over(
    folder: RunFolder, seconds: float, ahead: float
) -> None:
    leave(folder, seconds=seconds)
    dated = time.time() + ahead
    os.utime(folder.path / LEASE, (dated, dated))
    with folder.locked():
        assert lease_of(folder.path).token == 5


def test_a_clock_that_is_a_little_ahead_of_ours_ends_no_lease(folder: RunFolder) -> None:
    leave(folder, seconds=60)
    dated = time.time() + 600
    os.utime(folder.path / LEASE, (dated, dated))
    assert not lease_of(folder.path).silent


def test_a_lease_of_a_dead_process_of_this_machine_is_over_at_once(folder: RunFolder) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    leave(folder, pid=dead.pid, born="12345", machine=lease._machine())
    assert lease_of(folder.path).over
    leave(folder, pid=os.getpid(), born="1", machine=lease._machine())  # its number was given anew
    assert lease_of(folder.path).over
    leave(folder, pid=os.getpid(), born=lease._born(os.getpid()), machine=lease._machine())
    assert not lease_of(folder.path).over


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"[" * 10_000, b'{"token": "x"}'])
def test_what_is_no_lease_ends_as_one(folder: RunFolder, content: bytes) -> None:
    (folder.path / LEASE).write_bytes(content)
    old = time.time() - 61
    os.utime(folder.path / LEASE, (old, old))
    with folder.locked():
        assert lease_of(folder.path).token == 1


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

    def failing(path: object, *others: Any, **more: Any) -> int:
        if path == folder.path / LEASE:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return really(path, *others, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", failing)
    with (
        pytest.raises(StoreUnwritable, match=r"cannot write .*/\.lease: Input/output error"),
        folder.locked(),
    ):
        raise AssertionError("it is not held")
    assert not (folder.path / LEASE).exists()
