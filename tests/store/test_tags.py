"""Words of one's own for runs: they change nothing in a run, and hide none when they are forged."""

import errno
import json
import os

import pytest

from hopscope.configs import Experiment, Retrieval
from hopscope.errors import ConfigError, RunMissing, StoreError, StoreUnwritable
from hopscope.store import Store
from hopscope.store.tags import TAGS, read_tags

NO_TAGS = ("", ".", "..", "a/b", "/tmp", "-x", "a b", "ü", "a\n", "\x1b[31m", "x" * 65, "~", "*")
NAMES = ("retrieval-d3-l12h1-0a1b2c3d4e", "0a1b2c3d4e", "gallery", "gallery-demo")
NONE = "holds no tags"
FORGED = (
    (b"", NONE),
    (b"[]", NONE),
    (b"{", NONE),
    (b"\xff", NONE),
    (b"[" * 100_000, r"holds no tags \(.* recursion limit"),
    (b'{"format": 1, "runs": {"../x": ["a"]}}', NONE),
    (b'{"format": 1, "runs": {"x": ["../a"]}}', "expected up to 64 letters"),
    (b'{"format": 1, "runs": {"x": "a"}}', NONE),
    (b'{"format": 1, "runs": {"x": ["a\\u001b[31m"]}}', "expected up to 64 letters"),
    (b'{"format": 1, "names": {}}', "unknown field"),
    (b'{"format": 2}', "format: Input should be 1, got 2"),
    (b'{"format": 0}', NONE),
    (b" " * (2**22 + 1), "expected at most"),
)


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
    with pytest.raises(RunMissing, match="2 runs in .* are named 'baseline', and rm takes no less"):
        store.remove("baseline")
    assert len(store.names()) == 2


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


def test_the_run_itself_does_not_change_and_its_tags_go_with_it(
    store: Store, two: tuple[str, str]
) -> None:
    one, other = two
    folder = store.find(one)
    before = {path.name: path.read_bytes() for path in folder.path.iterdir()}
    store.tag(one, "baseline")
    store.tag(other, "baseline", "other")
    assert {path.name: path.read_bytes() for path in folder.path.iterdir()} == before
    store.remove(one)
    assert json.loads((store.root / TAGS).read_text())["runs"] == {other: ["baseline", "other"]}
    assert store.create(Experiment()).name == one  # the same recipe anew: it has no tags
    assert store.tags() == {other: ("baseline", "other")}
    store.remove("other")
    assert store.names() == [one]


def test_what_is_no_tag_is_refused(store: Store, two: tuple[str, str]) -> None:
    for tags, text in ((NO_TAGS, "expected up to 64 letters"), (NAMES, "looks like the name of a")):
        for tag in tags:
            with pytest.raises(ConfigError, match=text) as caught:
                store.tag(two[0], "fine", tag)
            assert "\n" not in str(caught.value)
            assert store.tags() == {}, tag
    store.tag(two[0], "baseline")
    for name, text in ((two[0], "has no tag 'x'; it has baseline"), (two[1], "it has none")):
        with pytest.raises(ConfigError, match=text):
            store.untag(name, "x")


def test_forged_tags_are_one_line_and_hide_no_run(store: Store, two: tuple[str, str]) -> None:
    for content, why in FORGED:
        (store.root / TAGS).write_bytes(content)
        with pytest.raises(StoreError, match=why) as caught:
            store.find("baseline")
        assert "\n" not in str(caught.value), content[:40]
        assert TAGS in str(caught.value), content[:40]
        assert store.find(two[0]).name == two[0]
        found, problems = store.listed()
        assert [run.name for run in found] == list(two)
        assert problems == [str(caught.value)], content[:40]
        with pytest.raises(StoreError, match=why):
            store.remove(two[0])
        assert len(store.names()) == 2


def test_a_file_of_tags_that_is_no_file(store: Store, two: tuple[str, str]) -> None:
    path = store.root / TAGS
    for make, remove in (
        (lambda: path.symlink_to("/etc/passwd"), path.unlink),
        (path.mkdir, path.rmdir),
        (lambda: os.mkfifo(path), path.unlink),
    ):
        make()
        with pytest.raises(StoreError, match="restore or remove it; the runs' own names remain"):
            store.find("baseline")
        remove()
    (store.root / "file").write_text("")
    assert read_tags(store.root / "none") == read_tags(store.root / "file") == {}


def test_a_store_that_cannot_be_written_takes_no_tag(
    store: Store, two: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    store.tag(two[0], "kept")
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(StoreUnwritable, match="tags.json: the disk is full"):
            store.tag(two[0], "lost")
    assert store.tags() == {two[0]: ("kept",)}
    assert sorted(path.name for path in store.root.iterdir()) == sorted([".lock", TAGS, *two])
