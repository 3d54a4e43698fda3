"""Measures trained transformers: their losses, their circuits, and how those emerged."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from hopscope.circuits import Ablation, Ablator, Circuit, adapter_of, discover, exam_of
from hopscope.circuits.mechanism import UNIFORM, Mechanism
from hopscope.circuits.parts import Part
from hopscope.circuits.tracking import emergence
from hopscope.milestones import WINDOW
from hopscope.papers.cost import training_flop
from hopscope.papers.musat.readings import PaperReading
from hopscope.papers.musat.rows import (
    CircuitRow,
    Course,
    LossRow,
    Maps,
    ReadingRow,
    Removal,
    Story,
    WholeHead,
)
from hopscope.study import RunStudy
from hopscope.training import Run

POINTS = 64
"""Points of a course that is kept for a figure."""
WHOLE_EXAMPLES = 512
"""Fresh examples on which the circuit is measured without whole heads."""
DIGITS = 5
"""Digits that are kept of a loss; more would be noise."""


def loss_rows(run: Run) -> list[LossRow]:
    """A row per model: final partial losses, when each hop was learned, and their course."""
    experiment, final = run.recipe, run.final_losses()
    steps, train = run.losses("train")
    seen, validation = run.losses("validation")
    thin, when = spread(seen), run.learned()
    rows = []
    for number, seed in enumerate(experiment.seeds):
        own, checked = train[:, number], validation[:, number]
        rows.append(
            LossRow(
                **described(run, seed),
                guess=experiment.chance,
                final=rounded(final[number]),
                crossed=tuple(when[number]),
                course=Course(
                    steps=seen[thin].tolist(),
                    losses=tuple(rounded(hop) for hop in checked[thin].T),
                    train=tuple(rounded(hop) for hop in around(steps, own, seen[thin]).T),
                ),
            )
        )
    return rows


def spread(steps: Int[np.ndarray, "step"]) -> Int[np.ndarray, "kept"]:
    """Numbers of steps that lie evenly, however densely some stretches are filled."""
    wanted = np.linspace(steps[0], steps[-1], POINTS)
    kept: np.ndarray = np.unique(np.abs(steps[:, None] - wanted).argmin(axis=0))
    return kept


def around(
    steps: Int[np.ndarray, "step"],
    losses: Float[np.ndarray, "step hop"],
    moments: Int[np.ndarray, "kept"],
) -> Float[np.ndarray, "kept hop"]:
    """Training losses at a few moments, each a mean over the steps up to it."""
    last = np.searchsorted(steps, moments, side="right")
    return np.stack([losses[max(0, end - WINDOW) : max(end, 1)].mean(axis=0) for end in last])


def described(run: Run, seed: int) -> dict[str, Any]:
    """Which model of which run, and how it was trained."""
    experiment = run.recipe
    task, model, training = experiment.task, experiment.model, experiment.training
    return {
        "seed": seed,
        "hops": task.chosen_hops(),
        "curriculum": task.asks_every_hop(),
        "layers": model.layers,
        "heads": model.heads,
        "init": model.init,
        "position": dict(task).get("position"),
        "steps": training.steps,
        "batch": training.batch,
        "examples": training.examples,
        "seconds": run.folder.manifest.seconds,
        "precision": run.folder.manifest.precision,
    }


def circuit_row(run: Run) -> CircuitRow:
    """A run's losses, and the circuit in its best late checkpoint with what each path is worth."""
    calm = RunStudy(run).best_late_checkpoint()
    circuit = discover(calm.model, calm.task, force=True)
    losses = circuit.losses
    return CircuitRow(
        **fields_of(loss_rows(run)[0]),
        step=calm.step,
        clean=round(losses.mean("clean"), DIGITS),
        ideal=round(losses.mean("ideal"), DIGITS),
        ablated=round(losses.mean("ablated"), DIGITS),
        solved=circuit.solved,
        useful=tuple(sorted({part.at for part in circuit.parts if part.paths})),
        needed=tuple(sorted({part.at for part in circuit.parts})),
        removals=tuple(_removal(circuit, part) for part in circuit.parts if part.paths),
        whole=without_heads(calm, circuit),
        unexplained=len(circuit.unexplained),
        circuit=circuit.to_dict(),
        maps=Maps.model_validate(calm.attention().to_dict(digits=3)),
    )


def without_heads(study: RunStudy, circuit: Circuit) -> tuple[WholeHead, ...]:
    """The loss of the circuit without each head that has a path, all of whose attention is uniform
    instead.
    """
    heads = sorted({part.at for part in circuit.parts if part.paths})
    follow = dict(circuit.ablation().changes)
    variants = [Ablation.of({**follow, head: Mechanism(rest=UNIFORM)}) for head in heads]
    ablator = Ablator(adapter_of(study.model), exam_of(study.task, WHOLE_EXAMPLES, seed=2))
    losses = ablator.losses(variants).mean((1, 2)).tolist() if heads else []
    return tuple(
        WholeHead(head=head, loss=round(loss, DIGITS))
        for head, loss in zip(heads, losses, strict=True)
    )


def fields_of(row: LossRow) -> dict[str, Any]:
    """The fields of a row that are set, as they are."""
    return {name: getattr(row, name) for name in row.model_fields_set}


def joins_pair(part: Part) -> bool:
    """Does it let values read the keys of their own pairs, and nothing else?"""
    ends = [(path.reader, path.source) for path in part.paths]
    return all(
        (reader.kind, source.kind) == ("value", "key") and reader.fact == source.fact
        for reader, source in ends
    )


def _removal(circuit: Circuit, part: Part) -> Removal:
    ideal, alone = (round(cost.mean, 4) for cost in (part.cost, part.alone_cost) if cost)
    return Removal(
        head=part.at,
        what=circuit.described(part),
        joins_pair=joins_pair(part),
        kind=str(part.kind),
        ideal=ideal,
        alone=alone,
    )


def emergence_row(run: Run) -> CircuitRow:
    """A run's circuit, and when each of its paths appeared."""
    row = circuit_row(run)
    found = story(run, row)
    return row if found is None else row.model_copy(update={"emergence": found})


def story(run: Run, row: CircuitRow) -> Story | None:
    """How the paths of the row's circuit appeared, in the run's first model; None without paths."""
    circuit = Circuit.from_dict(row.circuit)
    if not circuit.paths:
        return None
    member = 0 if len(run.recipe.seeds) > 1 else None
    found = emergence(run, circuit, run.recipe.task, member=member)
    return Story.model_validate(found.to_dict())


def reading_row(run: Run) -> ReadingRow:
    """A run's circuit, under which reading it was trained, and what that cost."""
    return ReadingRow(
        **fields_of(circuit_row(run)),
        reading=PaperReading.of(run.recipe).name,
        flop=training_flop(run.recipe),
    )


def rounded(values: Float[np.ndarray, "number"]) -> tuple[float, ...]:
    """The numbers with as many digits as rows keep."""
    return tuple(round(float(value), DIGITS) for value in values)
