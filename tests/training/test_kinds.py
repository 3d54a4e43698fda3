"""What is asked of the wrong function, or of nothing that there is."""

import subprocess
import sys
from pathlib import Path

import pytest

from hopscope.configs import Experiment
from hopscope.errors import ConfigError
from hopscope.store import Store
from hopscope.training import train

# In a process of its own: here, types are checked before the functions are called.
CODE = """
import sys
from hopscope import Experiment, MarkovExperiment, Retrieval, train
from hopscope.errors import ConfigError
from hopscope.markov.training import train as train_markov
for one, got in [(train, MarkovExperiment()), (train, Retrieval()), (train, 3),
                 (train_markov, Experiment())]:
    try:
        one(got, sys.argv[1])
    except ConfigError as error:
        print(error)
"""


def test_what_is_no_experiment_is_refused_before_there_is_a_run(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path / "runs")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == [
        "train got MarkovExperiment; expected an Experiment: hopscope.markov.train trains it",
        (
            "train got Retrieval; expected an Experiment: an Experiment has a task, a model and a "
            "training"
        ),
        "train got 3; expected an Experiment",
        (
            "hopscope.markov.train got Experiment; expected a MarkovExperiment (an Experiment is "
            "trained by hopscope.train)"
        ),
    ]
    assert not (tmp_path / "runs").exists()


def test_losses_and_models_that_there_are_not(store: Store, tiny: Experiment) -> None:
    run = train(tiny, store)
    for split in ("test", "Validation"):
        with pytest.raises(ConfigError, match=f"no losses of '{split}'; expected train or valid"):
            run.losses(split)
    with pytest.raises(
        ConfigError, match="step is 6; .* has no checkpoint there, the nearest is 5"
    ):
        run.model_at(6)
