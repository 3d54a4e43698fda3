"""Measure trained transformers: their losses, their circuits, and the emergence of these."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from hopscope.circuits import Ablation, Ablator, Circuit, Component, Pattern, discover, examples_of
from hopscope.circuits.emergence import Emergence
from hopscope.circuits.pattern import AS_IN_MODEL, UNIFORM
from hopscope.circuits.tables import tables_of
from hopscope.circuits.tracking import emergence
from hopscope.configs import Task
from hopscope.milestones import LEARNED, WINDOW
from hopscope.models import Transformer
from hopscope.papers.cost import training_flop
from hopscope.papers.musat.rows import (
    CircuitRow,
    LossCourse,
    LossRow,
    Removal,
    SharedStep,
    VariantRow,
    WholeHead,
)
from hopscope.papers.musat.variants import Variant
from hopscope.study import RunStudy
from hopscope.training import Run

POINTS = 64
"""Number of points of a curve that is kept for a figure."""
FRESH_EXAMPLES = 512
"""Number of fresh examples for the circuit without its paths, heads and shared steps."""
DIGITS = 5
"""Decimals of stored losses; more would be noise."""


def final_loss_rows(run: Run) -> list[LossRow]:
    """Return a row per model: final losses of hops, when each was learned, and their curves."""
    experiment, final = run.recipe, run.final_losses()
    steps, train = run.losses("train")
    seen, validation = run.losses("validation")
    thin, when = spread_evenly(seen), run.learned(known_below(experiment.task))
    rows = []
    for number, seed in enumerate(experiment.seeds):
        own, checked = train[:, number], validation[:, number]
        rows.append(
            LossRow(
                **model_facts(run, seed),
                chance=experiment.task.chance(),
                final=rounded(final[number]),
                learned_at=tuple(when[number]),
                course=LossCourse(
                    steps=seen[thin].tolist(),
                    losses=tuple(rounded(hop) for hop in checked[thin].T),
                    train=tuple(rounded(hop) for hop in around(steps, own, seen[thin]).T),
                ),
            )
        )
    return rows


def known_below(task: Task) -> float:
    """Return the loss below which a hop is learned: two thirds of chance with facts in order.

    It is the same for every order of the facts, so that models can be compared.
    """
    return LEARNED * task.ordered("backward").chance()


def spread_evenly(steps: Int[np.ndarray, "step"]) -> Int[np.ndarray, "kept"]:
    """Return the indices of about POINTS evenly spaced steps, however dense `steps` is."""
    wanted = np.linspace(steps[0], steps[-1], POINTS)
    kept: np.ndarray = np.unique(np.abs(steps[:, None] - wanted).argmin(axis=0))
    return kept


def around(
    steps: Int[np.ndarray, "step"],
    losses: Float[np.ndarray, "step hop"],
    moments: Int[np.ndarray, "kept"],
) -> Float[np.ndarray, "kept hop"]:
    """Return training losses at a few steps, each a mean over the WINDOW steps up to it."""
    last = np.searchsorted(steps, moments, side="right")
    return np.stack([losses[max(0, end - WINDOW) : max(end, 1)].mean(axis=0) for end in last])


def model_facts(run: Run, seed: int) -> dict[str, Any]:
    """Return the fields of a row that describe a model and its training."""
    experiment = run.recipe
    task, model, training = experiment.task, experiment.model, experiment.training
    return {
        "seed": seed,
        "hops": task.chosen_hops(),
        "curriculum": task.asks_every_hop(),
        "layers": model.layers,
        "heads": model.heads,
        "init": model.init,
        "position": dict(task).get("position", "token"),
        "steps": training.steps,
        "batch": training.batch,
        "examples": training.examples,
        "seconds": run.folder.manifest.seconds,
        "precision": run.folder.manifest.precision,
    }


def circuit_rows(run: Run) -> list[CircuitRow]:
    """Return the row of a run, as a list."""
    return [circuit_row(run)]


def circuit_row(run: Run) -> CircuitRow:
    """Measure a run's losses, and the circuit of its best late checkpoint with all removals."""
    best = RunStudy(run).best_late_checkpoint()
    circuit = discover(best.model, best.task, force=True)
    losses, paths = circuit.losses, rows_with_paths(circuit)
    ablator = on_fresh_examples(best.model, best.task, circuit)
    return CircuitRow(
        **fields_of(final_loss_rows(run)[0]),
        step=best.step,
        model=round(losses.mean("model"), DIGITS),
        prescribed=round(losses.mean("prescribed"), DIGITS),
        computed=round(losses.mean("computed"), DIGITS),
        ablated=round(losses.mean("ablated"), DIGITS),
        sufficient=circuit.sufficient,
        useful=tuple(sorted({head for row in paths for head in row.at})),
        needed=tuple(sorted({head for each in circuit.components for head in each.at})),
        removals=without_rows(ablator, circuit),
        whole=without_heads(ablator, circuit),
        shared=without_steps(ablator, circuit),
        unnamed=len(circuit.unnamed),
        circuit=circuit.to_dict(),
        maps=best.attention().to_dict(digits=3),
    )


def rows_with_paths(circuit: Circuit) -> list[Component]:
    """Return the attention rows of a circuit that form paths, each as a separate component."""
    rows = [
        each.model_copy(update={"heads": (head,), "destinations": (role,)})
        for each in circuit.components
        for (_, head), role in each.rows
    ]
    return sorted(
        (row for row in rows if row.paths),
        key=lambda row: (row.layer, row.heads, row.destinations),
    )


def without_rows(ablator: Ablator, circuit: Circuit) -> tuple[Removal, ...]:
    """Measure the loss of the circuit, and of the model, without each attention row with a path."""
    whole, rows = circuit.ablation(), rows_with_paths(circuit)
    without = [whole.without(row.rows) for row in rows]
    ablated = [_ablated(circuit, row) for row in rows]
    losses = losses_in(ablator, [*without, *ablated])
    return tuple(
        Removal(
            head=row.at[0],
            what=_paths_of(row),
            joins_pair=row.is_previous,
            kind=str(row.kind),
            prescribed=prescribed,
            alone=alone,
        )
        for row, prescribed, alone in zip(
            rows, losses[: len(rows)], losses[len(rows) :], strict=True
        )
    )


def _paths_of(row: Component) -> str:
    """Return the paths of an attention row as text: `key 1 + value 1 → query`."""
    sources = " + ".join(str(path.source) for path in sorted(row.paths))
    return f"{sources} → {row.destinations[0]}"


def _ablated(circuit: Circuit, row: Component) -> Ablation:
    """Return the model's state with a single row ablated."""
    ((head, role),) = row.rows
    return Ablation.of({head: Pattern(((role, circuit.pattern(*head).rest),), AS_IN_MODEL)})


def without_heads(ablator: Ablator, circuit: Circuit) -> tuple[WholeHead, ...]:
    """Measure the circuit's loss with the whole attention of each head with a path made uniform."""
    whole = circuit.patterns
    heads = sorted({row.at[0] for row in rows_with_paths(circuit)})
    states = [Ablation.of({**whole, head: Pattern(rest=UNIFORM)}) for head in heads]
    losses = losses_in(ablator, states)
    return tuple(WholeHead(head=head, loss=loss) for head, loss in zip(heads, losses, strict=True))


def without_steps(ablator: Ablator, circuit: Circuit) -> tuple[SharedStep, ...]:
    """Measure the loss of the circuit without each step that several heads share.

    All rows by which these heads attend from the one role to the other are ablated.
    """
    shared = {step: heads for step, heads in circuit.steps.items() if len(heads) > 1}
    whole = circuit.ablation()
    states = [
        whole.without((head, destination) for head in heads)
        for (_, destination), heads in shared.items()
    ]
    return tuple(
        SharedStep(what=f"{source} → {destination}", heads=tuple(heads), loss=loss)
        for ((source, destination), heads), loss in zip(
            shared.items(), losses_in(ablator, states), strict=True
        )
    )


def on_fresh_examples(model: Transformer, task: Task, circuit: Circuit) -> Ablator:
    """Return an ablator of the circuit's model on examples that were not used in its search."""
    examples = examples_of(task, FRESH_EXAMPLES, 1, "measurement")
    return Ablator(model, replace(examples, tables=tables_of(circuit)))


def losses_in(ablator: Ablator, states: Sequence[Ablation]) -> list[float]:
    """Return the mean loss of the model in each state."""
    if not states:
        return []
    losses = ablator.losses(states).mean((1, 2))
    return [round(loss, DIGITS) for loss in losses.tolist()]


def fields_of(row: LossRow) -> dict[str, Any]:
    """Return the fields of a row that are set."""
    return {name: getattr(row, name) for name in row.model_fields_set}


def emergence_rows(run: Run) -> list[CircuitRow]:
    """Return the row of a run with its circuit, and when each of its paths emerged."""
    row = circuit_row(run)
    found = emergence_of(run, Circuit.from_dict(row.circuit))
    return [row if found is None else row.model_copy(update={"emergence": found.to_dict()})]


def emergence_of(run: Run, circuit: Circuit) -> Emergence | None:
    """Measure the emergence of a circuit of the run's first model; None without paths."""
    if not circuit.paths:
        return None
    member = 0 if len(run.recipe.seeds) > 1 else None
    return emergence(run, circuit, run.recipe.task, member=member)


def variant_rows(run: Run) -> list[VariantRow]:
    """Return the row of a run with its circuit, its variant and its training cost."""
    return [
        VariantRow(
            **fields_of(circuit_row(run)),
            variant=Variant.of(run.recipe).name,
            flop=training_flop(run.recipe),
        )
    ]


def rounded(values: Float[np.ndarray, "number"]) -> tuple[float, ...]:
    """Return the numbers rounded to the decimals of rows."""
    return tuple(round(float(value), DIGITS) for value in values)
