"""Draw the examples of tasks, as batches with a role for every position::

    sampler = sampler_of(Retrieval(hops=3))
    batch = examples(sampler, seed=0, index=torch.arange(8))

Example i is a pure function of task, seed, split and i.
"""

from hopscope.tasks.batch import Batch, Roles, partners
from hopscope.tasks.drawing import (
    askers,
    dataset,
    example_arrays,
    examples,
    rendered,
    symbols,
)
from hopscope.tasks.loss import total
from hopscope.tasks.order import visited
from hopscope.tasks.rendering import Prediction, QueryPosition, RenderedExample
from hopscope.tasks.samplers import Sampler, answer_losses, hop_losses, question_losses, sampler_of

__all__ = [
    "Batch",
    "Prediction",
    "QueryPosition",
    "RenderedExample",
    "Roles",
    "Sampler",
    "answer_losses",
    "askers",
    "dataset",
    "example_arrays",
    "examples",
    "hop_losses",
    "partners",
    "question_losses",
    "rendered",
    "sampler_of",
    "symbols",
    "total",
    "visited",
]
