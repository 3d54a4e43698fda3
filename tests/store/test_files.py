import errno
import os
from pathlib import Path

import pytest

from hopscope.errors import RunDamaged, StoreUnwritable
from hopscope.store.files import read_bytes, write_bytes


def test_what_is_written_is_read_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b.bin"
    write_bytes(path, b"one")
    write_bytes(path, b"two")
    assert read_bytes(path) == b"two"
    assert [p.name for p in path.parent.iterdir()] == ["b.bin"]


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
