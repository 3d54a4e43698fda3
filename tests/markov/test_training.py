"""Runs of the n-gram experiment: stages, resume to the bit, and what a trained model is."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from hopscope.configs import Experiment, MarkovExperiment, Model, Retrieval, Training
from hopscope.errors import ConfigError, Diverged, Interrupted, RunMismatch
from hopscope.markov import evaluation, information, train
from hopscope.markov.learner import batches, drawn
from hopscope.markov.model import InductionTransformer, loss
from hopscope.markov.parameters import Parameters
from hopscope.markov.run import MarkovRun
from hopscope.markov.work import checkpoint_epochs, learner, record_epochs
from hopscope.store import Store, sql
from hopscope.training import Run

SMALL = {"chains": 300, "validation_chains": 60, "records": 8}


def experiment(**fields: object) -> MarkovExperiment:
    descent = {**SMALL, "stages": "C,W,a", "epochs": (20, 30, 20), **fields.pop("descent", {})}
    return MarkovExperiment(descent=descent, **fields)


def walked(chosen: MarkovExperiment, seed: int) -> Parameters:
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
def test_training_by_counts_is_training_by_walking(stages: str, tmp_path: Path) -> None:
    epochs = tuple(5 for _ in stages.split(","))
    chosen = experiment(descent={"stages": stages, "epochs": epochs, "chains": 60})
    run = train(chosen, tmp_path)
    for name, value in walked(chosen, 0).named().items():
        np.testing.assert_allclose(run.state(0)[name], value, rtol=1e-9, atol=1e-12)


def test_a_run_records_what_it_says(tmp_path: Path) -> None:
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


def test_a_seed_among_others_is_what_it_is_alone(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("at", [1, 20, 33, 60])
@pytest.mark.parametrize("descent", [{}, {"batch": 70}])
def test_a_stopped_training_ends_as_if_nothing_had_happened(
    at: int, descent: dict[str, object], tmp_path: Path
) -> None:
    chosen = experiment(descent=descent, seeds=(0, 1))
    whole = train(chosen, tmp_path / "whole")
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
@pytest.mark.parametrize("threads", [1, 2])
def test_a_killed_training_ends_as_if_nothing_had_happened(tmp_path: Path, threads: int) -> None:
    code = (
        "import sys; from hopscope.configs import MarkovExperiment; from hopscope.markov "
        "import train; "
        "train(MarkovExperiment.from_json(sys.argv[1]), sys.argv[2], threads=int(sys.argv[3]))"
    )
    chosen = experiment(descent={"epochs": (200, 22_000, 300)})
    whole = train(chosen, tmp_path / "whole", threads=threads)
    arguments = [chosen.canonical_json(), str(tmp_path / "killed"), str(threads)]
    command = [sys.executable, "-c", code, *arguments]
    for _ in range(2):
        process = subprocess.Popen(command)
        while not list((tmp_path / "killed").glob("*/checkpoints/step-0001*")):
            time.sleep(0.005)
            if process.poll() is not None:
                break
        process.kill()
        process.wait()
    resumed = train(chosen, tmp_path / "killed")
    assert files_of(resumed.folder.path) == files_of(whole.folder.path)


def test_batches_visit_every_chain_once() -> None:
    pieces = batches(0, 5, 100, 30)
    assert [len(piece) for piece in pieces] == [30, 30, 30, 10]
    assert sorted(np.concatenate(pieces)) == list(range(100))
    assert (np.concatenate(batches(0, 6, 100, 30)) != np.concatenate(pieces)).any()


def test_a_batch_of_everything_is_full_descent(tmp_path: Path) -> None:
    whole = train(experiment(), tmp_path)
    batched = train(experiment(descent={"batch": 300}), tmp_path)
    for name, value in whole.state(0).items():
        np.testing.assert_allclose(batched.state(0)[name], value, rtol=1e-9)


def test_the_paper_in_short(tmp_path: Path) -> None:
    """Stage I takes the parents, II sharpens their heads, III makes an induction head."""
    chosen = MarkovExperiment(descent={"epochs": (100, 2_000, 300), "chains": 3_000})
    run = train(chosen, tmp_path)
    picked = evaluation.choice(chosen.model, run.course(0).at(-1))
    assert (picked.heads, picked.lags) == ((0, 1), (1, 2))
    assert picked.share > 0.999
    assert min(picked.weights) > 0.93
    before = evaluation.choice(chosen.model, run.course(0).at(0))
    assert max(before.weights) < 0.91
    moments = evaluation.approach(run, 0)
    assert moments[0].distance > 0.2
    assert moments[-1].distance < 0.02
    chains = drawn(chosen, 0, "validation")
    found = evaluation.compare(chosen, evaluation.said(chosen, run.state(0), chains), chains)
    assert found.expected.bayes < found.expected.model < found.expected.gih
    grown = evaluation.growth(run.course(0), 2_100)
    assert grown.straightness > 0.99
    for process, other in evaluation.transfer(run, 0, lengths=(20, 200), alphas=(1.0,), chains=300):
        assert other.distance < 0.05, process
    with pytest.raises(ConfigError, match="make it at least 4"):
        evaluation.transfer(run, 0, lengths=(3,), alphas=())


CHOICES = [
    # parents, degree, first weight of a head at its lag, lags chosen
    ((2,), 2, 3.0, {(2,)}),
    ((1, 3), 2, 3.0, {(1, 3)}),
    # Three blurred copies agree less than two: the triple loses, unless heads copy sharply.
    ((1, 2, 3), 3, 3.0, {(1, 2), (1, 3), (2, 3)}),
    ((1, 2, 3), 3, 8.0, {(1, 2, 3)}),
]


@pytest.mark.parametrize(("parents", "degree", "own", "expected"), CHOICES)
def test_stage_one_chooses_what_is_seen_through_the_heads(
    parents: tuple[int, ...],
    degree: int,
    own: float,
    expected: set[tuple[int, ...]],
    tmp_path: Path,
) -> None:
    chosen = MarkovExperiment(
        process={"parents": parents, "start": "uniform"},
        model={"degree": degree, "own": own},
        descent={"stages": "C", "epochs": (1_000,), "chains": 3_000},
    )
    run = train(chosen, tmp_path)
    assert evaluation.choice(chosen.model, run.course(0).at(-1)).lags in expected
    seen = information.through_heads(chosen.process, chosen.model, 300)
    assert information.winner(seen) in expected
    alone = information.exact(chosen.process, chosen.model, 2_000)
    assert information.winner(alone) == parents


def test_a_full_first_layer_learns_the_same(tmp_path: Path) -> None:
    chosen = MarkovExperiment(
        model={"first": "full", "unit_copies": True},
        descent={"stages": "CWa", "epochs": (400,), "chains": 1_500, "records": 10},
        seeds=(5,),
    )
    run = train(chosen, tmp_path)
    state = run.state(5)
    picked = evaluation.choice(chosen.model, Parameters.of(state))
    assert picked.lags == (1, 2)
    assert picked.share > 0.99
    moments = evaluation.approach(run, 5)
    assert moments[-1].distance < 0.1 < moments[0].distance
    chains = drawn(chosen, 5, "validation")
    module = InductionTransformer(chosen.model, 3, 5)
    module.load_state_dict({name: torch.tensor(value) for name, value in state.items()})
    with torch.no_grad():
        walked_answers = module(torch.from_numpy(chains.tokens[:, :-1].astype(np.int64))).numpy()
    np.testing.assert_allclose(evaluation.said(chosen, state, chains), walked_answers, atol=1e-10)


@pytest.mark.parametrize("batch", [None, 20])
def test_a_full_first_layer_descends_as_the_module_would(batch: int | None) -> None:
    chosen = experiment(model={"first": "full"}, descent={"chains": 40, "batch": batch})
    learning = learner(chosen, 2)
    module = InductionTransformer(chosen.model, 3, 2)
    tokens = torch.from_numpy(drawn(chosen, 2, "train").tokens.astype(np.int64))
    learning.begin("CWa")
    learning.advance(0)
    pieces = [np.arange(40)] if batch is None else batches(2, 0, 40, batch)
    for piece in pieces:
        value = loss(chosen.descent, module(tokens[piece, :-1]), tokens[piece, -1])
        slopes = torch.autograd.grad(value, list(module.parameters()))
        with torch.no_grad():
            for each, slope in zip(module.parameters(), slopes, strict=True):
                each.sub_(slope)
    for name, value in module.state_dict().items():
        np.testing.assert_allclose(learning.state()[name], value.numpy(), atol=1e-12)


def test_what_is_not_a_number_stops_with_the_way_back(tmp_path: Path) -> None:
    chosen = experiment(
        model={"first": "full"}, descent={"stages": "CWa", "epochs": (60,), "lr": 1e6}
    )
    with pytest.raises(Diverged, match=r"not a number after epoch \d+; .*lower descent.lr"):
        train(chosen, tmp_path)


def test_what_does_not_fit_in_memory_is_refused_before_it_is_drawn(tmp_path: Path) -> None:
    huge = MarkovExperiment(descent={"chains": 10**9})
    with pytest.raises(ConfigError, match=r"need about 6,\d+ GiB .* take fewer chains"):
        train(huge, tmp_path)
    assert not list(tmp_path.iterdir())


def test_runs_of_one_kind_are_not_taken_for_the_other(tmp_path: Path) -> None:
    markov = train(experiment(), tmp_path)
    with pytest.raises(RunMismatch, match="expected one of kind facts"):
        _ = Run(markov.folder).experiment
    facts = Experiment(
        task=Retrieval(hops=1, chains=2),
        model=Model(layers=1, heads=1, d_model=8),
        training=Training(steps=1),
    )
    with pytest.raises(RunMismatch, match="expected one of kind ngram"):
        _ = MarkovRun(Store(tmp_path).create(facts)).experiment
