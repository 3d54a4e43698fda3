"""Runs of the n-gram experiment, as the rest of hopscope sees them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import hopscope
from hopscope.configs import Experiment, NgramExperiment
from hopscope.errors import ConfigError, RunMismatch
from hopscope.ngram import train
from hopscope.ngram.run import NgramRun
from hopscope.ngram.work import checkpoint_epochs, record_epochs
from hopscope.store import Store, sql
from hopscope.training import Run

Make = Callable[..., NgramExperiment]


def test_a_run_records_what_it_says(experiment: Make, tmp_path: Path) -> None:
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
    rows = sql(Store(tmp_path), "select count(*), max(value) from parameters where name = 'a'").rows
    assert rows[0][0] == 2 * len(steps)


def test_runs_of_one_kind_are_not_taken_for_the_other(store: Store, tiny: Experiment) -> None:
    with pytest.raises(RunMismatch, match="expected one of kind facts"):
        _ = Run(store.create(NgramExperiment())).recipe
    with pytest.raises(RunMismatch, match="expected one of kind ngram"):
        _ = NgramRun(store.create(tiny)).recipe
    with pytest.raises(ConfigError, match="seed is 9; gallery/ngram has the seeds 0"):
        hopscope.load("gallery/ngram").course(9)
