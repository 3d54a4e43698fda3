"""Models learn on from where they knew the first hop, with the weights that they had there."""

import numpy as np
import pytest
import torch
from torch import Tensor

from hopscope.configs import Experiment, Model, Retrieval, Training
from hopscope.milestones import learned, learned_below
from hopscope.papers.musat.measure_changed import (
    CHECK_EVERY,
    STEPS,
    changed_rows,
    first_two,
    start_again,
)
from hopscope.papers.musat.measure_places import losses
from hopscope.study import Study, load
from hopscope.training import Run, train
from hopscope.training.learner import Learner

EXPERIMENT = Experiment(
    task=Retrieval(hops=2, chains=2, position="pair", base=10, dim=8),
    model=Model(layers=3, heads=2, d_model=32, init="fan-in"),
    training=Training(
        steps=400, batch=32, examples=2**12, lr=4e-3, schedule="cosine", warmup=20,
        validate_every=50, checkpoint_every=25, validation_examples=64, precision="float32",
    ),
    seeds=(0, 4),
)  # fmt: skip


def shorter(steps: int) -> Experiment:
    training = EXPERIMENT.training.model_copy(update={"steps": steps})
    return EXPERIMENT.model_copy(update={"training": training})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(shorter(50), tmp_path_factory.mktemp("runs"))


def test_a_model_learns_on_in_both_orders_from_where_it_knew_the_first_hop() -> None:
    run = load("gallery/demo").run
    ordered, shuffled = changed_rows(run, CHECK_EVERY)
    ((first, _),) = run.learned()
    assert first == 404
    model = load("gallery/demo", step=500).model
    for row, order in ((ordered, "backward"), (shuffled, "shuffled")):
        assert (row.changed, row.order, row.position, row.base) == (order, "backward", "pair", 10)
        assert (row.seed, row.step, row.steps) == (0, 500, CHECK_EVERY)
        assert row.precision == run.folder.manifest.precision == "bf16"
        expected = losses(model, run.recipe.task.ordered(row.changed))  # type: ignore[arg-type]
        assert row.start == pytest.approx(expected, abs=0.1)  # on other fresh examples
        assert row.second is None
    assert ordered.start[0] < 0.2 < 0.6 < shuffled.start[0]
    assert ordered.first == 10  # it knew it, and the rule takes the mean of ten steps
    assert shuffled.first is None or shuffled.first > 10


def test_of_models_that_know_nothing_there_are_no_rows(run: Run) -> None:
    assert changed_rows(run) == []


def learner(seeds: tuple[int, ...]) -> Learner:
    recipe = EXPERIMENT.model_copy(update={"seeds": seeds})
    return Learner(recipe, torch.device("cpu"), "float32")


def weights(run: Run, seed: int, step: int) -> dict[str, Tensor]:
    return Study(run, seed, step).model.state_dict()


def test_a_fleet_learns_on_as_each_of_its_models_alone(run: Run) -> None:
    fleet, alone = learner((0, 4)), learner((4,))
    start_again(fleet, [weights(run, 0, 50), weights(run, 4, 25)])
    start_again(alone, [weights(run, 4, 25)])
    for _ in range(3):
        torch.testing.assert_close(fleet.advance()[1:], alone.advance(), atol=1e-4, rtol=1e-3)


def test_it_begins_as_a_new_training_of_these_weights(run: Run) -> None:
    """After other steps: nothing of them is left in the optimiser."""
    used, new = learner((0,)), learner((0,))
    for _ in range(3):
        used.advance()
    new.weights.load(weights(run, 0, 50))
    start_again(used, [weights(run, 0, 50)])
    for _ in range(3):
        assert torch.equal(used.advance(), new.advance())


@pytest.mark.slow
def test_hops_are_learned_by_the_same_rule_as_in_a_training() -> None:
    found = learner((0, 4))
    when = first_two(found, STEPS)
    again = learner((0, 4))
    train_losses, validation = [], []
    for step in range(1, found.step + 1):
        train_losses.append(again.advance().numpy())
        if step % CHECK_EVERY == 0:
            validation.append(again.validate().numpy())
    level = learned_below(EXPERIMENT.guess)
    taken = np.arange(1, found.step + 1)
    for member in range(2):
        own, checked = (np.stack(each)[:, member] for each in (train_losses, validation))
        assert when[member] == learned(taken, own, checked, level)
    assert found.step == STEPS or all(hop is not None for hops in when for hop in hops)
