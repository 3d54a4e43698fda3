"""Runs by id; a poll hears of what changed, and of nothing else."""

import os
import shutil
from pathlib import Path

import pytest
from hostile import KEYS, TEXTS

from hopscope.configs import Experiment
from hopscope.errors import RunDamaged, RunMissing, RunTooNew
from hopscope.store import Store, gallery
from hopscope.store.folder import GALLERY
from hopscope.web import shelf as module
from hopscope.web.shelf import Shelf
from hopscope.web.views import Views


def id_of(name: str) -> str:
    return name.rpartition("-")[2]


def test_a_poll_hears_of_what_changed_and_of_nothing_else(store: Store, tiny: Experiment) -> None:
    shelf = Shelf(store)
    first = shelf.since()
    assert [row["id"] for row in first["rows"]] == [f"gallery-{n}" for n in gallery.names()]
    again = shelf.since(first["cursor"])
    assert (again["rows"], again["gone"], again["cursor"]) == ([], [], first["cursor"])
    folder = store.create(tiny)
    made = shelf.since(first["cursor"])
    assert [(row["name"], row["state"]) for row in made["rows"]] == [(folder.name, "stopped")]
    folder.commit({"views.json": b"{}"})
    assert [row["id"] for row in shelf.since(made["cursor"])["rows"]] == [id_of(folder.name)]
    now = shelf.since(made["cursor"])["cursor"]
    assert shelf.since(now)["rows"] == []
    store.tag(folder.name, "mine")
    assert shelf.since(now)["rows"][0]["tags"] == ["mine"]
    with folder.locked():
        assert shelf.since(now)["rows"][0]["state"] == "in training"
    store.remove(folder.name)
    assert shelf.since(now)["gone"] == [id_of(folder.name)]


def test_another_cursor_tells_all_and_a_store_that_is_not_there_has_the_gallery(
    tmp_path: Path,
) -> None:
    for cursor in ("", "x", "1.5", "é.٣", "." * 1000):
        rows = Shelf(Store(tmp_path / "none")).since(cursor)["rows"]
        assert len(rows) == len(gallery.names()), cursor


def test_a_damaged_run_takes_one_line_and_the_others_go_on(store: Store, tiny: Experiment) -> None:
    good, bad, new = (store.create(tiny.model_copy(update={"seeds": (seed,)})) for seed in range(3))
    for folder in (good, bad, new):
        folder.commit({"metrics/losses.parquet": b"whole"}, complete=True)
    (bad.path / "metrics" / "losses.parquet").write_bytes(b"")
    text = (new.path / "manifest.json").read_text()
    (new.path / "manifest.json").write_text(text.replace('"format": 2', '"format": 3'))
    lost = store.root / "lost-0123456789"
    lost.mkdir()
    (lost / "config.json").write_bytes(b"{}")
    shelf = Shelf(store)
    found = shelf.since()
    rows = {row["name"]: row for row in found["rows"]}
    assert rows[good.name]["state"] == "complete"
    assert rows[bad.name]["problem"].startswith(f"{bad.name}/metrics/losses.parquet is damaged")
    assert "this hopscope reads up to 2: upgrade it" in rows[new.name]["problem"]
    assert [line for line in found["problems"] if "lost-0123456789" in line]
    assert shelf.folder(id_of(good.name)).name == good.name
    with pytest.raises(RunTooNew, match="has format 3"):
        shelf.folder(id_of(new.name))
    (bad.path / "manifest.json").write_bytes(b"{")
    with pytest.raises(RunDamaged, match="is not a manifest"):
        shelf.folder(id_of(bad.name))


def test_many_runs_come_in_portions_the_newest_first(
    store: Store, tiny: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [store.create(tiny.model_copy(update={"seeds": (seed,)})).name for seed in range(4)]
    store.tag(names[0], "first")
    monkeypatch.setattr(module, "MOMENT", -1.0)
    shelf = Shelf(store)
    for seen in (1, 2):
        found = shelf.since()
        assert (found["more"], len(found["rows"])) == (True, len(gallery.names()) + seen)
    monkeypatch.setattr(module, "MOMENT", 60.0)
    found = shelf.since("x")
    assert (found["more"], len(found["rows"])) == (False, len(gallery.names()) + 4)
    tags = {row["name"]: row["tags"] for row in found["rows"]}
    assert tags[names[0]] == ["first"]


def test_a_run_has_its_id_among_many(
    store: Store, tiny: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *_ = (store.create(tiny.model_copy(update={"seeds": (seed,)})) for seed in range(4))
    copy = f"copy-of-{first.name}"
    shutil.copytree(first.path, store.root / copy)
    whole = {row["name"]: row["id"] for row in Shelf(store).since()["rows"]}
    monkeypatch.setattr(module, "MOMENT", -1.0)
    for name in (first.name, copy, f"{GALLERY}demo"):
        assert Views(store).id_of(name) == whole[name]
    with pytest.raises(RunMissing, match="there is no run 'gone' any more: it was removed"):
        Shelf(store).id_of("gone")


def test_a_run_that_goes_away_is_missed(store: Store, tiny: Experiment) -> None:
    folder, shelf = store.create(tiny), Shelf(store)
    shelf.find(id_of(folder.name))
    shutil.rmtree(folder.path)
    with pytest.raises(RunMissing, match="any more: it was removed; `hopscope runs` lists"):
        shelf.find(id_of(folder.name))


def test_copies_have_ids_of_their_own(store: Store, tiny: Experiment) -> None:
    folder = store.create(tiny)
    names = [f"copy-{id_of(folder.name)}", "gallery-demo", "é", "x.y"]
    for name in names:
        shutil.copytree(folder.path, store.root / name)
    rows = Shelf(store).since()["rows"]
    ids = {row["name"]: row["id"] for row in rows}
    assert len(set(ids.values())) == len(rows) == len(gallery.names()) + 5
    assert ids[folder.name] == id_of(folder.name)
    assert ids[f"{GALLERY}demo"] == "gallery-demo"
    assert all(id_.isascii() and os.sep not in id_ for id_ in ids.values())


def test_a_name_that_no_command_may_hold_is_damaged(
    store: Store, tiny: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOMENT", 60.0)
    folder = store.create(tiny)
    names = [text for text in (*TEXTS, *KEYS) if "/" not in text and "\0" not in text]
    for name in names:
        shutil.copytree(folder.path, store.root / name)
    shelf = Shelf(store)
    rows = {row["name"]: row for row in shelf.since()["rows"]}
    assert rows[folder.name]["state"] == "stopped"
    for name in names:
        assert (rows[name]["state"], "rename it" in rows[name]["problem"]) == ("damaged", True)
        with pytest.raises(RunDamaged, match="expected letters, digits, '.', '_', '-': rename it"):
            shelf.folder(rows[name]["id"])
