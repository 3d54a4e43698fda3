"""Follow what positions hold through the checkpoints of a run."""

import numpy as np

from hopscope.circuits.exam import Questions
from hopscope.circuits.tracking import History, model_of, steps_of
from hopscope.errors import CircuitError
from hopscope.tracing.contents_story import ContentsStory
from hopscope.tracing.reading import contents

EXAMPLES = 256
"""Examples on which, at each checkpoint, maps to symbols are fitted."""


def contents_story(
    history: History,
    task: Questions,
    member: int | None = None,
    examples: int = EXAMPLES,
    seed: int = 0,
) -> ContentsStory:
    """What every role held after every layer, at every checkpoint (of a fleet: of a member)."""
    steps, found = steps_of(history), []
    for step in steps:
        try:
            model = model_of(history, step, member)
            found.append(contents(model, task, examples, seed, heads=False))
        except CircuitError as error:
            raise CircuitError(f"at step {step}: {error}") from error
    first = found[0]
    own, losses = np.stack([each.stream.own for each in found]), np.array([c.loss for c in found])
    return ContentsStory(first.roles, first.symbols, tuple(steps), own, losses, first.guess)
