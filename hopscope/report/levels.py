"""The loss of an answer that knows nothing: the line that every loss is held against."""

import math

from hopscope.configs import Experiment, MarkovExperiment, Recipe


def guessing(recipe: Recipe) -> float | None:
    """Of facts, the best answer that ignores how they connect; of chains, an even one.

    A benchmark has no loss, and so no such line.
    """
    if isinstance(recipe, MarkovExperiment):
        return math.log(recipe.process.alphabet)
    return recipe.task.guess() if isinstance(recipe, Experiment) else None
