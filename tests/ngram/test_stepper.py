"""Runs of the n-gram experiment: their records, resume to the bit, and refusals."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from calling import watcher
from stopping import content

from hopscope.configs import Descent, NgramExperiment
from hopscope.errors import ConfigError, Diverged, Interrupted
from hopscope.ngram import train
from hopscope.ngram.stepper import checkpoint_epochs, record_epochs
from hopscope.store import Store

Make = Callable[..., NgramExperiment]


def test_a_run_records_its_losses_and_parameters(experiment: Make, tmp_path: Path) -> None:
    chosen = experiment(seeds=(3, 1))
    run = train(chosen, tmp_path)
    assert run.folder.verify() == []
    assert run.folder.manifest.complete
    steps, losses = run.losses("validation")
    assert steps.tolist() == record_epochs(chosen.descent)
    assert losses.shape == (len(steps), 2, 1)
    assert run.checkpoints == checkpoint_epochs(chosen.descent) == [0, 20, 50, 70]
    for seed in (3, 1):
        course = run.course(seed)
        assert course.epochs.tolist() == steps.tolist()
        last = course.at(-1)
        for name, value in run.state(seed).items():
            np.testing.assert_array_equal(value, last.named()[name])
        stage_w = (course.epochs >= 20) & (course.epochs <= 50)
        assert np.ptp(course.c[stage_w], axis=0).max() == 0
        assert np.ptp(course.a[course.epochs <= 50]) == 0
        assert np.ptp(course.w[stage_w], axis=0).max() > 0
    rows = (
        Store(tmp_path).sql("select count(*), max(value) from parameters where name = 'a'").rows()
    )
    assert rows[0][0] == 2 * len(steps)


def test_records_and_checkpoints_are_planned_stage_by_stage() -> None:
    descent = Descent(stages="CW,a", epochs=(20_001, 100), records=8)
    even = [0, 5_000, 10_000, 15_001, 20_001, 20_026, 20_051, 20_076, 20_101]
    early = [1, 27, 737, 20_002, 20_006, 20_023]
    assert record_epochs(descent) == sorted(even + early)
    assert record_epochs(descent.replace(records=2**31 - 1)) == [*range(20_102)]
    assert checkpoint_epochs(descent) == [0, 10_000, 20_000, 20_001, 20_101]


def test_a_seed_among_others_is_what_it_is_alone(experiment: Make, tmp_path: Path) -> None:
    together = train(experiment(seeds=(0, 7)), tmp_path)
    alone = train(experiment(seeds=(7,)), tmp_path)
    for name, value in alone.state(7).items():
        np.testing.assert_array_equal(together.state(7)[name], value)


def ending(at: int, killed: bool) -> Any:
    """A watcher that ends a training at an epoch: by a signal, or at once, without a commit."""
    sent: list[int] = []

    def advance(step: int, _: object) -> None:
        if step >= at and killed:
            raise KeyboardInterrupt
        if step >= at and not sent:
            sent.append(step)
            os.kill(os.getpid(), signal.SIGTERM)

    return watcher(advance=advance)


@pytest.mark.parametrize("descent", [{}, {"batch": 40}])
def test_a_training_that_was_ended_goes_on_to_the_same_bytes(
    experiment: Make, descent: dict[str, object], tmp_path: Path
) -> None:
    chosen = experiment(descent=descent, seeds=(0, 1))
    whole = train(chosen, tmp_path / "whole")
    for at in (1, 20, 33, 60):
        for killed in (True, False):
            error, line = (KeyboardInterrupt, None) if killed else (Interrupted, "at epoch ")
            with pytest.raises(error, match=line):
                train(chosen, tmp_path / "ended", watcher=ending(at, killed))
    resumed = train(chosen, tmp_path / "ended")
    assert resumed.folder.verify() == []
    assert content(resumed.folder) == content(whole.folder)


def test_what_cannot_be_trained_is_said(experiment: Make, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"need about 6,\d+ GiB .* take fewer chains"):
        train(NgramExperiment(descent={"chains": 10**9}), tmp_path)
    assert not list(tmp_path.iterdir())
    wild = {"stages": "CWa", "epochs": (60,), "lr": 1e6}
    with pytest.raises(Diverged, match=r"not a number after epoch \d+; .*lower descent.lr"):
        train(experiment(model={"first": "full"}, descent=wild), tmp_path)
