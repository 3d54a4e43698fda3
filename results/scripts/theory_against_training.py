"""Do trained transformers learn the hops that theory allows, and no others?

    python results/scripts/theory_against_training.py --store runs/theory \
        --figure docs/images/theory-against-training.svg | tee results/theory_against_training.jsonl
    python results/scripts/theory_against_training.py --rows results/theory_against_training.jsonl \
        --figure docs/images/theory-against-training.svg            # drawn anew, nothing trained

Transformers of 1 to 5 layers on retrieval with D = 5 and implicit curriculum, several seeds each.
Two chains: with four, models of this size stay on the plateau for longer than these steps.
Theory allows L causal layers the hops up to 2^(L-1) - 1. A hop that cannot be retrieved can be
guessed: the query knows which N symbols stand at that hop, and nothing of which is its own, so the
mean of the N is the best answer and 1 - 1/N its error.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hopscope.configs import Experiment, Model, Retrieval, Training
from hopscope.facts import symbol_name
from hopscope.plots.look import COLOURS, DIM, Picture, drawn, picture
from hopscope.plots.saving import save_figure
from hopscope.theory import reach
from hopscope.training import Run, train

Row = dict[str, Any]
HOPS = 5
DEPTHS = range(1, 6)
NOISE = 0.05
"""Share by which a loss on 512 held-out examples may lie below the level by chance."""


def experiment(layers: int, seeds: int, steps: int) -> Experiment:
    return Experiment(
        task=Retrieval(hops=HOPS, chains=2, position="pair", base=10),
        model=Model(layers=layers, heads=4, d_model=64, init="fan-in"),
        training=Training(
            steps=steps, batch=64, lr=2e-3, schedule="cosine", warmup=min(200, steps),
            checkpoint_every=steps, validate_every=100,
        ),
        seeds=tuple(range(seeds)),
    )  # fmt: skip


def trained(seeds: int, steps: int, store: str) -> Iterator[Row]:
    for layers in DEPTHS:
        found = row(train(experiment(layers, seeds, steps), store, device="cpu"))
        print(json.dumps(found), flush=True)
        yield found


def row(run: Run) -> Row:
    layers, final = run.recipe.model.layers, run.final_losses()
    level = run.recipe.task.chance()
    beyond = final[:, reach(layers) :]
    return {
        "experiment": "theory_against_training",
        "layers": layers,
        "hops_allowed": min(reach(layers), HOPS),
        "chance": level,
        "final_losses": [[round(float(x), 4) for x in member] for member in final],
        "hops_learned": [int((member < level / 2).sum()) for member in final],
        "none_beyond": bool((beyond > level * (1 - NOISE)).all()),
    }


@drawn
def draw(rows: list[Row]) -> Picture:
    figure = picture(
        "theory against training",
        "Final validation loss of each hop by the number of layers, a mark for each seed; hollow: "
        "hops that theory rules out for that depth; dotted: chance.",
        2.6,
        columns=2,
    )
    axes = figure.subplots()
    level = rows[0]["chance"]
    for hop in range(HOPS):
        for each in rows:
            layers, final = each["layers"], [losses[hop] for losses in each["final_losses"]]
            allowed = hop < reach(layers)
            place = np.full(len(final), layers + 0.12 * (hop - 2))
            fill = COLOURS[hop] if allowed else "none"
            label = symbol_name(f"x{hop + 1}") if layers == max(DEPTHS) else None
            axes.scatter(place, final, 18, fill, edgecolors=COLOURS[hop], label=label)
    axes.axhline(level, color=DIM, linestyle=":", label="chance")
    axes.set(xlabel="layers", ylabel="final validation loss", ylim=(0, 1.35 * level))
    axes.set_xticks(list(DEPTHS))
    figure.legend(loc="outside right center")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5_000)
    parser.add_argument("--store", default="runs")
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--rows", type=Path, help="draw these, which were printed before")
    chosen = parser.parse_args()
    if chosen.rows:
        rows = [json.loads(line) for line in chosen.rows.read_text().splitlines()]
    else:
        rows = [*trained(chosen.seeds, chosen.steps, chosen.store)]
    if chosen.figure:
        save_figure(draw(rows), chosen.figure)


if __name__ == "__main__":
    main()
