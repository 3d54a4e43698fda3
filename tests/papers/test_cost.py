"""What trainings cost, against a count of every product."""

import pytest

from hopscope.configs import Experiment, Model, Retrieval, Training
from hopscope.papers.cost import in_flop, training_flop


def counted(experiment: Experiment) -> float:
    """Every product of one example forward, map by map, written out."""
    model, ends = experiment.model, experiment.task.interface()
    width, heads, length = model.d_model, model.heads * model.head_width, ends.length
    products = length * ends.inputs * width + ends.read * width * ends.outputs
    for _ in range(model.layers):
        products += (
            3 * length * width * heads + length * heads * width
        )  # queries, keys, values; out
        products += length * length * heads + length * length * heads  # scores; what they mix
        if model.mlp:
            products += length * width * model.mlp_width + length * model.mlp_width * width
    training = experiment.training
    examples = training.steps * training.batch * len(experiment.seeds)
    return 6.0 * products * examples


@pytest.mark.parametrize("mlp", [True, False])
@pytest.mark.parametrize("seeds", [(0,), (1, 2, 5)])
def test_the_count_is_that_of_every_product(mlp: bool, seeds: tuple[int, ...]) -> None:
    experiment = Experiment(
        task=Retrieval(hops=2, chains=3),
        model=Model(layers=3, heads=2, d_model=16, d_head=5, mlp=mlp),
        training=Training(steps=7, batch=4),
        seeds=seeds,
    )
    assert training_flop(experiment) == counted(experiment)


def test_operations_are_told_in_a_unit_that_suits() -> None:
    assert [in_flop(flop) for flop in (3e6, 2.5e9, 9.96e12, 1e14, 81e15)] == [
        "0.003 GFLOP", "2.5 GFLOP", "10 TFLOP", "100 TFLOP", "81 PFLOP",
    ]  # fmt: skip
