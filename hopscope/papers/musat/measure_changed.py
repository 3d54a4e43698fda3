"""Measures how soon models that know the first hop learn the second, with facts in each order."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from hopscope.configs import Experiment
from hopscope.configs.tasks import Order
from hopscope.milestones import learned, learned_below
from hopscope.papers.musat.measure_places import after
from hopscope.papers.musat.measure_runs import rounded
from hopscope.papers.musat.rows import ChangedRow
from hopscope.study import RunStudy
from hopscope.training import Run
from hopscope.training.device import precision_of
from hopscope.training.trainer import Trainer

ORDERS: tuple[Order, ...] = ("backward", "shuffled")
STEPS = 600
"""The most steps that a model learns on."""
CHECK_EVERY = 25
"""Steps between validations, after each of which it stops if it knows both hops."""


def changed_rows(run: Run, steps: int = STEPS) -> list[ChangedRow]:
    """Two rows for each model that learned the first hop: from the first checkpoint after that it
    learns on with facts in order, and with facts shuffled.

    Models that stop at the same time share their steps, as a fleet.
    """
    starts = {
        seed: step
        for seed, (first, *_) in zip(run.recipe.seeds, run.learned(), strict=True)
        if (step := after(run.checkpoints, first)) is not None
    }
    return [row for order in ORDERS for row in _learning_on(run, starts, order, steps)]


def _learning_on(run: Run, starts: Mapping[int, int], order: Order, steps: int) -> list[ChangedRow]:
    """A row for each of these seeds, from its step on."""
    if not starts:
        return []
    models = [RunStudy(run, seed, step).model.state_dict() for seed, step in starts.items()]
    trainer = _trainer_of(run.recipe, tuple(starts), order)
    start_again(trainer, models)
    before = trainer.validate().double().cpu().numpy()
    when = first_two(trainer, steps)
    task = run.recipe.task
    code = {name: value for name, value in task if name in ("position", "base", "order")}
    precision = run.folder.manifest.precision
    return [
        ChangedRow(
            seed=seed, layers=run.recipe.model.layers, **code, step=step, changed=order,
            steps=steps, start=rounded(losses), first=hops[0], second=(*hops, None)[1],
            precision=precision,
        )
        for (seed, step), losses, hops in zip(starts.items(), before, when, strict=True)
    ]  # fmt: skip


def _trainer_of(recipe: Experiment, seeds: tuple[int, ...], order: Order) -> Trainer:
    """With a constant rate, since models of a fleet go on from different steps."""
    training = recipe.training.model_copy(update={"schedule": "constant", "warmup": 0})
    changed = {"task": recipe.task.ordered(order), "training": training, "seeds": seeds}
    device = torch.device("cpu")
    return Trainer(recipe.model_copy(update=changed), device, precision_of(training, device))


def start_again(trainer: Trainer, models: list[dict[str, Tensor]]) -> None:
    """Give a trainer the weights of these models. Its optimiser begins anew: what it knew of them
    is not kept with a checkpoint.
    """
    fleet = len(models) > 1
    weights = {
        name: torch.stack([model[name] for model in models]) if fleet else models[0][name]
        for name in trainer.weights.named()
    }
    moments = {name: torch.zeros_like(moment) for name, moment in trainer.optimiser.state().items()}
    trainer.restore(weights, moments, 0)


def first_two(trainer: Trainer, steps: int) -> list[list[int | None]]:
    """The steps after which every model has learned the first hop and, if any, the second."""
    level = learned_below(trainer.experiment.chance)
    train, validation = [], []
    when: list[list[int | None]] = []
    for step in range(1, steps + 1):
        train.append(trainer.advance()[:, :2].cpu().numpy())
        if step % CHECK_EVERY and step < steps:
            continue
        validation.append(trainer.validate()[:, :2].cpu().numpy())
        losses, checked = np.stack(train, axis=1), np.stack(validation, axis=1)
        taken = np.arange(1, step + 1)
        when = [
            learned(taken, own, known, level) for own, known in zip(losses, checked, strict=True)
        ]
        if all(hop is not None for hops in when for hop in hops):
            break
    return when
