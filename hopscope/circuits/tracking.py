"""Follow the paths of a circuit through the checkpoints of a run."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float

from hopscope.circuits.adapters import subject_of
from hopscope.circuits.attention import role_maps
from hopscope.circuits.circuit import Circuit
from hopscope.circuits.emergence import Emergence
from hopscope.circuits.exam import Exam, Questions, exam_of
from hopscope.circuits.subject import check_finite
from hopscope.configs import FactTask
from hopscope.errors import CircuitError
from hopscope.models import Transformer

EXAMPLES = 32
"""Sequences over which attention is averaged (§9.1: 32)."""


@runtime_checkable
class History(Protocol):
    """Something that kept its checkpoints; a run does."""

    @property
    def checkpoints(self) -> Sequence[int]:
        """The steps of which the weights are kept."""

    def model_at(self, step: int) -> Transformer:
        """The model (or fleet) as it was after that step."""


@runtime_checkable
class Recorded(History, Protocol):
    """A history that says when its models learned each hop; a run does."""

    def learned(self) -> Sequence[Sequence[int | None]]:
        """For every model, the step at which it learned each hop; None: it never did."""


def emergence(
    history: History,
    circuit: Circuit,
    task: Questions | None = None,
    member: int | None = None,
    examples: int = EXAMPLES,
    steps_per_epoch: float | None = None,
) -> Emergence:
    """Follow the paths of a circuit through the checkpoints of a run (of a fleet: of a member)."""
    _check(history, circuit)
    steps = steps_of(history)
    questions = task or circuit.task
    if questions is None:
        raise CircuitError("the circuit names no task: say which examples to watch it on")
    if not circuit.paths:
        raise CircuitError("the circuit has no paths whose emergence could be watched")
    exam = exam_of(questions, examples)
    _check_made_for(model_of(history, steps[-1], member), circuit)
    each = [_at(history, step, (circuit, exam, member)) for step in steps]
    attention, losses = (np.stack(part) for part in zip(*each, strict=True))
    epoch = steps_per_epoch or _steps_per_epoch(history)
    when = tuple(history.learned()[member or 0]) if isinstance(history, Recorded) else None
    found = Emergence(circuit.paths, tuple(steps), attention.T, losses, exam.guess, epoch, when)
    asked = questions.asked_hops() if isinstance(questions, FactTask) else found.asked
    return found if asked == found.asked else replace(found, hops=asked)


def steps_of(history: History) -> list[int]:
    """The steps of its checkpoints; refuses fewer than two."""
    steps = list(history.checkpoints)
    if len(steps) < 2:
        raise CircuitError(
            f"emergence needs at least 2 checkpoints, got {len(steps)}: train with a smaller "
            "training.checkpoint_every (of the models in the gallery, demo has many)"
        )
    return steps


def model_of(history: History, step: int, member: int | None) -> Transformer:
    """The model after a step (of a fleet: a member)."""
    model = history.model_at(step)
    return model if member is None else model.member(member)


def _check(history: object, circuit: object) -> None:
    if not isinstance(history, History) or not isinstance(circuit, Circuit):
        got = f"{type(history).__name__} and {type(circuit).__name__}"
        raise CircuitError(f"emergence takes a run and a circuit found in it; got {got}")


def _check_made_for(model: Transformer, circuit: Circuit) -> None:
    """Refuse a circuit with other heads than the model has."""
    config, last = model.config, circuit.heads[-1].at
    if last != (config.layers - 1, config.heads - 1):
        raise CircuitError(
            f"the circuit has {last[0] + 1} layers of {last[1] + 1} heads, the run's models have "
            f"{config.layers} of {config.heads}: give the circuit that was found in the run"
        )


def _steps_per_epoch(history: History) -> float | None:
    """How many steps go over the training set once, if the history says how it was trained."""
    recipe = getattr(history, "recipe", None)
    return None if recipe is None else recipe.training.steps_per_epoch


def _at(
    history: History, step: int, watched: tuple[Circuit, Exam, int | None]
) -> tuple[Float[np.ndarray, "path"], Float[np.ndarray, "hop"]]:
    circuit, exam, member = watched
    model = model_of(history, step, member)
    subject = subject_of(model)
    try:
        maps = role_maps(subject, exam)
    except CircuitError as error:
        raise CircuitError(f"at step {step}: {error}") from error
    number = {role: n for n, role in enumerate(maps.roles)}
    attention = [
        float(maps.own[p.layer, p.head, number[p.reader], number[p.source]]) for p in circuit.paths
    ]
    with torch.no_grad():
        outputs = model(exam.inputs.to(subject.device))
        found = exam.marks(outputs).mean(0)
    check_finite(found, f"at step {step}: the model's loss")
    losses: np.ndarray = found.double().cpu().numpy()
    return np.array(attention), losses
