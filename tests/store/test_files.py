"""Files are there whole or not at all, and no link leads out of a run's folder."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from hopscope.errors import ConfigError, RunDamaged, StoreError, StoreUnwritable
from hopscope.store.files import (
    check_files,
    check_folder,
    path_inside,
    read_bytes,
    read_inside,
    remove_inside,
    write_bytes,
    write_inside,
)


def failing(number: int) -> Any:
    """A system call that fails."""

    def fail(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    return fail


def test_a_file_is_replaced_whole_and_a_link_stays(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b.bin"
    write_bytes(path, b"one")
    write_bytes(path, b"two")
    (tmp_path / "link").symlink_to("a/b.bin")
    (tmp_path / "new").symlink_to("a/c")
    write_bytes(tmp_path / "link", b"three")
    write_bytes(tmp_path / "new", b"four")
    assert (tmp_path / "link").is_symlink()
    assert {each.name: read_bytes(each) for each in path.parent.iterdir()} == {
        "b.bin": b"three", "c": b"four",
    }  # fmt: skip


def test_a_refused_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_bytes(path, b"old")
    for number, text in (
        (errno.ENOSPC, "the disk is full: free some space"),
        (errno.EACCES, "permission denied"),
        (errno.EIO, "Input/output error"),
    ):
        monkeypatch.setattr(os, "fsync", failing(number))
        with pytest.raises(StoreUnwritable, match=text):
            write_bytes(path, b"new")
        assert read_bytes(path) == b"old"
        assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_only_regular_files_of_the_expected_size_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("/dev/zero")
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(2**40)
    for name, most, size, text in (
        ("pipe", 2**20, None, "not a regular file"),
        ("folder", 2**20, None, "Is a directory"),
        ("link", 2**20, None, "a symbolic link or a file"),
        ("gone", 2**20, None, "gone is missing"),
        ("hole", 2**50, 7, "1099511627776 bytes, expected 7"),
        ("hole", 1024, None, "1,099,511,627,776 bytes, expected at most 1,024"),
    ):
        with pytest.raises(RunDamaged, match=text):
            read_inside(tmp_path, name, most, size)
        with pytest.raises(RunDamaged):
            path_inside(tmp_path, name, 7)


def test_permission_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root sees no refusal, so the system's answer is given here."""
    (tmp_path / "file").write_bytes(b"x")
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", failing(errno.EACCES))
        with pytest.raises(StoreError, match="file: permission denied: ask its owner"):
            read_inside(tmp_path, "file", 10)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    for check in (lambda: check_files(tmp_path / "new.json"), lambda: check_folder(tmp_path)):
        with pytest.raises(StoreUnwritable, match="ermission"):
            check()


def test_no_link_leads_out_of_the_folder(tmp_path: Path) -> None:
    outside, run = tmp_path / "outside", tmp_path / "run"
    outside.mkdir()
    run.mkdir()
    (outside / "file").write_bytes(b"theirs")
    (run / "inner").symlink_to(outside)
    (run / "file").symlink_to(outside / "file")
    for name in ("inner/file", "file"):
        for look in (lambda: read_inside(run, name, 10), lambda: path_inside(run, name, 6)):  # noqa: B023
            with pytest.raises(RunDamaged, match="a part of the path is a symbolic link"):
                look()
    for write in (lambda: write_inside(run, {"inner/file": b"ours"}),
                  lambda: remove_inside(run, "inner/file")):  # fmt: skip
        with pytest.raises(StoreUnwritable, match="a symbolic link"):
            write()
    (run / f".own.{os.getpid()}.tmp").symlink_to(outside / "file")  # where it is written first
    write_inside(run, {"own": b"ours", "file": b"ours"})
    assert (run / "own").read_bytes() == (run / "file").read_bytes() == b"ours"
    assert (outside / "file").read_bytes() == b"theirs"


def test_a_file_that_cannot_be_written_is_refused_beforehand(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    os.mkfifo(tmp_path / "pipe")
    for name, target in (("to-pipe", "pipe"), ("to-new", "new/file"), ("to-no", "file/new")):
        (tmp_path / name).symlink_to(target)
    before = sorted(tmp_path.rglob("*"))
    check_files(None, *(tmp_path / name for name in ("file", "new", "a/b/new", "to-new")))
    check_folder(tmp_path / "c" / "d")
    for name, error, text in (
        ("", ConfigError, "is a folder; expected a file"),
        ("to-pipe", ConfigError, "to-pipe is a pipe or a device; expected a file"),
        ("file/below", StoreUnwritable, "below"),
        ("to-no", StoreUnwritable, "to-no: a part of the path is a file"),
    ):
        with pytest.raises(error, match=text):
            check_files(tmp_path / name)
    with pytest.raises(StoreUnwritable, match="pipe: it is a pipe or a device: choose another"):
        write_bytes(tmp_path / "to-pipe", b"content")
    with pytest.raises(StoreUnwritable, match="file"):
        check_folder(tmp_path / "file")
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "file").read_text() == "mine"
