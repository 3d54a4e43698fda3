"""Tags change nothing in a run, and a forged file of tags hides no run."""

import json
import os

import pytest

from hopscope.configs import Experiment, Retrieval
from hopscope.errors import ConfigError, RunMissing, StoreError
from hopscope.store import Store
from hopscope.store.tags import TAGS

NO_TAGS = ("", "..", "a/b", "-x", "a b", "ü", "a\n", "\x1b[31m", "x" * 65, "*")
RUN_NAMES = ("retrieval-d3-l12h1-0a1b2c3d4e", "0a1b2c3d4e", "gallery", "gallery-demo")
FORGED = (
    b"", b"[]", b"\xff", b"[" * 100_000, b'{"format": 2}', b'{"format": 1, "names": {}}',
    b'{"format": 1, "runs": {"x": ["../a"]}}', b'{"format": 1, "runs": {"x": "a"}}',
    b'{"format": 1, "runs": {"x": ["a\\u001b[31m"]}}', b" " * (2**22 + 1),
)  # fmt: skip


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
    with pytest.raises(
        RunMissing, match="2 runs in .* are named 'baseline'; rm needs a whole name"
    ):
        store.remove("baseline")
    assert len(store.names()) == 2


def test_a_tag_goes_before_part_of_a_name_and_after_a_whole_one(
    store: Store, two: tuple[str, str]
) -> None:
    one, other = two
    store.tag(other, "retrieval", "yours")
    assert store.find("retrieval").name == other
    (store.root / one).rename(store.root / "yours")
    assert store.find("yours").name == "yours"
    with pytest.raises(ConfigError, match="'yours' is the name of a run: choose another word"):
        store.tag(other, "yours")


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
    store.remove("other")
    assert store.names() == []


def test_other_words_are_refused(store: Store, two: tuple[str, str]) -> None:
    for tags, text in ((NO_TAGS, "expected up to 64 letters"), (RUN_NAMES, "looks like the name")):
        for tag in tags:
            with pytest.raises(ConfigError, match=text) as caught:
                store.tag(two[0], "fine", tag)
            assert "\n" not in str(caught.value)
    assert store.tags() == {}
    with pytest.raises(ConfigError, match="has no tag 'x'; it has none"):
        store.untag(two[0], "x")


def test_a_forged_file_is_one_line_and_hides_no_run(store: Store, two: tuple[str, str]) -> None:
    path = store.root / TAGS
    for content in (*FORGED, None):
        path.unlink(missing_ok=True)
        path.symlink_to("/etc/passwd") if content is None else path.write_bytes(content)
        with pytest.raises(StoreError, match="tags.json holds no tags") as caught:
            store.find("baseline")
        assert "\n" not in str(caught.value)
        assert store.find(two[0]).name == two[0]
        found, problems = store.listed()
        assert [run.name for run in found] == list(two)
        assert problems == [str(caught.value)]
        assert store.sql("from runs").answer().problems == tuple(problems)
        with pytest.raises(StoreError, match="holds no tags"):
            store.remove(two[0])
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(StoreError, match="holds no tags"):
        store.find("baseline")
