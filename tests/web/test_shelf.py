"""Runs by id; a poll hears of what changed, and of nothing else."""

import os
import shutil
from pathlib import Path
from unittest.mock import Mock

import pytest
from hostile import KEYS, TEXTS

from hopscope.configs import Experiment
from hopscope.errors import RunDamaged, RunMissing
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


def test_an_idle_look_asks_after_few_runs_and_in_time_after_each(
    store: Store, tiny: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once after what is in training or was asked for; nothing is read that did not change."""
    runs = [store.create(tiny.model_copy(update={"seeds": (seed,)})) for seed in range(12)]
    asked = list[str]()
    signature, listed = module.signature, Mock(wraps=module._listed)
    monkeypatch.setattr(
        module, "signature", lambda *its: asked.append(its[0].name) or signature(*its)
    )
    monkeypatch.setattr(module, "_listed", listed)
    monkeypatch.setattr(module, "IN_TURN", 3)
    monkeypatch.setattr(module, "MOMENT", 60.0)
    shelf = Shelf(store)
    cursor = shelf.since()["cursor"]
    assert listed.call_count == 12
    with runs[0].locked():
        while not any(row["state"] == "in training" for row in shelf.since()["rows"]):
            pass
        shelf.find(id_of(runs[1].name))
        for _ in range(4):
            asked.clear()
            shelf.look()
            assert {runs[0].name, runs[1].name} <= {*asked}
            assert len(asked) <= 5
    for folder in runs[1::5]:  # what was asked for; others in their turn
        folder.commit({"views.json": b"{}"})
    assert [row["name"] for row in shelf.since(cursor)["rows"]].count(runs[1].name) == 1
    for _ in range(4):
        shelf.look()
    changed = {row["name"] for row in shelf.since(cursor)["rows"]}
    assert {each.name for each in runs[1::5]} <= changed
    assert listed.call_count == 12 + 2 + 3
    listed.reset_mock()
    shelf = Shelf(store)
    with pytest.raises(RunMissing):
        shelf.find("0123456789")
    shelf.find(id_of(runs[5].name))
    assert listed.call_count == 1  # it alone


def test_a_store_that_vanishes_is_told_once_and_looked_for(store: Store, tiny: Experiment) -> None:
    name = store.create(tiny).name
    shelf = Shelf(store)
    first = shelf.since()
    assert first["problems"] == []
    assert "problems" not in shelf.since(first["cursor"])
    away = store.root.with_name("away")
    store.root.rename(away)
    gone = shelf.since(first["cursor"])
    assert gone["gone"] == [id_of(name)]
    assert gone["problems"] == [
        f"the store {store.root} cannot be read (No such file or directory): it is looked for again"
    ]
    again = shelf.since(gone["cursor"])
    assert ("problems" in again, again["rows"], again["gone"]) == (False, [], [])
    away.rename(store.root)
    back = shelf.since(again["cursor"])
    assert (back["problems"], [row["name"] for row in back["rows"]]) == ([], [name])
    (store.root / "tags.json").write_text("[")
    (line,) = shelf.since(back["cursor"])["problems"]
    assert "holds no tags" in line


def test_a_second_change_within_one_tick_of_the_file_system_is_seen(
    store: Store, tiny: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SETTLED", 60.0)
    store.create(tiny)
    shelf = Shelf(store)
    cursor, tick = shelf.since()["cursor"], store.root.stat().st_mtime_ns
    second = store.create(tiny.model_copy(update={"seeds": (5,)}))
    os.utime(store.root, ns=(tick, tick))
    assert [row["name"] for row in shelf.since(cursor)["rows"]] == [second.name]


def test_copies_have_ids_of_their_own(
    store: Store, tiny: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few were looked at; one that went away is missed."""
    first, *_ = (store.create(tiny.model_copy(update={"seeds": (seed,)})) for seed in range(4))
    copies = [f"copy-of-{first.name}", f"copy-{id_of(first.name)}", "gallery-demo", "x.y"]
    for name in copies:
        shutil.copytree(first.path, store.root / name)
    shelf = Shelf(store)
    rows = shelf.since()["rows"]
    ids = {row["name"]: row["id"] for row in rows}
    assert len(set(ids.values())) == len(rows) == len(gallery.names()) + 8
    assert (ids[first.name], ids[f"{GALLERY}demo"]) == (id_of(first.name), "gallery-demo")
    shutil.rmtree(store.root / "x.y")
    with pytest.raises(RunMissing, match="any more: it was removed; `hopscope runs` lists"):
        shelf.find(ids["x.y"])
    monkeypatch.setattr(module, "MOMENT", -1.0)
    for name in (first.name, copies[0], f"{GALLERY}demo"):
        assert Views(store).id_of(name) == ids[name]
    with pytest.raises(RunMissing, match="there is no run 'gone' any more: it was removed"):
        Shelf(store).id_of("gone")


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
        assert rows[name]["id"].isalnum()
        with pytest.raises(RunDamaged, match="expected letters, digits, '.', '_', '-': rename it"):
            shelf.folder(rows[name]["id"])
