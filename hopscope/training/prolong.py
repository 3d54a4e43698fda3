"""Go on where a shorter training ended, instead of computing its steps again.

The state after a step depends on the steps before it and not on how many will follow. So a run that
begins as a copy of a shorter one ends with the bytes that it has if trained from its first step.
"""

import numpy as np

from hopscope.configs import Experiment, Recipe
from hopscope.errors import RunMismatch
from hopscope.store import RunFolder, Store
from hopscope.store.checkpoints import OPTIMISERS, checkpoint_name
from hopscope.store.metrics import loss_rows, losses, losses_file
from hopscope.store.tables import METRICS

FREE = {
    f"training.{name}" for name in ("steps", "checkpoint_every", "checkpoint_at", "validate_every")
}
"""What two trainings may differ in that are the same as far as both go."""


def prolong(shorter: RunFolder, experiment: Experiment, store: Store) -> RunFolder:
    """A run of the experiment that is as far as the shorter one; `train` goes on with it."""
    reached = shorter.manifest.step
    if reason := _obstacle(experiment, shorter.recipe, reached):
        raise RunMismatch(f"{shorter.name} {reason}")
    planned = [step for step in experiment.training.checkpoint_steps() if step <= reached]
    metrics = losses_file(_losses(shorter, experiment))
    states = {
        name: shorter.read(name)
        for name in (*map(checkpoint_name, {*planned, reached}), *shorter.files(OPTIMISERS))
    }
    folder = store.create(experiment)
    with folder.locked():
        if folder.files("checkpoints/"):
            raise RunMismatch(
                f"{folder.name} has begun already (step {folder.manifest.step:,}): `hopscope "
                f"resume {folder.name}`, or `hopscope rm {folder.name}` first"
            )
        folder.commit(
            {METRICS.part_name(0, reached): metrics, **states},
            step=reached, precision=shorter.manifest.precision, seconds=shorter.manifest.seconds,
            computed=shorter.manifest.computed,
        )  # fmt: skip
    return folder


def goes_on(longer: Experiment, shorter: Experiment) -> bool:
    """Can a training begin with a complete run of a shorter one?"""
    return _obstacle(longer, shorter, shorter.steps) is None


def _obstacle(longer: Experiment, shorter: Recipe, reached: int) -> str | None:
    """Why a training cannot go on from the shorter one after so many steps; None: it can."""
    its, ours = shorter.named(), longer.named()
    for name in sorted({*its, *ours} - FREE):
        if its.get(name) != ours.get(name):
            return f"is another training: its {name} is {its.get(name)}, expected {ours.get(name)}"
    if not isinstance(shorter, Experiment) or not 0 < reached < longer.steps:
        return f"is at step {reached:,}: there is nothing to go on from to {longer.steps:,} steps"
    known, wanted = shorter.training, longer.training
    if any(known.rate(step) != wanted.rate(step) for step in range(reached)):
        return (
            f"cannot be prolonged: its training.schedule is {known.schedule}, so that the learning "
            "rate of every step depends on how many there are"
        )
    for what, field, needed, there in (
        ("checkpoint", "checkpoint_every", wanted.checkpoint_steps(), known.checkpoint_steps()),
        ("validation", "validate_every", wanted.validation_steps(), known.validation_steps()),
    ):
        if missing := {step for step in needed if step <= reached} - {*there}:
            return (
                f"has no {what} of step {min(missing):,}, which the longer training has: prolong "
                f"it with its own training.{field}"
            )
    return None


def _losses(shorter: RunFolder, experiment: Experiment) -> list[dict[str, np.ndarray]]:
    """Its losses, without the validations that only a training's last steps have."""
    wanted = list(experiment.training.validation_steps())
    steps, values = losses(shorter, "validation")
    kept = np.isin(steps, wanted)
    return [
        loss_rows("train", experiment, *losses(shorter, "train")),
        loss_rows("validation", experiment, steps[kept], values[kept]),
    ]
