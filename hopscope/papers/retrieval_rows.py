"""Rows of results from trained transformers: losses, circuits, emergence."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int
from numpy.lib.stride_tricks import sliding_window_view

from hopscope.circuits import Circuit, attention_maps, discover
from hopscope.circuits.emergence import emergence
from hopscope.circuits.parts import Part
from hopscope.models import Transformer
from hopscope.papers.results import Row
from hopscope.tasks import guessing_level
from hopscope.training import Run

POINTS = 64
"""Points of a course that is kept for a figure."""
WINDOW = 10
"""Steps over which a training loss is averaged before it counts as below one half."""
HALF = 0.5
LATE = 0.9
"""Checkpoints of the last tenth are late."""


def loss_rows(run: Run) -> list[Row]:
    """A row per model: final partial losses, when each passed one half, and their course."""
    experiment, final = run.experiment, run.final_losses()
    steps, train = run.losses("train")
    seen, validation = run.losses("validation")
    thin = spread(seen)
    return [
        {
            **described(run, seed),
            "guess": guessing_level(experiment.task),
            "final": rounded(final[number]),
            "crossed": learned(crossed(steps, train[:, number]), validation[:, number]),
            "course": {
                "steps": seen[thin].tolist(),
                "losses": [rounded(hop) for hop in validation[thin, number].T],
                "train": [rounded(hop) for hop in around(steps, train[:, number], seen[thin]).T],
            },
        }
        for number, seed in enumerate(experiment.seeds)
    ]


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


def learned(
    crossed: list[int | None], validation: Float[np.ndarray, "step hop"]
) -> list[int | None]:
    """Without the hops whose training loss fell because examples were learned by heart."""
    return [
        step if (losses < HALF).any() else None
        for step, losses in zip(crossed, validation.T, strict=True)
    ]


def described(run: Run, seed: int) -> Row:
    """Which model of which run, and how it was trained."""
    experiment = run.experiment
    task, model, training = experiment.task, experiment.model, experiment.training
    return {
        "seed": seed,
        "hops": task.hops if hasattr(task, "hops") else None,
        "curriculum": getattr(task, "curriculum", None),
        "layers": model.layers,
        "heads": model.heads,
        "init": model.init,
        "steps": training.steps,
        "batch": training.batch,
        "examples": training.examples,
        "seconds": run.folder.manifest.seconds,
    }


def crossed(
    steps: Sequence[int] | np.ndarray, losses: Float[np.ndarray, "step hop"]
) -> list[int | None]:
    """For each hop, the step at which its loss, averaged over a few steps, falls below 0.5."""
    if len(losses) < WINDOW:
        return [None] * losses.shape[1]
    below = sliding_window_view(losses.astype(float), WINDOW, axis=0).mean(axis=-1) < HALF
    first = below.argmax(axis=0)
    return [
        int(steps[place + WINDOW - 1]) if below[place, hop] else None
        for hop, place in enumerate(first)
    ]


def circuit_row(run: Run) -> Row:
    """A run's losses, the circuit in it, what each path is worth, its attention."""
    return {**loss_rows(run)[0], **circuit_of(run)}


def circuit_of(run: Run) -> Row:
    """What appendix E finds in the calmest of the last checkpoints."""
    step, model = calmest(run)
    circuit = discover(model, run.experiment.task, force=True)
    useful = sorted({part.at for part in circuit.parts if part.paths})
    losses = circuit.losses
    return {
        "step": step,
        "clean": round(losses.mean("clean"), 5),
        "ideal": round(losses.mean("ideal"), 5),
        "ablated": round(losses.mean("ablated"), 5),
        "solved": circuit.solved,
        "useful": [list(head) for head in useful],
        "needed": [list(head) for head in sorted({part.at for part in circuit.parts})],
        "removals": [_removal(circuit, part) for part in circuit.parts if part.paths],
        "unexplained": len(circuit.unexplained),
        "circuit": circuit.to_dict(),
        "maps": attention_maps(model, run.experiment.task).to_dict(digits=3),
    }


def calmest(run: Run) -> tuple[int, Transformer]:
    """The late checkpoint with the lowest validation loss (of a fleet, its first model's): at a
    constant rate the very last step may sit on a spike.
    """
    steps, losses = run.losses("validation")
    late = run.experiment.training.steps * LATE
    kept = {s: float(losses[steps == s, 0].mean()) for s in run.checkpoints if s >= late}
    best = min(kept, key=kept.__getitem__)
    model = run.model_at(best)
    return best, model if len(run.experiment.seeds) == 1 else model.member(0)


def joins_pair(part: Part) -> bool:
    """Does it let values read the keys of their own pairs, and nothing else?"""
    ends = [(path.reader, path.source) for path in part.paths]
    return all(
        (reader.kind, source.kind) == ("value", "key") and reader.fact == source.fact
        for reader, source in ends
    )


def _removal(circuit: Circuit, part: Part) -> Row:
    """The loss without one part: with ideal attention, in the model's own, of the model alone."""
    return {
        "head": list(part.at),
        "what": circuit.described(part),
        "joins_pair": joins_pair(part),
        "kind": part.kind,
        "ideal": round(part.cost.mean, 4),
        "own": round(part.own_cost.mean, 4),
        "alone": round(part.alone_cost.mean, 4),
    }


def emergence_row(run: Run) -> Row:
    """A run's circuit, and when each of its paths appeared."""
    row = circuit_row(run)
    circuit = Circuit.from_dict(row["circuit"])
    training = run.experiment.training
    if circuit.paths:
        story = emergence(
            run, circuit, run.experiment.task,
            member=0 if len(run.experiment.seeds) > 1 else None,
            steps_per_epoch=training.examples / training.batch,
        )  # fmt: skip
        row["emergence"] = story.to_dict()
    return row


def rounded(values: Float[np.ndarray, "number"]) -> list[float]:
    return [round(float(value), 5) for value in values]
