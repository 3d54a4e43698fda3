"""Start a training from the end of a shorter one, instead of computing the same steps again.

The state after a step does not depend on the number of later steps. So a run that starts as a copy
of a shorter run ends with the same bytes as a run that was trained from its first step.
"""

import numpy as np

from hopscope.configs import Experiment
from hopscope.errors import RunMismatch
from hopscope.store import RunFolder, Store
from hopscope.store.checkpoints import OPTIMISER_FILES, checkpoint_name
from hopscope.store.metrics import loss_rows, losses, losses_file
from hopscope.store.tables import METRICS

MAY_DIFFER = {
    f"training.{name}" for name in ("steps", "checkpoint_every", "checkpoint_at", "validate_every")
}
"""Settings that do not affect the steps that both trainings share."""


def prolong(shorter: RunFolder, experiment: Experiment, store: Store) -> RunFolder:
    """A new run of the experiment, at the step of the shorter run; `train` continues it. Raises
    RunMismatch if the shorter run is not the beginning of the experiment, or the new run has begun.
    """
    reached = shorter.manifest.step
    if reason := _obstacle(experiment, shorter.recipe_as(Experiment), reached):
        raise RunMismatch(f"{shorter.name} {reason}")
    moments = shorter.files(OPTIMISER_FILES)
    if not moments:
        raise RunMismatch(
            f"{shorter.name} cannot be prolonged: it has weights, but no state of its optimiser "
            "(no model of the gallery has)"
        )
    planned = [step for step in experiment.training.checkpoint_steps() if step <= reached]
    metrics = losses_file(_losses(shorter, experiment))
    states = {
        name: shorter.read(name) for name in (*map(checkpoint_name, {*planned, reached}), *moments)
    }
    folder = store.create(experiment)
    with folder.locked():
        if folder.files("checkpoints/"):
            raise RunMismatch(
                f"{folder.name} has begun already (step {folder.manifest.step:,}): "
                f"`{folder.command('resume')}`, or `{folder.command('rm')}` first"
            )
        folder.commit(
            {METRICS.part_name(0, reached): metrics, **states},
            step=reached, precision=shorter.manifest.precision, seconds=shorter.manifest.seconds,
            computed=shorter.manifest.computed,
        )  # fmt: skip
    return folder


def goes_on(longer: Experiment, shorter: Experiment) -> bool:
    """True if a training can start from the end of a shorter one."""
    return _obstacle(longer, shorter, shorter.steps) is None


def _obstacle(longer: Experiment, shorter: Experiment, reached: int) -> str | None:
    """Why a training cannot continue the shorter one after the step `reached`; None if it can."""
    before, after = shorter.named(), longer.named()
    for name in sorted({*before, *after} - MAY_DIFFER):
        old, new = before.get(name), after.get(name)
        if old != new:
            return f"is another training: {name} = {old}, expected {new}"
    if not 0 < reached < longer.steps:
        return (
            f"is at step {reached:,}; expected 1 to {longer.steps - 1:,}, fewer than the new steps"
        )
    old_plan, plan = shorter.training, longer.training
    if any(old_plan.rate(step) != plan.rate(step) for step in range(reached)):
        return (
            f"cannot be prolonged: its training.schedule is {old_plan.schedule}, so the learning "
            "rate of a step depends on the number of steps"
        )
    for what, field, needed, there in (
        ("checkpoint", "checkpoint_every", plan.checkpoint_steps(), old_plan.checkpoint_steps()),
        ("validation", "validate_every", plan.validation_steps(), old_plan.validation_steps()),
    ):
        if missing := {step for step in needed if step <= reached} - {*there}:
            return (
                f"has no {what} of step {min(missing):,}, which the longer training has: prolong "
                f"it with its own training.{field}"
            )
    return None


def _losses(shorter: RunFolder, experiment: Experiment) -> list[dict[str, np.ndarray]]:
    """The losses of the shorter run, without validations that the longer training does not have
    (those at the shorter run's last steps).
    """
    wanted = list(experiment.training.validation_steps())
    steps, values = losses(shorter, "validation")
    kept = np.isin(steps, wanted)
    return [
        loss_rows("train", experiment, *losses(shorter, "train")),
        loss_rows("validation", experiment, steps[kept], values[kept]),
    ]
