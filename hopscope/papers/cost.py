"""What a training costs in multiplications and additions, whatever machine it runs on."""

from hopscope.configs import Experiment

FORWARD_AND_BACK = 3
"""A step costs its forward pass three times: back, each product needs two more of its size."""
UNITS = ((1e15, "PFLOP"), (1e12, "TFLOP"), (1e9, "GFLOP"))


def training_flop(experiment: Experiment) -> float:
    """The operations of the matrix products in all steps of a training, of every seed.

    Each position is counted in each layer, though the last layer computes only those that are
    read, and attention as if it were not causal: the usual count, to compare with.
    """
    training = experiment.training
    examples = training.steps * training.batch * len(experiment.seeds)
    return float(2 * FORWARD_AND_BACK * examples * _products(experiment))


def _products(experiment: Experiment) -> int:
    """Multiplications of one example, forward."""
    model, ends = experiment.model, experiment.task.interface()
    heads = model.heads * model.head_width
    maps = 4 * model.d_model * heads + 2 * model.d_model * model.mlp_width * model.mlp
    attention = 2 * ends.length * heads
    entrance = 0 if ends.tokens else ends.inputs * model.d_model
    exit_ = ends.read * model.d_model * ends.outputs
    return ends.length * (model.layers * (maps + attention) + entrance) + exit_


def in_flop(flop: float) -> str:
    """Operations in words.

    >>> in_flop(1.26e15), in_flop(158e12)
    ('1.3 PFLOP', '158 TFLOP')
    """
    size, unit = next((each for each in UNITS if flop >= each[0]), UNITS[-1])
    return f"{flop / size:.2g} {unit}" if flop < 100 * size else f"{flop / size:.0f} {unit}"
