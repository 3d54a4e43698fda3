"""A folder of runs: they are found, made and removed, and what others put there stays."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hopscope.configs import Experiment, Retrieval
from hopscope.errors import RunDamaged, RunMismatch, RunMissing, StoreError, StoreUnwritable
from hopscope.store import RunFolder, Store, default_root
from hopscope.web.shelf import Shelf


def test_asking_for_a_run_that_exists_returns_it_without_writing(store: Store) -> None:
    first = store.create(Experiment())
    first.commit({"metrics/x.parquet": b"1"}, step=7)
    (store.root / ".lock").unlink()
    assert store.create(Experiment()).manifest.step == 7
    assert [path.name for path in store.root.iterdir()] == store.names() == [first.name]


def test_a_run_is_found_by_any_unique_part_of_its_name(store: Store, tmp_path: Path) -> None:
    one = store.create(Experiment())
    two = store.create(Experiment(task=Retrieval(hops=5)))
    assert store.find(one.name).name == one.name
    assert store.find(two.name[-6:]).name == two.name
    (store.root / one.name).rename(store.root / "mine-demo")
    for part in (two.name[:-1], two.name[-6:], "demo"):  # it could be of another run than was meant
        with pytest.raises(RunMissing):
            store.removable(part)
    assert store.removable(two.name[-10:]) == two.name
    (store.root / "mine-demo").rename(store.root / one.name)
    assert store.names() == sorted([one.name, two.name])
    for words, text in (
        ("retrieval", "2 runs match 'retrieval'"),
        ("nothing", f"no run matches 'nothing'.*{one.name}"),
        ("", "no run matches ''"),
    ):
        with pytest.raises(RunMissing, match=text):
            store.find(words)
    assert Store(tmp_path / "none").names() == []
    with pytest.raises(RunMissing, match="There are: none"):
        Store(tmp_path / "none").find("x")
    for hops in (1, 2, 3, 4, 6, 7, 8):
        store.create(Experiment(task=Retrieval(hops=hops)))
    with pytest.raises(RunMissing, match=r"There are: retrieval-d7-\S+, .* and 3 more$"):
        store.find("retrieval-d77")


def test_half_made_and_half_removed_runs_are_invisible_and_swept(store: Store) -> None:
    name = Experiment().run_name()
    for half in (f".new-{name}", f".rm-{name}-77"):
        (store.root / half).mkdir(parents=True)
        (store.root / half / "config.json").write_text("half a run")
    (store.root / name).mkdir()
    assert store.names() == []
    assert store.create(Experiment()).name == name
    assert sorted(p.name for p in store.root.iterdir()) == [".lock", name]


def test_a_folder_without_a_manifest_is_not_ours_to_remove(store: Store) -> None:
    folder = store.root / Experiment().run_name()
    folder.mkdir(parents=True)
    (folder / "notes.md").write_text("mine")
    with pytest.raises(StoreUnwritable, match="a folder that holds other files is in the way"):
        store.create(Experiment())
    assert (folder / "notes.md").read_text() == "mine"


def test_removal_takes_the_whole_folder_and_of_a_link_the_link(
    store: Store, tmp_path: Path
) -> None:
    folder = store.create(Experiment())
    elsewhere = tmp_path / "elsewhere"
    folder.path.rename(elsewhere)
    folder.path.symlink_to(elsewhere)
    assert store.find(folder.name).verify() == []
    store.remove(folder.name)
    assert store.names() == []
    assert RunFolder(elsewhere).verify() == []
    store.create(Experiment())
    store.remove(folder.name)
    assert [path.name for path in store.root.iterdir()] == [".lock"]


def test_a_file_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot read .*file: .*; expected a folder of runs"):
        Store(tmp_path / "file").names()
    with pytest.raises(StoreUnwritable, match="a file is in the way"):
        Store(tmp_path / "file").create(Experiment())


def test_a_run_under_the_name_of_another_is_refused(store: Store, tiny: Experiment) -> None:
    other = Experiment()
    store.create(other).path.rename(store.root / tiny.run_name())
    for ask in (store.create, store.has_complete, store.of):
        with pytest.raises(RunMismatch, match=f"holds the run {other.run_name()}: its folder was"):
            ask(tiny)
    assert store.of(other) is None


def test_a_folder_whose_name_duckdb_cannot_read_is_refused_before_there_is_a_run(
    tmp_path: Path,
) -> None:
    for name, why in (
        (os.fsdecode(b"runs-\x80"), "has a name that is not UTF-8"),
        ("runs\\[1]", "has a backslash, and also"),
    ):
        with pytest.raises(RunDamaged, match=why):
            Store(tmp_path / name).create(Experiment())
    assert list(tmp_path.iterdir()) == []


def test_a_locale_without_utf_8_is_not_the_fault_of_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.getfilesystemencoding", lambda: "ascii")
    with pytest.raises(RunDamaged, match="is read as ascii here: set PYTHONUTF8=1$"):
        Store(tmp_path / os.fsdecode(b"runs-\x80")).create(Experiment())


def test_a_run_of_another_user_that_may_not_be_read_is_named(
    store: Store, tiny: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tests may run as root, whom the system refuses nothing. A folder that is not named like a
    run (lost+found) is ignored.
    """
    path = store.create(tiny).path
    other = store.root / "lost+found"
    other.mkdir()
    private = (f"{path}{os.sep}", f"{other}{os.sep}")

    def refusing(real: Callable[..., Any]) -> Callable[..., Any]:
        def of(where: Any, *more: Any, **named: Any) -> Any:
            if str(where).startswith(private):
                raise PermissionError(errno.EACCES, "Permission denied", str(where))
            return real(where, *more, **named)

        return of

    monkeypatch.setattr(os, "lstat", refusing(os.lstat))
    monkeypatch.setattr(os, "open", refusing(os.open))
    (line,) = store.listed()[1]
    assert path.name in line
    assert "permission denied" in line.lower()
    rows = Shelf(store).since()["rows"]
    mine = [(row["name"], row["state"]) for row in rows if not row["name"].startswith("gallery")]
    assert mine == [(path.name, "damaged")]


def test_the_environment_names_the_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for value, root in ((str(tmp_path), tmp_path), ("", Path("runs"))):
        monkeypatch.setenv("HOPSCOPE_STORE", value)
        assert default_root() == root
    monkeypatch.delenv("HOPSCOPE_STORE")
    assert default_root() == Path("runs")


def test_a_command_names_a_store_that_is_not_the_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOPSCOPE_STORE", str(tmp_path / "runs"))
    for root, also in (("runs", ""), ("my runs", " --store 'my runs'")):
        run = Store(root).create(Experiment())
        assert run.command("resume") == f"hopscope resume {run.name}{also}"
    assert Store().find("gallery/demo").command("show") == "hopscope show gallery/demo"
