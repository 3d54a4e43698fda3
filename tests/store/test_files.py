import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hopscope.errors import RunDamaged, RunUnreadable, StoreUnwritable
from hopscope.store.files import read_bytes, read_inside, remove_inside, write_bytes, write_inside


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


def test_a_pipe_stays_what_it_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        with pytest.raises(StoreUnwritable, match="pipe: it is a pipe or a device: choose another"):
            write_bytes(tmp_path / name, b"content")
    assert (tmp_path / "pipe").is_fifo()
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (errno.ENOSPC, "the disk is full: free some space"),
        (errno.EROFS, "read-only: choose another folder"),
        (errno.EACCES, "permission denied"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_a_refused_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, text: str
) -> None:
    path = tmp_path / "file"
    write_bytes(path, b"old")

    def refuse(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(StoreUnwritable, match=text):
        write_bytes(path, b"new")
    assert read_bytes(path) == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("not a folder")
    with pytest.raises(StoreUnwritable, match="cannot write .*runs.*: .*choose another folder"):
        write_bytes(tmp_path / "runs" / "x", b"")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunDamaged, match="gone is missing"):
        read_bytes(tmp_path / "gone")


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM])
def test_permission_to_read_is_asked_for_and_no_removal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    (tmp_path / "file").write_bytes(b"x")

    def refuse(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(RunUnreadable, match="cannot read .*file: permission denied: ask its owner"):
        read_inside(tmp_path, "file", 10)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_only_regular_files_are_read(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "file")
    with pytest.raises(
        RunDamaged, match="no regular file|a symbolic link or a file|Is a directory"
    ):
        read_inside(tmp_path, "file", 2**20)


def test_sizes_are_looked_at_before_reading(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(RunDamaged, match="1099511627776 bytes, expected 7"):
        read_inside(tmp_path, "file", 2**50, 7)
    with pytest.raises(RunDamaged, match="1,099,511,627,776 bytes, expected at most 1,024"):
        read_inside(tmp_path, "file", 1024)


def test_links_below_the_folder_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"theirs")
    run = tmp_path / "run"
    run.mkdir()
    (run / "inner").symlink_to(outside)
    with pytest.raises(RunDamaged, match="a part of the path is a symbolic link"):
        read_inside(run, "inner/file", 10)
    with pytest.raises(StoreUnwritable, match="a symbolic link"):
        write_inside(run, "inner/file", b"ours")
    with pytest.raises(StoreUnwritable, match="a symbolic link"):
        remove_inside(run, "inner/file")
    assert (outside / "file").read_bytes() == b"theirs"


def test_a_temporary_file_that_is_a_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"theirs")
    (tmp_path / f".file.{os.getpid()}.tmp").symlink_to(tmp_path / "outside")
    write_inside(tmp_path, "file", b"ours")
    assert (tmp_path / "outside").read_bytes() == b"theirs"
    assert (tmp_path / "file").read_bytes() == b"ours"


def test_nothing_is_made_in_a_folder_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(StoreUnwritable, match="its folder is gone"):
        write_inside(tmp_path / "gone", "inner/file", b"ours")
    assert not (tmp_path / "gone").exists()
