"""Measures what models know of facts at other places when they have just learned the first hop."""

import torch

from hopscope.circuits import Ablation, Ablator, adapter_of, exam_of
from hopscope.configs import Task
from hopscope.models import Transformer
from hopscope.papers.musat.measure_runs import fields_of, loss_rows, rounded
from hopscope.papers.musat.rows import LossRow, PlaceRow
from hopscope.study import RunStudy
from hopscope.training import Run

EXAMPLES = 512
"""Fresh examples on which losses are measured."""


def place_rows(run: Run) -> list[PlaceRow]:
    """A row per model."""
    return [_place_row(run, row) for row in loss_rows(run)]


def _place_row(run: Run, row: LossRow) -> PlaceRow:
    task = run.recipe.task
    code = {name: value for name, value in task if name in ("base", "order")}
    step = after(run.checkpoints, row.crossed[0])
    own: tuple[float, ...] = ()
    shuffled = own
    if step is not None:
        model = RunStudy(run, row.seed, step).model
        own = losses(model, task)
        shuffled = losses(model, task.ordered("shuffled"))
    return PlaceRow(**fields_of(row), **code, step=step, own=own, shuffled=shuffled)


def after(steps: list[int], learned: int | None) -> int | None:
    """The first of these steps that is not before this one."""
    return next((step for step in steps if learned is not None and step >= learned), None)


@torch.no_grad()
def losses(model: Transformer, task: Task) -> tuple[float, ...]:
    """The loss of every hop on fresh examples of the task."""
    found = Ablator(adapter_of(model), exam_of(task, EXAMPLES, seed=2)).losses([Ablation()])
    return rounded(found.mean((0, 1)).double().cpu().numpy())
