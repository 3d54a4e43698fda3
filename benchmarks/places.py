"""Whether models learn the first hop by the place of its facts (Musat, ICLR 2025, §9.2).

    python benchmarks/places.py losses   [--store runs] > results/places.jsonl
    python benchmarks/places.py learn-on [--store runs] > results/places_learn_on.jsonl
    python benchmarks/places.py figures

* losses: models that have just learned the first hop are tested with facts shuffled. The models are
  small ones for two hops, whose position code distinguishes places well or hardly, trained with
  facts in order or shuffled; and transformer D with initial weights of 1/√inputs. 10 minutes for
  each of five fleets, 1.8 to 3 hours for each of four D, on one thread without BF16.
* learn-on: the training of the same models continues after they have just learned the first hop,
  with facts in order and with facts shuffled, until they learn the second (at most 600 steps), at a
  constant rate. The optimiser starts without state, since checkpoints do not contain it. 4 minutes
  for each fleet, 10 to 30 for each D.
"""

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from matplotlib.axes import Axes
from pydantic import StrictFloat, StrictInt
from rows import RESULTS, read_rows
from small_models import measure, save, small
from torch import Tensor

from hopscope.circuits import Ablation, Ablator, adapter_of, examples_of
from hopscope.configs import Experiment, Retrieval, Task
from hopscope.configs.tasks import Order
from hopscope.facts import symbol_name
from hopscope.milestones import learned
from hopscope.models import Transformer
from hopscope.papers.musat.emergence_claims import QUICKLY
from hopscope.papers.musat.experiments import STEPS_D, larger_seeds, per_pair
from hopscope.papers.musat.measure_runs import fields_of, final_loss_rows, known_below, rounded
from hopscope.papers.musat.rows import LossRow
from hopscope.papers.row import Numbers, ResultRow
from hopscope.plots.look import COLOURS, DIM, PAPER, WIDTHS, Picture, drawn, figure_width, picture
from hopscope.study import RunStudy
from hopscope.training import Run
from hopscope.training.device import precision_of
from hopscope.training.trainer import Trainer

PLACE_SEEDS = 6
"""The number of models of each kind."""
PLACE_STEPS = 2_500
"""The number of training steps."""
EXAMPLES = 512
"""The number of fresh examples on which losses are measured."""
ORDERS: tuple[Order, ...] = ("backward", "shuffled")
STEPS = 600
"""The most steps of a continued training."""
CHECK_EVERY = 25
"""The steps between validations; a training stops after one if both hops are learned."""
SHARES = (0.05, 0.1, 0.25, 0.5, 1.0)
"""The ticks of the axis with shares of steps."""
IN_WORDS = {"backward": "in order", "shuffled": "shuffled"}
"""The orders that are compared."""
SIDES = tuple(IN_WORDS)
BESIDE = 0.03
"""The horizontal distance between models of different kinds in the figure."""


class PlaceRow(LossRow):
    """A trained transformer, and its losses with facts shuffled when it had just learned the first
    hop.
    """

    base: StrictFloat
    """The base of the position code."""
    order: str
    """The order of the facts in training."""
    step: StrictInt | None
    """The first checkpoint after the first hop was learned; None if it never was."""
    own: Numbers
    """The loss of every hop at this checkpoint, on fresh examples as in training; empty if `step`
    is None."""
    shuffled: Numbers
    """The same with facts shuffled."""


class ChangedRow(ResultRow):
    """A model that had just learned the first hop, and its continued training with facts in the
    same or in another order.
    """

    seed: StrictInt
    layers: StrictInt
    position: str
    """Whether each token or each pair has its own position code."""
    base: StrictFloat
    """The base of the position code."""
    order: str
    """The order of the facts with which the model learned its first hop."""
    step: StrictInt
    """The step from which the training was continued."""
    changed: str
    """The order of the facts in the continued training."""
    steps: StrictInt
    """The most steps of the continued training."""
    start: Numbers
    """The loss of every hop at its start, with facts in the order `changed`."""
    first: StrictInt | None
    """The steps after which the first hop was learned in this order (`hopscope.milestones.learned`,
    at least ten); None if it was not."""
    second: StrictInt | None
    """The same for the second hop; None also if there is only one hop."""
    precision: str | None = None
    """The precision in which the first hop was learned; None in rows from before this field."""


Known = TypeVar("Known", PlaceRow, ChangedRow)


def by_place() -> tuple[Experiment, ...]:
    """Fleets of small models with facts in order or shuffled, and with position codes that
    distinguish places well or hardly.

    Shuffled facts have a different order in every example, so that a place does not determine the
    hop.
    """
    known = small(PLACE_SEEDS)
    tasks = (
        Retrieval(hops=2, position="pair", base=10),
        Retrieval(hops=2, position="pair", base=10, order="shuffled"),
        Retrieval(hops=2, position="pair"),
        Retrieval(hops=2),
        Retrieval(hops=2, order="shuffled"),
    )
    training = known.training.model_copy(update={"steps": PLACE_STEPS, "checkpoint_every": 25})
    return tuple(known.model_copy(update={"task": task, "training": training}) for task in tasks)


def d_by_place() -> tuple[Experiment, ...]:
    """Transformer D with larger initial weights: two seeds with facts in order, and one of these
    seeds also with facts shuffled, and with a position code per pair.
    """
    known = larger_seeds(STEPS_D)
    shuffled = known[0].model_copy(update={"task": known[0].task.ordered("shuffled")})
    return (*known, shuffled, per_pair(STEPS_D)[0])


def place_rows(run: Run) -> list[PlaceRow]:
    """A row per model."""
    return [_place_row(run, row) for row in final_loss_rows(run)]


def _place_row(run: Run, row: LossRow) -> PlaceRow:
    task = run.recipe.task
    code = {name: value for name, value in task if name in ("base", "order")}
    step = after(run.checkpoints, row.learned_at[0])
    own: tuple[float, ...] = ()
    shuffled = own
    if step is not None:
        model = RunStudy(run, row.seed, step).model
        own = losses(model, task)
        shuffled = losses(model, task.ordered("shuffled"))
    return PlaceRow(**fields_of(row), **code, step=step, own=own, shuffled=shuffled)


def after(steps: list[int], learned: int | None) -> int | None:
    """The first of these steps that is not before `learned`; None if there is none."""
    return next((step for step in steps if learned is not None and step >= learned), None)


@torch.no_grad()
def losses(model: Transformer, task: Task) -> tuple[float, ...]:
    """The loss of every hop on fresh examples of the task."""
    found = Ablator(adapter_of(model), examples_of(task, EXAMPLES, 1, "measurement")).losses(
        [Ablation()]
    )
    return rounded(found.mean((0, 1)).double().cpu().numpy())


def changed_rows(run: Run, steps: int = STEPS) -> list[ChangedRow]:
    """Two rows for each model that learned the first hop: its training is continued from the next
    checkpoint, with facts in order and with facts shuffled.

    The models are trained as a fleet.
    """
    level = known_below(run.recipe.task)
    starts = {
        seed: step
        for seed, (first, *_) in zip(run.recipe.seeds, run.learned(level), strict=True)
        if (step := after(run.checkpoints, first)) is not None
    }
    return [row for order in ORDERS for row in _learning_on(run, starts, order, steps)]


def _learning_on(run: Run, starts: Mapping[int, int], order: Order, steps: int) -> list[ChangedRow]:
    """A row for each of these seeds, whose training is continued from its step."""
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
    """A trainer with a constant rate, since models of a fleet continue from different steps."""
    training = recipe.training.model_copy(update={"schedule": "constant", "warmup": 0})
    changed = {"task": recipe.task.ordered(order), "training": training, "seeds": seeds}
    device = torch.device("cpu")
    return Trainer(recipe.model_copy(update=changed), device, precision_of(training, device))


def start_again(trainer: Trainer, models: list[dict[str, Tensor]]) -> None:
    """Set the weights of a trainer to those of these models. The optimiser starts without state,
    since checkpoints do not contain it.
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
    level = known_below(trainer.experiment.task)
    train, at, validation = [], [], []
    when: list[list[int | None]] = []
    for step in range(1, steps + 1):
        train.append(trainer.advance()[:, :2].cpu().numpy())
        if step % CHECK_EVERY and step < steps:
            continue
        at.append(step)
        validation.append(trainer.validate()[:, :2].cpu().numpy())
        losses, checks = np.stack(train, axis=1), np.stack(validation, axis=1)
        taken, checked = np.arange(1, step + 1), np.array(at)
        when = [
            learned(taken, own, checked, known, level)
            for own, known in zip(losses, checks, strict=True)
        ]
        if all(hop is not None for hops in when for hop in hops):
            break
    return when


@drawn
def place_figure(rows: Sequence[PlaceRow]) -> Picture:
    """Draw the steps to the second hop against the loss of the first hop with facts shuffled."""
    first, second = symbol_name("x1"), symbol_name("x2")
    wide = figure_width(2) > WIDTHS[1]
    figure = picture(
        "what places do to the second hop",
        f"Across: the loss of {first} with facts shuffled, when it has just been learned. Up: "
        f"steps from then to {second}, as a share of those to {first}. A point for each model that "
        f"learns both; dotted: a quarter, up to which {second} counts as following quickly.",
        2.8 if wide else 4.2,
        columns=2,
    )
    axes = figure.subplots()
    for number, (kind, models) in enumerate(_by_kind(rows).items()):
        known = [(row.shuffled[0], wait / start) for row in models for start, wait in _waits(row)]
        axes.plot(
            *zip(*known, strict=True) if known else ([], []),
            "o" if models[0].order == "shuffled" else "s",
            color=COLOURS[number % len(COLOURS)],
            alpha=0.8,
            label=f"{kind} ({len(known)} of {len(models)})",
        )
    axes.axhline(QUICKLY, color=DIM, linestyle=":")
    axes.set(xlabel=f"loss of {first} with facts shuffled", yscale="log", xlim=(0, None))
    axes.set_ylabel(f"steps from {first} to {second}, as a share")
    axes.set_yticks(SHARES, [f"{each:.0%}" for each in SHARES])
    axes.minorticks_off()
    figure.legend(loc="outside right center" if wide else "outside lower center")
    return figure


def _waits(row: PlaceRow) -> list[tuple[int, int]]:
    """The steps to the first hop, and from there to the second, if both were learned."""
    return [row.wait] if row.wait is not None else []


@drawn
def changed_figure(rows: Sequence[ChangedRow]) -> Picture:
    """Draw how soon models that know the first hop learn the second, by the order of the facts."""
    first, second = symbol_name("x1"), symbol_name("x2")
    most = max(row.steps for row in rows)
    wide = figure_width(2) > WIDTHS[1]
    figure = picture(
        "the second hop, by how the first was learned",
        f"Models that have just learned {first}, on the left with facts in order and on the right "
        f"with facts shuffled, learn on in both orders: steps until they know {second}. A line for "
        f"each model. Hollow: not within {most:,} steps.",
        2.8 if wide else 5.2,
        columns=2,
    )
    sides = figure.subplots(*((1, 2) if wide else (2, 1)), sharey=True)
    for number, (kind, models) in enumerate(_by_kind(rows, ordered=False).items()):
        for axes, order in zip(sides, SIDES, strict=True):
            known = [row for row in models if row.order == order]
            _two_ends(axes, known, number)
        sides[0].plot([], [], "o-", color=COLOURS[number % len(COLOURS)], label=kind)
    for axes, order in zip(sides, SIDES, strict=True):
        axes.set_xticks(range(len(SIDES)), [f"then {IN_WORDS[side]}" for side in SIDES])
        axes.set(title=f"{first} learned with facts {IN_WORDS[order]}", xlim=(-0.4, 1.4))
        axes.set_ylim(0, 1.05 * most)
    for axes in sides[: 1 if wide else 2]:
        axes.set_ylabel(f"steps until {second} is known")
    figure.legend(loc="outside lower center", ncols=2 if wide else 1)
    return figure


def _two_ends(axes: Axes, rows: Sequence[ChangedRow], number: int) -> None:
    """Draw a line for each model, from one order of its facts to the other."""
    colour = COLOURS[number % len(COLOURS)]
    models: dict[tuple[str | None, int], list[ChangedRow]] = {}
    for row in rows:
        models.setdefault((row.run, row.seed), []).append(row)
    for ends in models.values():
        steps = [row.steps if row.second is None else row.second for row in ends]
        places = [SIDES.index(row.changed) + BESIDE * (number - 1) for row in ends]
        axes.plot(places, steps, "-", color=colour, alpha=0.4)
        for row, place, height in zip(ends, places, steps, strict=True):
            inside = colour if row.second is not None else PAPER
            axes.plot(place, height, "o", color=colour, markerfacecolor=inside, alpha=0.8)


def _by_kind(rows: Sequence[Known], *, ordered: bool = True) -> dict[str, list[Known]]:
    """Models by their depth, position code, and (if `ordered`) order of facts."""
    found: dict[str, list[Known]] = {}
    for row in rows:
        order = f", {IN_WORDS[row.order]}" if ordered else ""
        kind = f"{row.layers} layers{order}, code per {row.position}, base {row.base:,.0f}"
        found.setdefault(kind, []).append(row)
    return found


def read(name: str, kind: type[Known]) -> list[Known]:
    """The rows in results/."""
    return [kind.model_validate(row) for row in read_rows(RESULTS / f"{name}.jsonl")]


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["losses", "learn-on", "figures"])
    parser.add_argument("--store", type=Path, default=Path("runs"))
    chosen = parser.parse_args()
    if chosen.what == "figures":
        waits = place_figure(read("places", PlaceRow))
        learn_on = changed_figure(read("places_learn_on", ChangedRow))
        save({"places-waits": waits, "places-learn-on": learn_on})
        return
    rows = place_rows if chosen.what == "losses" else changed_rows
    measure((*by_place(), *d_by_place()), rows, chosen.store)


if __name__ == "__main__":
    main()
