"""What losses become when heads change, as data: `hopscope ablate`, `Study.ablate`."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from hopscope.circuits.ablation import Ablation, Change
from hopscope.circuits.ablator import Ablator
from hopscope.circuits.adapters import AnyModel, adapter_of
from hopscope.circuits.changes import changes_of
from hopscope.circuits.circuit import Circuit
from hopscope.circuits.components import Estimate
from hopscope.circuits.exam import Questions, exam_of
from hopscope.circuits.pattern import ITSELF, PREVIOUS, UNIFORM, Head, Pattern
from hopscope.circuits.tables import with_tables
from hopscope.configs import Config
from hopscope.display import data_frame

EXAMPLES = 256
WAYS = {"uniform": UNIFORM, "itself": ITSELF, "previous": PREVIOUS}
"""In which ways every head is ablated in turn."""


class Ablated(Config):
    """The losses with some heads changed."""

    changed: str
    losses: tuple[float, ...]
    """The mean loss of every hop."""
    rise: Estimate
    """By how much the mean loss over hops rises, paired over examples."""

    @property
    def loss(self) -> float:
        """The mean loss over hops."""
        return sum(self.losses) / len(self.losses)


class Ablations(Config):
    """The losses of a model, and with heads changed in several ways."""

    examples: int
    seed: int
    chance: float
    model: tuple[float, ...]
    """The losses of every hop with nothing changed (of the circuit, if one was given)."""
    rows: tuple[Ablated, ...]

    def frame(self) -> Any:
        """A data frame (pandas) with a row for each change."""
        return data_frame(
            {
                "changed": row.changed,
                "loss": row.loss,
                **{f"hop_{n}": loss for n, loss in enumerate(row.losses, 1)},
                "rise": row.rise.mean,
                "rise_low": row.rise.low,
                "rise_high": row.rise.high,
            }
            for row in self.rows
        )

    def __str__(self) -> str:
        width = max(len(row.changed) for row in self.rows)
        lines = [f"{'nothing changed':<{width}}  loss {np.mean(self.model):.4f}"]
        lines += [
            f"{row.changed:<{width}}  loss {row.loss:.4f}  rise {row.rise}" for row in self.rows
        ]
        return "\n".join(lines)


def ablate(
    model: AnyModel,
    task: Questions,
    asked: Mapping[str, Mapping[Head, Change]],
    circuit: Circuit | None = None,
    *,
    examples: int = EXAMPLES,
    seed: int = 0,
) -> Ablations:
    """The losses with the changes that are asked for, each under a name; beside those of the model,
    or of its circuit, on top of which the changes were made.
    """
    adapter = adapter_of(model)
    exam = exam_of(task, examples, seed)
    first = circuit.ablation() if circuit else Ablation()
    every = [first, *(Ablation.of(changes) for changes in asked.values())]
    changes = [change for each in every for _, change in each.changes]
    spare = partial(exam_of, task, examples, seed + 1)
    ablator = Ablator(adapter, with_tables(adapter, exam, changes, spare, circuit))
    for its in asked.values():
        ablator.check_paths(its)
    usual, *others = ablator.losses(every).double().cpu().numpy()
    return Ablations(
        examples=examples,
        seed=seed,
        chance=exam.guess,
        model=tuple(usual.mean(0).tolist()),
        rows=tuple(
            Ablated(
                changed=name,
                losses=tuple(losses.mean(0).tolist()),
                rise=Estimate.of((losses - usual).mean(-1)),
            )
            for name, losses in zip(asked, others, strict=True)
        ),
    )


def asked_for(
    texts: Sequence[str], base: Mapping[Head, Change] | None = None
) -> dict[str, dict[Head, Change]]:
    """Several changes together, as text; a head alone (1.3) attends evenly."""
    said = [text if "=" in text else f"{text}=uniform" for text in texts]
    return {" ".join(said): changes_of(said, base)}


def every_head(
    layers: int, heads: int, base: Mapping[Head, Change] | None = None
) -> dict[str, dict[Head, Change]]:
    """Every head in turn, ablated in three ways."""
    return {
        f"{layer}.{head}={name}": {**(base or {}), (layer, head): Pattern(rest=rest)}
        for layer in range(layers)
        for head in range(heads)
        for name, rest in WAYS.items()
    }
