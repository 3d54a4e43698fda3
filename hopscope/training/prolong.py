"""Go on where a shorter training ended, instead of computing its steps again.

The state after a step depends on the steps before it and not on how many will follow. So a run that
begins as a copy of a shorter one ends with the bytes that it has if trained from its first step.
"""

from collections.abc import Collection

import numpy as np

from hopscope.configs import Experiment, Recipe, Training
from hopscope.errors import RunMismatch
from hopscope.store import RunFolder, Store
from hopscope.store.checkpoints import OPTIMISERS, checkpoint_name, checkpoint_steps
from hopscope.store.metrics import losses, part, part_name, to_parquet

FREE = {
    f"training.{name}" for name in ("steps", "checkpoint_every", "checkpoint_at", "validate_every")
}
"""What two trainings may differ in that are the same as far as both go."""
FIELD = {"checkpoint": "checkpoint_every", "validation": "validate_every"}


def prolong(shorter: RunFolder, experiment: Experiment, store: Store) -> RunFolder:
    """A run of the experiment that is as far as the shorter one; `train` goes on with it."""
    _check_beginning(shorter, experiment)
    reached = shorter.manifest.step
    planned = [step for step in experiment.training.checkpoint_steps() if step <= reached]
    _check_there("checkpoint", planned, checkpoint_steps(shorter), shorter)
    metrics = to_parquet(_losses(shorter, experiment))
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
            {part_name(0, reached): metrics, **states},
            step=reached, precision=shorter.manifest.precision, seconds=shorter.manifest.seconds,
            computed=shorter.manifest.computed,
        )  # fmt: skip
    return folder


def goes_on(longer: Experiment, shorter: Experiment) -> bool:
    """Can a training begin with a complete run of a shorter one?"""
    steps, known = shorter.steps, shorter.training
    wanted = longer.training
    return (
        steps < longer.steps
        and not _different(shorter, longer)
        and _same_rates(known, wanted, steps)
        and {*known.checkpoint_steps()} >= {s for s in wanted.checkpoint_steps() if s <= steps}
        and {*known.validation_steps()} >= {s for s in wanted.validation_steps() if s <= steps}
    )


def _different(shorter: Recipe, experiment: Experiment) -> list[str]:
    """The settings in which two trainings may not differ, and do."""
    its, ours = shorter.named(), experiment.named()
    return [name for name in sorted({*its, *ours} - FREE) if its.get(name) != ours.get(name)]


def _same_rates(one: Training, other: Training, steps: int) -> bool:
    return all(one.rate(step) == other.rate(step) for step in range(steps))


def _check_beginning(shorter: RunFolder, experiment: Experiment) -> None:
    """Is it a beginning of the experiment?"""
    for name in _different(shorter.recipe, experiment):
        its, ours = shorter.recipe.named().get(name), experiment.named().get(name)
        raise RunMismatch(
            f"{shorter.name} is another training: its {name} is {its}, expected {ours}"
        )
    reached, training = shorter.manifest.step, shorter.recipe_as(Experiment).training
    if reached >= experiment.training.steps or not shorter.files(OPTIMISERS):
        raise RunMismatch(
            f"{shorter.name} is at step {reached:,}: there is nothing to go on from to "
            f"{experiment.training.steps:,} steps"
        )
    if not _same_rates(training, experiment.training, reached):
        raise RunMismatch(
            f"{shorter.name} cannot be prolonged: its training.schedule is {training.schedule}, so "
            "that the learning rate of every step depends on how many there are"
        )


def _losses(shorter: RunFolder, experiment: Experiment) -> list[dict[str, np.ndarray]]:
    """Its losses, without the validations that only a training's last steps have."""
    reached = shorter.manifest.step
    wanted = [step for step in experiment.training.validation_steps() if step <= reached]
    steps, values = losses(shorter, "validation")
    _check_there("validation", wanted, steps.tolist(), shorter)
    kept = np.isin(steps, wanted)
    return [
        part("train", experiment, *losses(shorter, "train")),
        part("validation", experiment, steps[kept], values[kept]),
    ]


def _check_there(
    what: str, wanted: Collection[int], there: Collection[int], shorter: RunFolder
) -> None:
    missing = {*wanted} - {*there}
    if missing:
        raise RunMismatch(
            f"{shorter.name} has no {what} of step {min(missing):,}, which the longer training "
            f"has: prolong it with its own training.{FIELD[what]}"
        )
