"""`hopscope export`, and runs on a hub, as a user calls them."""

from pathlib import Path
from typing import ClassVar

import pytest
from reproducing import Say

from hopscope.cli import sharing
from hopscope.configs import Experiment, KHop, Model, Training
from hopscope.errors import Interrupted
from hopscope.runs import Stop
from hopscope.store import RunFolder, Store
from hopscope.training import train

KHOP = Experiment(
    task=KHop(hops=1, length=6, alphabet=3),
    model=Model(layers=1, heads=1, d_model=8),
    training=Training(steps=4, batch=2, examples=4, checkpoint_every=2, validate_every=2),
    seeds=(0, 1),
)


@pytest.fixture
def half(root: Path) -> RunFolder:
    """A fleet that was stopped after its first step."""
    stop = Stop()
    stop.ask("the test")
    with pytest.raises(Interrupted):
        train(KHOP, root / "runs", stop=stop)
    return Store(root / "runs").find("khop")


def test_a_run_goes_to_tensorboard(root: Path, hopscope: Say) -> None:
    code, out, _ = hopscope("export", "gallery/demo")
    assert code == 0
    (file,) = root.rglob("*tfevents*")
    place = file.parent.relative_to(root)
    assert out == f"tensorboard: {place.name}: new numbers at 2,501 steps, {place}\n"
    assert place.parent == Path("exports/tensorboard")


def test_one_model_of_a_fleet_goes_alone(half: RunFolder, hopscope: Say) -> None:
    assert "-seed-1: new numbers at 2 steps" in hopscope("export", "khop", "--seed", "1")[1]


def test_an_unfinished_run_is_exported_as_it_is(half: RunFolder, hopscope: Say, root: Path) -> None:
    code, out, _ = hopscope("export", "khop", "--format", "transformers")
    assert code == 0
    folder = root / "exports" / f"{half.name}-seed-0-transformers"
    assert "after step 1: exports/" in out
    assert {path.name for path in folder.iterdir()} >= {"config.json", "model.safetensors"}
    code, _, err = hopscope("export", "khop", "--format", "transformers")
    assert code == 2
    assert "is not empty: choose another folder, or remove it" in err


def test_ctrl_c_ends_the_following(
    half: RunFolder, hopscope: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sharing.time, "sleep", interrupted)
    code, out, err = hopscope("export", "khop", "--follow", "--out", "logs")
    assert code == 130
    assert out.count("new numbers at 2 steps") == 2
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


def test_a_run_goes_to_a_hub_and_comes_back(
    root: Path, hopscope: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hopscope.sharing.hub.Hub", Shelf)
    monkeypatch.setattr("hopscope.llm.models.hub.fetch", lambda name, folder: folder.mkdir())
    monkeypatch.setenv("HOPSCOPE_CACHE", str(root / "cache"))
    code, out, _ = hopscope("models", "push", "gallery/demo", "me/demo", "--license", "mit")
    assert code == 0
    assert out.endswith("files and a card, at https://hub.example/me/demo (mit, False)\n")
    assert hopscope("models", "pull", "me/demo")[1] == (
        f"pulled: from me/demo, in {root / 'runs' / 'pulled'}\n"
    )
    assert "as committed" in hopscope("verify", "pulled")[1]
    code, out, _ = hopscope("models", "pull", "me/language")
    assert (code, out) == (0, f"me/language: {root / 'cache/models/me--language'}\n")
