"""Claims of Musat (ICLR 2025) tested with small models: order of hops, law of depth, batches.

    python benchmarks/small_models.py order | depth | batches [--store runs]   > results/….jsonl
    python benchmarks/small_models.py figures

Models and settings (a position code for each pair, a cosine schedule) are not those of the paper.

* order: ten models of 4 layers and 4 heads on three hops, trained as one fleet (20 minutes).
* depth: ten models each of 1, 2 and 3 layers, asked for four hops, of which the exact law allows 0,
  1 and 3, for 6,000 steps (15 minutes).
* batches: two hops, 4 layers, GPT-2's initial weights, 1,500 steps with batches of 64 to 2,048,
  three seeds each (0.5 PFLOP).

Rows are printed as JSON; `figures` redraws the figures from the rows in results/.
"""

from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from rows import RESULTS, read_rows

from hopscope.configs import Experiment, Model, Retrieval, Training
from hopscope.facts import symbol_name
from hopscope.papers.musat.measure_runs import final_loss_rows
from hopscope.papers.musat.rows import LossRow
from hopscope.papers.row import ResultRow
from hopscope.plots.look import COLOURS, Picture, drawn, picture
from hopscope.plots.saving import save_figure
from hopscope.plots.sweeps import law_figure
from hopscope.runs import train
from hopscope.store import Store
from hopscope.training import Run

SEEDS = (0, 1, 2)
BATCHES = (64, 128, 256, 512, 1_024, 2_048)
MANY = 5
"""The most batch sizes whose labels fit side by side in a column."""


def small(seeds: int = 10) -> Experiment:
    """Three hops, learned by small models in minutes: the demo's settings with one more hop."""
    return Experiment(
        task=Retrieval(hops=3, position="pair", base=10),
        model=Model(layers=4, heads=4, d_model=64, init="fan-in"),
        training=Training(
            steps=3_000, batch=48, lr=2e-3, schedule="cosine", warmup=200,
            validate_every=50, checkpoint_every=1_000,
        ),
        seeds=tuple(range(seeds)),
    )  # fmt: skip


def small_by_depth() -> tuple[Experiment, ...]:
    """Small models with too few layers for four hops, ten seeds each."""
    known = small()
    return tuple(
        known.model_copy(
            update={
                "task": known.task.model_copy(update={"hops": 4}),
                "model": known.model.model_copy(update={"layers": layers}),
                "training": known.training.model_copy(update={"steps": 6_000}),
            }
        )
        for layers in (1, 2, 3)
    )


def by_batch() -> tuple[Experiment, ...]:
    """Small models with batches of several sizes, from the smallest on, three seeds each.

    They have GPT-2's initial weights, which cause the plateau.
    """
    known = small(1)
    return tuple(
        known.model_copy(
            update={
                "task": Retrieval(hops=2, position="pair", base=10),
                "model": known.model.model_copy(update={"init": "gpt2"}),
                "training": Training(
                    steps=1_500, batch=batch, lr=2e-3, examples=2**18, validate_every=50,
                    checkpoint_every=1_500,
                ),
                "seeds": (seed,),
            }
        )
        for batch in BATCHES
        for seed in SEEDS
    )  # fmt: skip


@drawn
def batch_figure(rows: Sequence[LossRow]) -> Picture:
    """Draw when models learn each hop, and their final losses, by the examples per step."""
    figure = picture(
        "what the batch does to the plateau",
        "Left: the step at which models learn each hop, by the number of examples per step (no dot "
        "if they do not). Right: the loss of each hop at the end.",
        2.6,
        columns=2,
    )
    when, end = figure.subplots(1, 2)
    for hop in range(len(rows[0].final)):
        name, colour = symbol_name(f"x{hop + 1}"), COLOURS[hop % len(COLOURS)]
        learned = [
            (row.batch, row.learned_at[hop]) for row in rows if row.learned_at[hop] is not None
        ]
        when.plot(
            *zip(*learned, strict=True) if learned else ([], []), "o", color=colour, label=name
        )
        end.plot([row.batch for row in rows], [row.final[hop] for row in rows], "o", color=colour)
    for axes, what in ((when, "step at which the hop is learned"), (end, "loss at the end")):
        axes.set(xlabel="examples per step", ylabel=what, xscale="log", ylim=(0, None))
        batches = sorted({row.batch for row in rows}, reverse=True)
        named = batches[:: 1 + (len(batches) > MANY)]  # labels of all would overlap
        axes.set_xticks(batches, [f"{its}" if its in named else "" for its in batches])
        axes.minorticks_off()
    when.legend()
    return figure


RECIPES = {
    "order": lambda: (small(),),
    "depth": small_by_depth,
    "batches": by_batch,
}
FILES = {"order": "small_in_order", "depth": "small_by_depth", "batches": "batches"}


def rows_of(what: str) -> list[LossRow]:
    """The rows in results/."""
    return [LossRow.model_validate(row) for row in read_rows(RESULTS / f"{FILES[what]}.jsonl")]


def measure(
    recipes: Iterable[Experiment], rows: Callable[[Run], Sequence[ResultRow]], store: Path
) -> None:
    """Train each of these models or fleets, and print its rows."""
    for recipe in recipes:
        run = train(recipe, Store(store), threads=1)
        for row in rows(run):
            print(row.model_copy(update={"run": run.folder.name}).to_json(), flush=True)


def save(figures: Mapping[str, Picture]) -> None:
    """Write figures to results/, by their names."""
    for name, figure in figures.items():
        print(save_figure(figure, RESULTS / f"{name}.svg"))


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=[*RECIPES, "figures"])
    parser.add_argument("--store", type=Path, default=Path("runs"))
    chosen = parser.parse_args()
    if chosen.what == "figures":
        plateau, law = batch_figure(rows_of("batches")), law_figure(rows_of("depth"))
        save({"batches-plateau": plateau, "small-by-depth-law": law})
        return
    measure(RECIPES[chosen.what](), final_loss_rows, chosen.store)


if __name__ == "__main__":
    main()
