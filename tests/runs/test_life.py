"""A kind of run that nobody but an example knows of: sums of drawn numbers."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sums
import torch
from sums import KIND, Summing, Sums

from hopscope.configs import Experiment
from hopscope.configs.kinds import KINDS, kind_of
from hopscope.errors import ConfigError, RunMismatch, RunWarning, TrainingError
from hopscope.runs import Stop, Work, opened, train
from hopscope.runs.view import PlainRun
from hopscope.store import RunFolder, Store
from hopscope.training import Run


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one entry that a kind needs."""
    monkeypatch.setitem(KINDS, "sums", KIND)


def content(folder: RunFolder) -> dict[str, bytes]:
    return {name: folder.read(name) for name in folder.manifest.files}


def test_it_is_carried_out_kept_and_opened(store: Store) -> None:
    run = train(Sums(), store)
    assert isinstance(Summing(Sums(), run.folder), Work)
    assert run.folder.manifest.complete
    assert run.folder.verify() == []
    assert run.checkpoints == [0, 10, 20, 30, 40]
    steps, losses = opened(store.find("sums")).losses()
    assert steps.tolist() == list(range(41))
    expected = sum(np.random.default_rng([0, step]).random() for step in range(1, 41))
    assert losses[-1, 0, 0] == pytest.approx(expected)


@pytest.mark.parametrize("step", [1, 10, 25, 39])
def test_stopped_anywhere_it_ends_with_the_same_bytes(store: Store, step: int) -> None:
    whole = content(train(Sums(), Store(store.root / "whole")).folder)

    class Stops:
        def start(self, *_: object) -> None: ...

        def advance(self, at: int, _: object) -> None:
            if at == step:
                signal.raise_signal(signal.SIGTERM)

        def stop(self) -> None: ...

    with pytest.raises(KeyboardInterrupt, match=f"stopped by SIGTERM at step {step}"):
        train(Sums(), store, watcher=Stops())
    assert store.find("sums").manifest.step == step
    assert content(train(Sums(), store).folder) == whole


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("CUDA out of memory.\nmore"), MemoryError()]
)
def test_without_memory_it_says_so_and_goes_on_later(
    store: Store, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    whole = content(train(Sums(), Store(store.root / "whole")).folder)
    advance = Summing.advance

    def full(self: Summing) -> np.ndarray | None:
        if self.step == 27:
            raise error
        return advance(self)

    monkeypatch.setattr(Summing, "advance", full)
    with pytest.raises(
        TrainingError, match=r"at step 20 or after it \((CUDA out of )?[mM]emory"
    ) as told:
        train(Sums(), store)
    assert "\n" not in str(told.value)
    monkeypatch.setattr(Summing, "advance", advance)
    assert content(train(Sums(), store).folder) == whole


def test_killed_it_ends_with_the_same_bytes(store: Store) -> None:
    code = (
        "import os, sys\n"
        f"sys.path.insert(0, {str(Path(sums.__file__).parent)!r})\n"
        "import sums as k\n"
        "k.KINDS['sums'] = k.KIND\n"
        "advance = k.Summing.advance\n"
        "k.Summing.advance = lambda self: os.kill(os.getpid(), 9) if self.step == 27 else "
        "advance(self)\n"
        "k.train(k.Sums(), sys.argv[1])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(store.root)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert store.find("sums").manifest.step == 20
    whole = content(train(Sums(), Store(store.root / "whole")).folder)
    assert content(train(Sums(), store).folder) == whole


def test_without_what_was_made_of_it_it_goes_on_and_says_so(store: Store) -> None:
    stop = Stop()
    stop.ask("somebody")
    with pytest.raises(KeyboardInterrupt):
        train(Sums(), store, stop=stop)
    folder = store.find("sums")
    with folder.locked():
        folder.commit({"views.json": b"{}"})
    (folder.path / "views.json").write_text("[]")
    with pytest.warns(RunWarning, match=r"views.json is damaged .* or make it again"):
        assert train(Sums(), store).folder.manifest.complete


def test_it_is_listed_and_queried(store: Store) -> None:
    name = train(Sums(), store).name
    assert [(each.name, each.status) for each in store.listed()[0]] == [(name, "complete")]
    query = "select task, steps, max(loss) > 10 from runs join metrics on run = name group by all"
    assert store.sql(query).rows() == [("sums", 40, True)]


def test_a_run_of_another_kind_is_refused(store: Store) -> None:
    folder = train(Sums(), store).folder
    with pytest.raises(RunMismatch, match="is a run of kind sums, expected one of kind facts"):
        folder.recipe_as(Experiment)
    with pytest.raises(ConfigError, match="got 3; expected a recipe of a run: Experiment"):
        kind_of(3)


def test_a_plain_view_shows_what_the_kind_s_own_shows(store: Store, tiny: Experiment) -> None:
    own: Run = train(tiny, store)
    plain = PlainRun(own.folder)
    assert (plain.name, plain.recipe, plain.checkpoints) == (own.name, own.recipe, own.checkpoints)
    for split in ("train", "validation"):
        for mine, its in zip(plain.losses(split), own.losses(split), strict=True):
            assert mine.tolist() == its.tolist()
