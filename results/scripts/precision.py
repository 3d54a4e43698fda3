"""Does bf16 learn as float32 does? The demo's task for 3,000 steps in both, over several seeds.

    python results/scripts/precision.py [--seeds 5] [--steps 3000]
        [--figure docs/images/precision.svg]

Prints, per hop, the final validation loss of every seed in both precisions, and the step at
which each first fell below 0.5; draws both bands of loss curves.
"""

import argparse
import json
import tempfile
from pathlib import Path

from hopscope.milestones import first_below
from hopscope.papers import preset
from hopscope.plots.curves import smoothed
from hopscope.plots.look import COLOURS, Picture, drawn, picture
from hopscope.plots.saving import save_figure
from hopscope.training import Run, train

PRECISIONS = ("float32", "bf16")


def trained(precision: str, seeds: int, steps: int, store: str) -> Run:
    demo = preset("demo").recipe
    changes = {"steps": steps, "precision": precision, "checkpoint_every": steps}
    training = demo.training.model_copy(update=changes)
    changed = {"training": training, "seeds": tuple(range(seeds))}
    return train(demo.model_copy(update=changed), store, device="cpu")


def row(run: Run) -> dict[str, object]:
    steps, losses = run.losses("train")
    hops = range(losses.shape[2])
    return {
        "benchmark": "precision",
        "precision": run.recipe.training.precision,
        "steps": len(steps),
        "final_losses": [[round(float(x), 4) for x in run.final_losses()[:, h]] for h in hops],
        "below_half_at": [first_below(steps, losses[:, :, h], 0.5) for h in hops],
    }


@drawn
def draw(runs: list[Run]) -> Picture:
    figure = picture(
        "training in bf16 and in float32",
        "Training loss of each hop, smoothed, a line for each seed.",
        2.3,
        columns=2,
    )
    panels = figure.subplots(1, 2, sharey=True)
    for colour, run in zip(COLOURS, runs, strict=False):
        steps, losses = run.losses("train")
        smooth = smoothed(losses)
        for hop, axes in enumerate(panels):
            lines = axes.plot(steps, smooth[:, :, hop], color=colour, alpha=0.7, linewidth=0.9)
            lines[0].set_label(run.recipe.training.precision)
            axes.set(xlabel="step", title=f"hop {hop + 1}", ylim=(0, 1.2))
    panels[0].set_ylabel("training loss")
    panels[1].legend()
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=3_000)
    parser.add_argument("--figure", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as store:
        runs = [trained(name, chosen.seeds, chosen.steps, store) for name in PRECISIONS]
        for run in runs:
            print(json.dumps(row(run)))
        if chosen.figure:
            save_figure(draw(runs), chosen.figure)


if __name__ == "__main__":
    main()
