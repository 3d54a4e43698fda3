"""Models that come from elsewhere, the gallery or a hub, and runs that go there or to trackers."""

from pathlib import Path
from typing import ClassVar

import pytest
from calling import Patch, Said, Say
from stopping import begun

from hopscope.circuits import Circuit
from hopscope.cli import sharing
from hopscope.cli.main import run as command
from hopscope.configs import Experiment, KHop, Model, Training
from hopscope.errors import RunReadOnly, SharingError
from hopscope.store import RunFolder, Store

KHOP = Experiment(
    task=KHop(hops=1, length=6, alphabet=3),
    model=Model(layers=1, heads=1, d_model=8),
    training=Training(steps=4, batch=2, examples=4, checkpoint_every=2, validate_every=2),
    seeds=(0, 1),
)


@pytest.fixture
def half(root: Path) -> RunFolder:
    """A fleet that was stopped after its first step."""
    return begun(KHOP, Store())


def test_a_run_goes_to_tensorboard(root: Path, hopscope: Say) -> None:
    code, out, _ = hopscope("export", "gallery/demo", "--to", "tensorboard")
    assert code == 0
    (file,) = root.rglob("*tfevents*")
    place = file.parent.relative_to(root)
    assert out == f"tensorboard: {place.name}: new numbers at 2,501 steps, {place}\n"
    assert place.parent == Path("exports/tensorboard")


def test_an_unfinished_run_is_exported_as_it_is(half: RunFolder, hopscope: Say, root: Path) -> None:
    code, out, _ = hopscope("export", "khop", "--to", "transformers")
    assert code == 0
    folder = root / "exports" / f"{half.name}-seed-0-transformers"
    assert "after step 1: exports/" in out
    assert {path.name for path in folder.iterdir()} >= {"config.json", "model.safetensors"}
    code, _, err = hopscope("export", "khop", "--to", "transformers")
    assert code == 2
    assert "is not empty: choose another folder, or remove it" in err


def test_ctrl_c_ends_the_following(half: RunFolder, hopscope: Say, monkeypatch: Patch) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sharing.time, "sleep", interrupted)
    code, out, err = hopscope("export", "khop", "--to", "tensorboard", "--follow", "--seed", "1")
    assert code == 130
    assert out.count("-seed-1: new numbers at 2 steps") == out.count("new numbers") == 1
    assert err.splitlines() == [
        f"{half.name} is not being trained at this moment: waiting (Ctrl-C ends it)",
        "hopscope: interrupted",
    ]


class Shelf:
    """A hub that is a dictionary of runs; anything else there is a language model."""

    runs: ClassVar[dict[str, RunFolder]] = {}

    def is_run(self, place: str) -> bool:
        return place in self.runs

    def push(self, folder: RunFolder, place: str, licence: str, private: bool) -> str:
        self.runs[place] = folder
        return f"https://hub.example/{place} ({licence}, {private})"

    def pull(self, place: str, store: Store) -> RunFolder:
        return store.copy(self.runs[place], "pulled")


def test_a_run_goes_to_a_hub_and_comes_back(root: Path, hopscope: Say, monkeypatch: Patch) -> None:
    for module in ("sharing", "lm"):
        monkeypatch.setattr(f"hopscope.cli.{module}.Hub", Shelf)
    monkeypatch.setattr("hopscope.lm.known._fetch_from_hub", lambda name, folder: folder.mkdir())
    monkeypatch.setenv("HOPSCOPE_CACHE", str(root / "cache"))
    code, out, _ = hopscope("push", "gallery/demo", "me/demo", "--license", "mit")
    assert code == 0
    assert out.endswith("files and a card, at https://hub.example/me/demo (mit, False)\n")
    assert "`hopscope pull me/demo` fetches it" in hopscope("lm", "pull", "me/demo")[2]
    assert hopscope("pull", "me/demo")[1] == (
        f"pulled: from me/demo, in {root / 'runs' / 'pulled'}\n"
    )
    assert "as committed" in hopscope("verify", "pulled")[1]
    code, out, _ = hopscope("lm", "pull", "me/language")
    assert (code, out) == (0, f"me/language: {root / 'cache/models/me--language'}\n")

    def unreachable(*_: str) -> bool:
        raise SharingError("no network")

    monkeypatch.setattr(Shelf, "is_run", unreachable)  # fetching says so, and what to do
    assert hopscope("lm", "pull", "me/other")[0] == 0


@pytest.mark.slow
def test_what_reads_needs_no_store_and_writes_nothing_there(root: Path, said: Said) -> None:
    assert "files are as committed" in said("verify", "gallery/transformer-a")
    said("attention", "gallery/transformer-a", "--examples", "8", "--figure", "a.svg")
    assert (root / "a.svg").stat().st_size > 1000
    assert "the model" in said("ablate", "gallery/planted", "--head", "0.0=uniform")
    story = said("emergence", "gallery/demo", "--examples", "8")
    assert "emerged at step" in story
    said("show", "gallery/ngram", "--figure", "n.svg")
    names = {"a.svg", "n.svg", "n-heads.svg", "n-approach.svg", "n-transfer.svg"}
    assert {path.name for path in root.iterdir()} == names


def test_show_says_what_was_trained_and_what_was_not(root: Path, said: Said) -> None:
    trained, by_hand = (said("show", f"gallery/{name}") for name in ("demo", "planted"))
    assert "rounded to float16" in trained
    assert "written by hand, not trained" in by_hand
    for words in ("trained in", "training.", "final loss"):
        assert (words in trained, words in by_hand) == (True, False), words
    weights = "weights are those of step 22,500 of 24,000"
    assert weights in said("show", "gallery/transformer-b")
    assert not any(words in trained for words in ("weights are", "last commit"))
    assert "stage" not in said("show", "gallery/ngram").splitlines()[0]


def test_what_writes_leaves_it_and_says_how_to_get_a_copy(root: Path, said: Said) -> None:
    line = "gallery/demo is read-only, as it comes with hopscope: `hopscope gallery --copy demo`"
    for word in ("resume", "rm"):
        with pytest.raises(RunReadOnly, match=line):
            command((word, "gallery/demo"))
    assert list(root.iterdir()) == []
    said("circuit", "gallery/planted", *"--examples 16 --fresh 16 --again --save mine.json".split())
    assert Circuit.load(root / "mine.json").paths


def test_a_copy_is_an_ordinary_run(root: Path, said: Said) -> None:
    out = said("gallery", "--copy", "planted", "--store", "mine")
    assert out == "gallery-planted: a copy of gallery/planted, in mine/gallery-planted\n"
    found = said("circuit", "planted", "--store", "mine")
    assert "value 1 → query" in found
    said("gallery", "--copy", "gallery/ngram", "--store", "mine")
    counted = said("sql", "select distinct run from metrics", "--store", "mine", "--csv")
    assert counted.split() == ["run", "gallery-ngram"]
    said("rm", "gallery-planted", "--yes", "--store", "mine")
    assert Store("mine").names() == ["gallery-ngram"]
