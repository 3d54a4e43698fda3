"""Files are there whole or not at all, and no link leads out of a run's folder."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from hopscope.errors import ConfigError, RunDamaged, RunUnreadable, StoreUnwritable
from hopscope.store.files import (
    check_files,
    check_folder,
    read_bytes,
    read_inside,
    remove_inside,
    write_bytes,
    write_inside,
)


def refusing(number: int) -> Any:
    """A call of the system that fails."""

    def refuse(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    return refuse


def test_what_is_written_is_read_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b.bin"
    write_bytes(path, b"one")
    write_bytes(path, b"two")
    assert read_bytes(path) == b"two"
    assert [p.name for p in path.parent.iterdir()] == ["b.bin"]


def test_what_a_link_leads_to_is_replaced_and_the_link_stays(tmp_path: Path) -> None:
    for name, target in (("one", "file"), ("two", "one"), ("three", "new/file")):
        (tmp_path / name).symlink_to(target)
    write_bytes(tmp_path / "two", b"content")
    write_bytes(tmp_path / "three", b"more")
    assert (tmp_path / "file").read_bytes() == b"content"
    assert (tmp_path / "new" / "file").read_bytes() == b"more"
    assert all((tmp_path / name).is_symlink() for name in ("one", "two", "three"))
    assert not (tmp_path / "file").is_symlink()


def test_a_refused_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_bytes(path, b"old")
    for number, text in (
        (errno.ENOSPC, "the disk is full: free some space"),
        (errno.EROFS, "read-only: choose another folder"),
        (errno.EACCES, "permission denied"),
        (errno.EIO, "Input/output error"),
    ):
        monkeypatch.setattr(os, "fsync", refusing(number))
        with pytest.raises(StoreUnwritable, match=text):
            write_bytes(path, b"new")
        assert read_bytes(path) == b"old"
        assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_what_is_in_the_way_is_named_and_stays(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("not a folder")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name, text in (
        ("runs/x", "cannot write .*runs.*: .*choose another folder"),
        ("pipe", "pipe: it is a pipe or a device: choose another"),
        ("link", "pipe: it is a pipe or a device: choose another"),
    ):
        with pytest.raises(StoreUnwritable, match=text):
            write_bytes(tmp_path / name, b"content")
    assert (tmp_path / "pipe").is_fifo()
    assert len(list(tmp_path.iterdir())) == 3
    with pytest.raises(StoreUnwritable, match="its folder is gone"):
        write_inside(tmp_path / "gone", "inner/file", b"ours")
    assert not (tmp_path / "gone").exists()


def test_permission_to_read_is_asked_for_and_no_removal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"x")
    for number in (errno.EACCES, errno.EPERM):
        monkeypatch.setattr(os, "open", refusing(number))
        with pytest.raises(RunUnreadable, match="file: permission denied: ask its owner"):
            read_inside(tmp_path, "file", 10)


def test_only_regular_files_of_the_expected_size_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("/dev/zero")
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(2**40)
    for name, most, size, text in (
        ("pipe", 2**20, None, "no regular file"),
        ("folder", 2**20, None, "Is a directory|no regular file"),
        ("link", 2**20, None, "a symbolic link or a file"),
        ("gone", 2**20, None, "gone is missing"),
        ("hole", 2**50, 7, "1099511627776 bytes, expected 7"),
        ("hole", 1024, None, "1,099,511,627,776 bytes, expected at most 1,024"),
    ):
        with pytest.raises(RunDamaged, match=text):
            read_inside(tmp_path, name, most, size)


def test_no_link_leads_out_of_the_folder(tmp_path: Path) -> None:
    outside, run = tmp_path / "outside", tmp_path / "run"
    outside.mkdir()
    run.mkdir()
    (outside / "file").write_bytes(b"theirs")
    (run / "inner").symlink_to(outside)
    with pytest.raises(RunDamaged, match="a part of the path is a symbolic link"):
        read_inside(run, "inner/file", 10)
    with pytest.raises(StoreUnwritable, match="a symbolic link"):
        write_inside(run, "inner/file", b"ours")
    with pytest.raises(StoreUnwritable, match="a symbolic link"):
        remove_inside(run, "inner/file")
    (run / f".own.{os.getpid()}.tmp").symlink_to(outside / "file")  # where it is written first
    write_inside(run, "own", b"ours")
    assert (run / "own").read_bytes() == b"ours"
    assert (outside / "file").read_bytes() == b"theirs"


def test_whether_something_can_be_written_is_asked_without_writing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    os.mkfifo(tmp_path / "pipe")
    for name, target in (
        ("to-pipe", "pipe"), ("to-file", "file"), ("to-new", "new/file"), ("to-no", "file/new"),
    ):  # fmt: skip
        (tmp_path / name).symlink_to(target)
    before = sorted(tmp_path.rglob("*"))
    check_files(*(tmp_path / name for name in ("file", "new", "a/b/new", "to-file", "to-new")))
    check_folder(tmp_path / "c" / "d")
    for name, error, text in (
        ("", ConfigError, "is a folder; expected a file"),
        ("pipe", ConfigError, "pipe is a pipe or a device; expected a file"),
        ("to-pipe", ConfigError, "to-pipe is a pipe or a device; expected a file"),
        ("file/below", StoreUnwritable, "below"),
        ("to-no", StoreUnwritable, "to-no: a part of the path is a file"),
    ):
        with pytest.raises(error, match=text):
            check_files(tmp_path / name)
    with pytest.raises(StoreUnwritable, match="file"):
        check_folder(tmp_path / "file")
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "file").read_text() == "mine"


def test_permission_to_write_is_asked_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may write everywhere sees no refusal, so the system's answer is given here."""
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    for check in (lambda: check_files(tmp_path / "new.json"), lambda: check_folder(tmp_path)):
        with pytest.raises(StoreUnwritable, match="ermission"):
            check()
