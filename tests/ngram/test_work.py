"""Runs of the n-gram experiment: stages, resume to the bit, and what a trained model is."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from hopscope.configs import NgramExperiment
from hopscope.errors import ConfigError, Diverged, Interrupted
from hopscope.ngram import train
from hopscope.ngram.learner import drawn
from hopscope.ngram.model import InductionTransformer, loss
from hopscope.ngram.parameters import Parameters
from hopscope.store import Store

Make = Callable[..., NgramExperiment]


def walked(chosen: NgramExperiment, seed: int) -> Parameters:
    """The same training by autograd, every position of every chain in every epoch."""
    module = InductionTransformer(chosen.model, chosen.process.alphabet, seed)
    tokens = torch.from_numpy(drawn(chosen, seed, "train").tokens.astype(np.int64))
    names = {"C": "c", "W": "w", "a": "a"}
    for letters, epochs in chosen.descent.plan():
        trained = [getattr(module, names[letter]) for letter in letters]
        for _ in range(epochs):
            value = loss(chosen.descent, module(tokens[:, :-1]), tokens[:, -1])
            slopes = torch.autograd.grad(value, trained)
            with torch.no_grad():
                for each, slope in zip(trained, slopes, strict=True):
                    each.sub_(slope, alpha=chosen.descent.lr)
    return module.parameters_now()


@pytest.mark.parametrize("stages", ["C,W,a", "CW,a", "CWa", "a,C"])
def test_training_by_counts_is_training_by_walking(
    experiment: Make, stages: str, tmp_path: Path
) -> None:
    epochs = tuple(5 for _ in stages.split(","))
    chosen = experiment(descent={"stages": stages, "epochs": epochs, "chains": 60})
    run = train(chosen, tmp_path)
    for name, value in walked(chosen, 0).named().items():
        np.testing.assert_allclose(run.state(0)[name], value, rtol=1e-9, atol=1e-12)


def test_a_seed_among_others_is_what_it_is_alone(experiment: Make, tmp_path: Path) -> None:
    together = train(experiment(seeds=(0, 7)), tmp_path)
    alone = train(experiment(seeds=(7,)), tmp_path)
    for name, value in alone.state(7).items():
        np.testing.assert_array_equal(together.state(7)[name], value)


class Interrupter:
    """Sends a signal when training reaches an epoch."""

    def __init__(self, at: int) -> None:
        self.at = at

    def start(self, folder: object, step: int) -> None:
        return None

    def advance(self, step: int, latest: object) -> None:
        if step >= self.at:
            self.at = 10**9
            os.kill(os.getpid(), signal.SIGTERM)

    def stop(self) -> None:
        return None


@pytest.mark.parametrize("descent", [{}, {"batch": 70}])
def test_a_stopped_training_ends_as_if_nothing_had_happened(
    experiment: Make, descent: dict[str, object], tmp_path: Path
) -> None:
    chosen = experiment(descent=descent, seeds=(0, 1))
    whole = train(chosen, tmp_path / "whole")
    for at in (1, 20, 33, 60):
        with pytest.raises(Interrupted, match=r"stopped by SIGTERM at step \d+"):
            train(chosen, tmp_path / "stopped", watcher=Interrupter(at))
    resumed = train(chosen, tmp_path / "stopped")
    assert files_of(resumed.folder.path) == files_of(whole.folder.path)


def files_of(path: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.name not in ("manifest.json", ".lock")
    }


@pytest.mark.slow
def test_a_killed_training_ends_as_if_nothing_had_happened(
    experiment: Make, tmp_path: Path
) -> None:
    code = (
        "import sys; from hopscope.configs import NgramExperiment; from hopscope.ngram "
        "import train; train(NgramExperiment.from_json(sys.argv[1]), sys.argv[2], threads=2)"
    )
    chosen = experiment(descent={"epochs": (200, 1_000, 300)})
    whole = train(chosen, tmp_path / "whole", threads=2)
    command = [sys.executable, "-c", code, chosen.canonical_json(), str(tmp_path / "killed")]
    process = subprocess.Popen(command)
    while not list(tmp_path.glob("killed/*/checkpoints/step-00000200*")):
        assert process.poll() is None
        time.sleep(0.005)
    process.kill()
    process.wait()
    assert not Store(tmp_path / "killed").find("ngram").manifest.complete
    resumed = train(chosen, tmp_path / "killed")
    assert files_of(resumed.folder.path) == files_of(whole.folder.path)


def test_a_batch_of_everything_is_full_descent(experiment: Make, tmp_path: Path) -> None:
    whole = train(experiment(), tmp_path)
    batched = train(experiment(descent={"batch": 300}), tmp_path)
    for name, value in whole.state(0).items():
        np.testing.assert_allclose(batched.state(0)[name], value, rtol=1e-9)


def test_what_cannot_be_trained_is_said(experiment: Make, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"need about 6,\d+ GiB .* take fewer chains"):
        train(NgramExperiment(descent={"chains": 10**9}), tmp_path)
    assert not list(tmp_path.iterdir())
    wild = {"stages": "CWa", "epochs": (60,), "lr": 1e6}
    with pytest.raises(Diverged, match=r"not a number after epoch \d+; .*lower descent.lr"):
        train(experiment(model={"first": "full"}, descent=wild), tmp_path)
