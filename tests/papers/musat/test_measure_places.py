"""What a model knows of facts at other places is measured on the model that has just learned."""

from pathlib import Path

import pytest
import torch

from hopscope.configs import Experiment, Model, Retrieval, Training
from hopscope.papers.musat.measure_places import EXAMPLES, after, losses, place_rows
from hopscope.study import Study, load
from hopscope.tasks import dataset, hop_losses
from hopscope.training import train

EXPERIMENT = Experiment(
    task=Retrieval(hops=1, chains=2, position="pair", base=10, dim=8),
    model=Model(layers=2, heads=1, d_model=32, init="fan-in"),
    training=Training(
        steps=200, batch=32, examples=2**12, lr=4e-3, validate_every=50, checkpoint_every=25,
        validation_examples=64,
    ),
    seeds=(0, 4),
)  # fmt: skip


def test_a_row_is_of_the_checkpoint_after_the_first_hop(tmp_path: Path) -> None:
    run = train(EXPERIMENT, tmp_path)
    for row in place_rows(run):
        (learned,) = row.crossed
        assert learned is not None
        assert row.step is not None
        assert row.step - 25 < learned <= row.step
        assert (row.position, row.base, row.order) == ("pair", 10, "backward")
        assert row.own == losses(Study(run, row.seed, row.step).model, EXPERIMENT.task)
        assert row.own != losses(Study(run, row.seed, 200).model, EXPERIMENT.task)
        assert row.shuffled == row.own  # with one hop there is nothing to be shuffled


def test_of_a_model_that_learned_nothing_nothing_is_measured(tmp_path: Path) -> None:
    short = EXPERIMENT.training.model_copy(update={"steps": 25})
    run = train(EXPERIMENT.model_copy(update={"training": short}), tmp_path)
    assert [(row.step, row.own, row.shuffled) for row in place_rows(run)] == [(None, (), ())] * 2


def test_a_checkpoint_is_not_before_what_it_is_to_show() -> None:
    for learned, step in ((None, None), (40, 50), (50, 50), (51, None)):
        assert after([0, 25, 50], learned) == step


@torch.no_grad()
def test_losses_are_those_of_the_model_on_fresh_examples() -> None:
    study = load("gallery/demo")
    assert isinstance(study.task, Retrieval)
    for order in ("backward", "shuffled"):
        task = study.task.model_copy(update={"order": order})
        batch = dataset(task, 2, EXAMPLES, "validation")
        expected = hop_losses(task, study.model(batch.inputs), batch)
        found = losses(study.model, task)
        assert found == pytest.approx(expected.tolist(), abs=1e-4)
        assert (found[1] < 0.1) == (order == "backward")  # facts are found by their places
