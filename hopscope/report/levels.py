"""The loss of an answer that knows nothing: the line that every loss is held against; and what each
column of losses is of.
"""

import math

from hopscope.configs import Experiment, MarkovExperiment, Recipe, VectorTask, guessing_level


def guessing(recipe: Recipe) -> float | None:
    """Of facts, the best answer that ignores how they connect; of chains, an even one.

    A benchmark has no loss, and so no such line.
    """
    if isinstance(recipe, MarkovExperiment):
        return math.log(recipe.process.alphabet)
    return guessing_level(recipe.task) if isinstance(recipe, Experiment) else None


def hop_numbers(experiment: Experiment, count: int) -> list[int]:
    """Which hop each column of losses is of; without curriculum there is the last hop's alone."""
    task = experiment.task
    if task.curriculum:
        return list(range(1, count + 1))
    last = len(task.graph().facts) if isinstance(task, VectorTask) else task.hops
    return [last] * count
