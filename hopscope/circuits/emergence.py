"""When the paths of a circuit appeared: mean attention along each, checkpoint by checkpoint.

Between checkpoints attention is interpolated linearly; a path has emerged where it first passes
one half (the paper's §9).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float

from hopscope.circuits.adapters import subject_of
from hopscope.circuits.circuit import Circuit
from hopscope.circuits.maps import role_maps
from hopscope.circuits.probe import Probe, Questions, probe_of
from hopscope.circuits.subject import check_finite
from hopscope.configs import Experiment
from hopscope.errors import CircuitError
from hopscope.facts import Path
from hopscope.milestones import crossing, learned_below
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


@dataclass(frozen=True)
class Emergence:
    """Attention along every path, and the loss of every hop, at every checkpoint."""

    paths: tuple[Path, ...]
    steps: tuple[int, ...]
    attention: Float[np.ndarray, "path step"]
    losses: Float[np.ndarray, "step hop"]
    guess: float
    steps_per_epoch: float | None

    def emerged(self, path: Path) -> float | None:
        """The step at which attention along the path first passes one half."""
        return crossing(self.steps, self.attention[self.paths.index(path)])

    def learned(self, hop: int) -> float | None:
        """The step at which the hop is learned, between two checkpoints."""
        return crossing(self.steps, -self.losses[:, hop], -learned_below(self.guess))

    def epoch(self, step: float | None) -> float | None:
        """The same moment in passes over the training set."""
        known = step is not None and self.steps_per_epoch is not None
        return step / self.steps_per_epoch if known else None  # type: ignore[operator]

    @property
    def order(self) -> list[tuple[Path, float | None]]:
        """The paths as they emerged; last those that never did."""
        when = [(path, self.emerged(path)) for path in self.paths]
        return sorted(when, key=lambda item: (item[1] is None, item[1] or 0.0, item[0]))

    def to_dict(self) -> dict[str, object]:
        """Plain data, for JSON."""
        return {
            "steps": list(self.steps),
            "steps_per_epoch": self.steps_per_epoch,
            "guess": self.guess,
            "losses": self.losses.tolist(),
            "paths": [
                {
                    "layer": path.layer,
                    "head": path.head,
                    "reader": str(path.query),
                    "source": str(path.key),
                    "attention": self.attention[number].tolist(),
                    "emerged_at_step": self.emerged(path),
                    "emerged_at_epoch": self.epoch(self.emerged(path)),
                }
                for number, path in enumerate(self.paths)
            ],
        }


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
    steps = list(history.checkpoints)
    if len(steps) < 2:
        raise CircuitError(
            f"emergence needs at least 2 checkpoints, got {len(steps)}: train with a smaller "
            "training.checkpoint_every (of the models in the gallery, demo has many)"
        )
    questions = task or circuit.task
    if questions is None:
        raise CircuitError("the circuit names no task: say which examples to watch it on")
    if not circuit.paths:
        raise CircuitError("the circuit has no paths whose emergence could be watched")
    probe = probe_of(questions, examples)
    found = [_at(history, step, (circuit, probe, member)) for step in steps]
    attention, losses = (np.stack(part) for part in zip(*found, strict=True))
    epoch = steps_per_epoch or _steps_per_epoch(history)
    return Emergence(circuit.paths, tuple(steps), attention.T, losses, probe.guess, epoch)


def _check(history: object, circuit: object) -> None:
    if not isinstance(history, History) or not isinstance(circuit, Circuit):
        got = f"{type(history).__name__} and {type(circuit).__name__}"
        raise CircuitError(f"emergence takes a run and a circuit found in it; got {got}")


def _steps_per_epoch(history: History) -> float | None:
    """How many steps go over the training set once, if the history says how it was trained."""
    experiment = getattr(history, "experiment", None)
    if not isinstance(experiment, Experiment):
        return None
    return experiment.training.steps_per_epoch


def _at(
    history: History, step: int, watched: tuple[Circuit, Probe, int | None]
) -> tuple[Float[np.ndarray, "path"], Float[np.ndarray, "hop"]]:
    circuit, probe, member = watched
    model = history.model_at(step)
    model = model if member is None else model.member(member)
    subject = subject_of(model)
    try:
        maps = role_maps(subject, probe)
    except CircuitError as error:
        raise CircuitError(f"at step {step}: {error}") from error
    number = {role: n for n, role in enumerate(maps.roles)}
    attention = [
        float(maps.own[p.layer, p.head, number[p.query], number[p.key]]) for p in circuit.paths
    ]
    with torch.no_grad():
        outputs = model(probe.inputs.to(subject.device))
        found = probe.losses(outputs).mean(0)
    check_finite(found, f"at step {step}: the model's loss")
    losses: np.ndarray = found.double().cpu().numpy()
    return np.array(attention), losses
