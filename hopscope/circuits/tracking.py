"""Follow the paths of a circuit through the checkpoints of a run."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from hopscope.circuits.ablation import Ablation
from hopscope.circuits.ablator import Ablator
from hopscope.circuits.adapters import AnyModel, CallbackModel, adapter_of
from hopscope.circuits.attention import chunks, patterns
from hopscope.circuits.circuit import Circuit
from hopscope.circuits.emergence import Emergence
from hopscope.circuits.engine import Adapter, check_finite
from hopscope.circuits.examples import Examples, Questions, examples_of, questions_of
from hopscope.circuits.pattern import Target
from hopscope.circuits.prescriber import Prescriber, prescriber_of
from hopscope.circuits.progress import counted
from hopscope.configs import FactTask
from hopscope.errors import CircuitError
from hopscope.models import Transformer
from hopscope.theory import Path

EXAMPLES = 32
"""The number of examples over which attention is averaged (§9.1: 32)."""


@runtime_checkable
class History(Protocol):
    """A series of checkpoints, such as a run.

    It may also have a `recipe`, and a method `learned()` that returns, for every model, the step at
    which it learned each hop (None: never).
    """

    @property
    def checkpoints(self) -> Sequence[int]:
        """The steps with saved weights."""

    def model_at(self, step: int) -> AnyModel:
        """The model (or fleet) at that step."""


def emergence(
    history: History,
    circuit: Circuit,
    task: Questions | None = None,
    member: int | None = None,
    examples: int = EXAMPLES,
    seed: int = 0,
) -> Emergence:
    """Follow the paths of a circuit through the checkpoints of a run; `member` selects a model of a
    fleet.
    """
    _check(history, circuit)
    steps = checkpoints_of(history)
    questions = questions_of(circuit, task)
    if not circuit.tracked:
        raise CircuitError("the circuit has no paths whose emergence could be watched")
    drawn = examples_of(questions, examples, seed, "emergence")
    _check_found_in(history, steps, member, circuit)
    each = [
        _at(step, model_of(history, step, member), circuit, drawn)
        for step in counted("checkpoints", steps)
    ]
    attention, losses = (np.stack(part) for part in zip(*each, strict=True))
    recipe, learned = (getattr(history, name, None) for name in ("recipe", "learned"))
    asked = questions.asked_hops() if isinstance(questions, FactTask) else None
    return Emergence(
        paths=circuit.tracked,
        steps=tuple(steps),
        attention=attention.T,
        losses=losses,
        chance=drawn.chance,
        steps_per_epoch=recipe.training.steps_per_epoch if recipe else None,
        learned_at=tuple(learned()[member or 0]) if learned else None,
        hops=None if asked == tuple(range(1, losses.shape[1] + 1)) else asked,
        examples=examples,
    )


def checkpoints_of(history: History) -> list[int]:
    """The steps of the checkpoints; raises CircuitError if there are fewer than two."""
    steps = list(history.checkpoints)
    if len(steps) < 2:
        raise CircuitError(
            f"following a training needs at least 2 checkpoints, got {len(steps)}: train with a "
            "smaller training.checkpoint_every (of the models in the gallery, demo has many)"
        )
    return steps


def model_of(history: History, step: int, member: int | None) -> AnyModel:
    """The model at a step; of a fleet, the member with this number."""
    model = history.model_at(step)
    if member is None:
        if isinstance(model, Transformer) and model.fleet:
            raise CircuitError(
                "the history belongs to a fleet: hopscope.load(NAME, seed=SEED) studies a member "
                "with its own"
            )
        return model
    if not isinstance(model, Transformer):
        raise CircuitError(
            f"member is {member}, but a {type(model).__name__} is not a fleet: leave out member"
        )
    return model.member(member)


def _check(history: object, circuit: object) -> None:
    if not isinstance(history, History) or not isinstance(circuit, Circuit):
        got = f"{type(history).__name__} and {type(circuit).__name__}"
        raise CircuitError(f"emergence takes a run and a circuit found in it; got {got}")


def _check_found_in(
    history: History, steps: Sequence[int], member: int | None, circuit: Circuit
) -> None:
    """Raise CircuitError if the circuit was not found in any of the checkpoints."""
    digests = (adapter_of(model_of(history, step, member)).digest() for step in reversed(steps))
    if circuit.model not in digests:
        raise CircuitError(
            f"the circuit was found in other weights ({circuit.model[:12]}…) than those of these "
            f"{len(steps)} checkpoints: give a circuit that `discover` found in one of them"
        )


def _at(
    step: int, model: AnyModel, circuit: Circuit, examples: Examples
) -> tuple[Float[np.ndarray, "path"], Float[np.ndarray, "hop"]]:
    adapter = adapter_of(model)
    try:
        attention = _attention(adapter, examples, circuit)
        losses = Ablator(adapter, examples).losses([Ablation()])[0].mean(0)
    except CircuitError as error:
        raise CircuitError(f"at step {step}: {error}") from error
    return np.array(attention), losses.double().cpu().numpy()


@torch.no_grad()
def _attention(
    adapter: Adapter | CallbackModel, examples: Examples, circuit: Circuit
) -> list[float]:
    """Mean attention along each path, a few examples at a time."""
    examples = examples.on(adapter.device)
    found: dict[Path, list[Tensor]] = {path: [] for path in circuit.tracked}
    for some in chunks(adapter, examples):
        part = examples.part(some)
        prescriber = prescriber_of(adapter, part)
        for layer, weights in enumerate(patterns(adapter, part.inputs)):
            check_finite(weights, f"the attention of layer {layer}")
            for path, each in found.items():
                if path.layer == layer:
                    target = circuit.pattern(layer, path.head).of(path.destination)
                    its = weights[:, path.head].float()
                    each.append(_along(its, path, target, prescriber.of(layer)))
    return [float(torch.cat(each).mean()) for each in found.values()]


def _along(
    weights: Float[Tensor, "batch query key"], path: Path, target: Target, prescriber: Prescriber
) -> Float[Tensor, "row"]:
    """Attention along a path, at each position where its target applies: the source can be seen,
    the condition holds, and no earlier alternative applies.
    """
    spots = prescriber.spots(path.destination, prescriber.examples.length)
    rows = weights[spots.example, spots.row]
    free = torch.ones(len(spots), dtype=torch.bool, device=rows.device)
    found = []
    for each in target.each:
        applies = prescriber.drawn(each, spots)[1] & free
        for source in each.sources:
            if source.followed == path.source:
                there = prescriber.leads(source, spots)
                found.append((rows * there).sum(-1)[applies & there.any(-1)])
        free &= ~applies
    return torch.cat(found)
