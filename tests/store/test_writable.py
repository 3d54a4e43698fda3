"""Can it be written? Asked without making or changing anything."""

import os
from pathlib import Path

import pytest

from hopscope.errors import ConfigError, StoreUnwritable
from hopscope.store.writable import check_files, check_folder


def test_what_can_be_written_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "there.json").write_text("mine")
    check_files(tmp_path / "there.json", tmp_path / "new.json", tmp_path / "a" / "b" / "new.json")
    check_folder(tmp_path / "c" / "d")
    assert [path.name for path in tmp_path.iterdir()] == ["there.json"]
    assert (tmp_path / "there.json").read_text() == "mine"


def test_a_folder_is_no_file_and_a_file_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="is a folder; expected a file"):
        check_files(tmp_path)
    with pytest.raises(StoreUnwritable, match="below.json"):
        check_files(tmp_path / "file" / "below.json")
    with pytest.raises(StoreUnwritable, match="file"):
        check_folder(tmp_path / "file")


def test_a_pipe_is_no_file_and_a_link_stands_for_where_it_leads(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "to-pipe").symlink_to("pipe")
    for name in ("pipe", "to-pipe"):
        with pytest.raises(ConfigError, match=f"{name} is a pipe or a device; expected a file"):
            check_files(tmp_path / name)
    (tmp_path / "file").write_text("")
    (tmp_path / "to-file").symlink_to("file")
    (tmp_path / "to-new").symlink_to("new/file")
    check_files(tmp_path / "to-file", tmp_path / "to-new")
    (tmp_path / "to-nowhere").symlink_to("file/new")
    with pytest.raises(StoreUnwritable, match="to-nowhere: a part of the path is a file"):
        check_files(tmp_path / "to-nowhere")
    assert len(list(tmp_path.iterdir())) == 6


def test_permission_is_asked_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may write everywhere sees no refusal, so the system's answer is given here."""
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(StoreUnwritable, match="ermission"):
        check_files(tmp_path / "new.json")
    with pytest.raises(StoreUnwritable, match="ermission"):
        check_folder(tmp_path)
