import json
import os
from pathlib import Path

import pytest

from hopscope.configs import Experiment, Retrieval
from hopscope.errors import ConfigError, RunMissing, RunReadOnly, StoreError, StoreUnwritable
from hopscope.store import Store
from hopscope.store.tags import TAGS, check_tag, read_tags


@pytest.fixture
def two(store: Store) -> tuple[str, str]:
    runs = (store.create(Experiment()), store.create(Experiment(task=Retrieval(hops=5))))
    return runs[0].name, runs[1].name


def test_a_run_is_found_by_its_tag(store: Store, two: tuple[str, str]) -> None:
    one, other = two
    assert store.tag(one, "baseline", "paper-1") == ("baseline", "paper-1")
    assert store.tag("baseline", "again") == ("again", "baseline", "paper-1")
    assert store.find("baseline").name == one
    assert store.tags() == {one: ("again", "baseline", "paper-1")}
    assert store.untag(one, "again", "paper-1") == ("baseline",)
    with pytest.raises(RunMissing, match="no run matches 'paper-1'"):
        store.find("paper-1")
    store.tag(other, "baseline")
    with pytest.raises(RunMissing, match=f"2 runs match 'baseline'.*{one}.*{other}"):
        store.find("baseline")
    assert store.find("baseline", beside=one).name == other


def test_a_whole_tag_goes_before_part_of_a_name_and_after_a_whole_one(
    store: Store, two: tuple[str, str]
) -> None:
    one, other = two
    store.tag(other, "retrieval")
    assert store.find("retrieval").name == other
    path = store.root / "mine"
    (store.root / one).rename(path)  # somebody called a folder as a tag is called
    store.tag(other, "yours")
    with pytest.raises(ConfigError, match="'mine' is the name of a run: choose another word"):
        store.tag(other, "mine")
    path.rename(store.root / "yours")
    assert store.find("yours").name == "yours"


def test_the_run_itself_does_not_change(store: Store, two: tuple[str, str]) -> None:
    folder = store.find(two[0])
    before = {path.name: path.read_bytes() for path in folder.path.iterdir()}
    store.tag(two[0], "baseline")
    assert {path.name: path.read_bytes() for path in folder.path.iterdir()} == before
    assert folder.verify() == []
    assert sorted(path.name for path in store.root.iterdir()) == sorted([".lock", TAGS, *two])


def test_tags_go_with_their_run(store: Store, two: tuple[str, str]) -> None:
    one, other = two
    store.tag(one, "baseline")
    store.tag(other, "baseline", "other")
    store.remove(one)
    assert json.loads((store.root / TAGS).read_text())["runs"] == {other: ["baseline", "other"]}
    assert store.create(Experiment()).name == one  # the same recipe anew: it has no tags
    assert store.tags() == {other: ("baseline", "other")}
    store.remove("other")
    assert store.names() == [one]


def test_what_two_runs_share_removes_neither(store: Store, two: tuple[str, str]) -> None:
    for name in two:
        store.tag(name, "both")
    with pytest.raises(RunMissing, match="2 runs in .* are named 'both', and rm takes no less"):
        store.remove("both")
    assert len(store.names()) == 2


@pytest.mark.parametrize(
    "tag", ["", ".", "..", "a/b", "/tmp", "-x", "a b", "ü", "a\n", "\x1b[31m", "x" * 65, "~", "*"]
)
def test_what_is_no_tag(store: Store, two: tuple[str, str], tag: str) -> None:
    with pytest.raises(ConfigError, match="expected up to 64 letters") as caught:
        store.tag(two[0], "fine", tag)
    assert "\n" not in str(caught.value)
    assert store.tags() == {}


@pytest.mark.parametrize(
    "tag", ["retrieval-d3-l12h1-0a1b2c3d4e", "0a1b2c3d4e", "gallery", "gallery-demo"]
)
def test_names_of_runs_are_no_tags(tag: str) -> None:
    with pytest.raises(ConfigError, match=f"the tag '{tag}' looks like the name of a run"):
        check_tag(tag)


def test_a_tag_that_is_not_there_is_named(store: Store, two: tuple[str, str]) -> None:
    store.tag(two[0], "baseline")
    with pytest.raises(ConfigError, match=f"{two[0]} has no tag 'x'; it has baseline"):
        store.untag(two[0], "x")
    with pytest.raises(ConfigError, match="has no tag 'x'; it has none"):
        store.untag(two[1], "x")


def test_models_of_the_gallery_have_names_already(store: Store) -> None:
    with pytest.raises(RunReadOnly, match="gallery copy demo"):
        store.tag("gallery/demo", "mine")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "holds no tags"),
        (b"[]", "holds no tags"),
        (b"{", "holds no tags"),
        (b"\xff", "holds no tags"),
        (b"[" * 100_000, "holds no tags \\(nested too deeply"),
        (b'{"format": 1, "runs": {"../x": ["a"]}}', "holds no tags"),
        (b'{"format": 1, "runs": {"x": ["../a"]}}', "expected up to 64 letters"),
        (b'{"format": 1, "runs": {"x": "a"}}', "holds no tags"),
        (b'{"format": 1, "runs": {"x": ["a\\u001b[31m"]}}', "expected up to 64 letters"),
        (b'{"format": 1, "names": {}}', "unknown field"),
        (b'{"format": 2}', "has format 2; this hopscope reads up to 1: upgrade it"),
        (b'{"format": 0}', "holds no tags"),
        (b" " * (2**22 + 1), "expected at most"),
    ],
)
def test_forged_tags_are_one_line_and_hide_no_run(
    store: Store, two: tuple[str, str], content: bytes, why: str
) -> None:
    (store.root / TAGS).write_bytes(content)
    with pytest.raises(StoreError, match=why) as caught:
        store.find("baseline")
    assert "\n" not in str(caught.value)
    assert TAGS in str(caught.value)
    assert store.find(two[0]).name == two[0]
    found, problems = store.listed()
    assert [run.name for run in found] == list(two)
    assert problems == [str(caught.value)]
    with pytest.raises(StoreError, match=why):
        store.remove(two[0])
    assert len(store.names()) == 2


@pytest.mark.parametrize("odd", ["link", "folder", "pipe"])
def test_a_file_of_tags_that_is_no_file(store: Store, two: tuple[str, str], odd: str) -> None:
    path = store.root / TAGS
    if odd == "link":
        path.symlink_to("/etc/passwd")
    elif odd == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    with pytest.raises(StoreError, match="restore or remove it; the runs' own names remain"):
        store.find("baseline")


def test_a_store_that_cannot_be_written_takes_no_tag(
    store: Store, two: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    store.tag(two[0], "kept")
    monkeypatch.setattr("os.replace", full)
    with pytest.raises(StoreUnwritable, match="tags.json: the disk is full"):
        store.tag(two[0], "lost")
    monkeypatch.undo()
    assert store.tags() == {two[0]: ("kept",)}
    assert sorted(path.name for path in store.root.iterdir()) == sorted([".lock", TAGS, *two])


def test_no_store_has_no_tags(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert read_tags(tmp_path / "none") == {}
    assert read_tags(tmp_path / "file") == {}
