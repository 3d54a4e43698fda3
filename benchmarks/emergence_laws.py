"""Two published laws of emergence, measured on hopscope's own tasks and trainer.

    python benchmarks/emergence_laws.py train [--law context|descent|batch] [--only POINT]
    python benchmarks/emergence_laws.py figures        # slopes with intervals, and the figure

* context: an induction head emerges after a number of steps that grows with the square of the
  context (Musat et al. 2511.01033). Induction over N = 8 to 128 positions of facts, batches of 32.
* descent: the same with plain gradient descent, for which that law is derived, up to N = 64 (128
  would need about 40,000 steps, each four times as long).
* batch: the head emerges after T / √(batch × context) steps (Aoyama et al. 2511.16893). Induction
  and two hops, batches of 8 to 512, N = 8 and 32 positions of facts for each hop.

Every point is a fleet of five seeds of small models (the fewest layers that are enough: 2 for one
hop, 3 for two), trained with AdamW at a constant rate, on examples that never repeat.

The rules were written before a pilot of the first law at N = 8, 16 and 32 (the loop was rewritten
after the pilot; the rate of gradient descent was chosen after pilots at N = 8). A hop has emerged
at the step at which it is learned in hopscope's sense (the mean of ten training losses falls below
two thirds of chance). A point is the median over its seeds; a seed that did not learn counts as
slower than all others. A point whose median seed did not learn within the limit of steps is left
out of the slope, and reported. A slope is a least-squares line through the points on logarithmic
axes. Its interval is a bootstrap over the seeds, drawn once for all points: models of one seed
begin with the same weights, and one that is slow at a point is slow at others. There is no interval
if a seed did not learn a point of the line, since draws would then differ in their points. (The
rule written first drew the seeds of each point apart, and left points out of draws.)

A fleet stops when all its seeds have learned all hops. Rows are appended to
results/emergence_laws.jsonl, one per seed, cheap points first; existing points are skipped.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.ticker import LogLocator, StrMethodFormatter
from rows import RESULTS, Row, add_row, print_row, read_rows

from hopscope.configs import Experiment, Model, Retrieval, Training
from hopscope.machine import keep_pages
from hopscope.milestones import first_below, learned_below
from hopscope.plots.look import COLOURS, Picture, drawn, picture
from hopscope.plots.saving import save_figure
from hopscope.runs.computing import processor_of
from hopscope.training.trainer import Trainer
from hopscope.training.weights import FlatWeights

ROWS = RESULTS / "emergence_laws.jsonl"
SEEDS = tuple(range(5))
CAPS, DRAWS = {1: 20_000, 2: 3_000}, 2_000
"""The most steps, by number of hops; and the number of bootstrap draws."""
MODELS = {
    1: Model(layers=2, heads=1, d_model=64, mlp=False),
    2: Model(layers=3, heads=4, d_model=64, init="fan-in"),
}
"""The models, by number of hops. Models with one head per layer and no MLPs did not learn two hops
in 20,000 steps (20 seeds, which are in the rows). So the models for two hops have the demo's model
and position code.
"""
PLACES = {1: {"dim": 16}, 2: {"position": "pair", "base": 10.0}}
"""The other fields of the task, by number of hops."""
RATES = {"adamw": 1e-3, "descent": 1.0}
LOOK = 50
"""The number of steps between checks whether all seeds have learned."""
Axes = tuple[int, int]
"""Context and batch."""


@dataclass(frozen=True)
class Point:
    """A fleet, and how it is trained."""

    hops: int
    chains: int
    batch: int
    optimiser: str = "adamw"

    @property
    def name(self) -> str:
        return f"{self.hops} hops, {self.chains} chains, batch {self.batch}, {self.optimiser}"

    @property
    def context(self) -> int:
        """Positions of facts."""
        return 2 * self.chains * self.hops

    @property
    def cap(self) -> int:
        return CAPS[self.hops]

    @property
    def size(self) -> int:
        """The number of positions of facts in a step; the cost of a step is proportional to it."""
        return self.batch * self.context

    def recipe(self) -> Experiment:
        return Experiment(
            task=Retrieval(hops=self.hops, chains=self.chains, **PLACES[self.hops]),
            model=MODELS[self.hops],
            training=Training(
                steps=self.cap, batch=self.batch, examples=2**30, lr=RATES[self.optimiser],
                weight_decay=0.0, validation_examples=1, precision="float32",
            ),
            seeds=SEEDS,
        )  # fmt: skip


LAWS: dict[str, tuple[Point, ...]] = {
    "context": tuple(Point(1, chains, 32) for chains in (4, 8, 16, 32, 64)),
    "descent": tuple(Point(1, chains, 32, "descent") for chains in (4, 8, 16, 32)),
    "batch": tuple(
        Point(hops, chains, batch)
        for hops in (1, 2)
        for chains in (4, 16)
        for batch in (8, 32, 128, 512)
    ),
}


class Descent:
    """Plain gradient descent, to replace a trainer's optimiser."""

    def __init__(self, weights: FlatWeights) -> None:
        self.weights, self.rate = weights, torch.zeros((), device=weights.master.device)

    def set_rate(self, rate: float) -> None:
        self.rate.fill_(rate)

    @torch.no_grad()
    def step(self) -> None:
        master = self.weights.master
        master.sub_(self.rate * master.grad)

    def tensors(self) -> list[torch.Tensor]:
        return []


def train(point: Point, device: torch.device) -> list[Row]:
    """A row for each seed."""
    experiment, begun = point.recipe(), time.process_time()
    trainer = Trainer(experiment, device, "float32")
    if point.optimiser == "descent":
        trainer.optimiser = Descent(trainer.weights)
    losses: list[list[list[float]]] = []
    emerged: list[list[int | None]] = [[None]]
    while len(losses) < point.cap and any(None in hops for hops in emerged):
        losses += torch.stack([trainer.advance() for _ in range(LOOK)]).cpu().numpy().tolist()
        steps, courses = np.arange(1, len(losses) + 1), np.array(losses)
        level = learned_below(experiment.task.chances())
        emerged = [first_below(steps, courses[:, n], level) for n in range(len(SEEDS))]
    return [
        {
            "benchmark": "emergence_laws", "point": point.name, "hops": point.hops,
            "context": point.context, "batch": point.batch, "optimiser": point.optimiser,
            "seed": seed, "emerged": each, "steps": len(losses), "cap": point.cap,
            "end": courses[-LOOK:, n].astype(float).mean(axis=0).round(4).tolist(),
            "cpu_seconds": round(time.process_time() - begun, 1), "machine": processor_of(device),
        }
        for n, (seed, each) in enumerate(zip(SEEDS, emerged, strict=True))
    ]  # fmt: skip


def median(steps: np.ndarray) -> float:
    """The median step; infinite if the median seed did not learn."""
    return float(np.sort(steps)[len(steps) // 2])


def medians(emerged: Mapping[Axes, np.ndarray]) -> dict[Axes, float]:
    """The median step of each point."""
    return {axes: median(steps) for axes, steps in emerged.items()}


def exponents(points: Mapping[Axes, float], *columns: int) -> np.ndarray | None:
    """The exponents of a power law in columns of the axes (-1: their product), by least squares;
    None if there are too few points.
    """
    if len(points) < len(columns) + 2:
        return None
    logs = np.log([[*axes, axes[0] * axes[1]] for axes in points])[:, list(columns)]
    design = np.c_[np.ones(len(logs)), logs]
    if np.linalg.matrix_rank(design) < design.shape[1]:
        return None
    return np.linalg.lstsq(design, np.log([*points.values()]), rcond=None)[0][1:]


def slope(emerged: Mapping[Axes, np.ndarray], *columns: int) -> Row | None:
    """The exponents, their 95 % intervals over seeds (None if a seed did not learn a point of the
    line), and the omitted points.
    """
    line = {axes: steps for axes, steps in emerged.items() if np.isfinite(median(steps))}
    found, random = exponents(medians(line), *columns), np.random.default_rng(0)
    if found is None:
        return None
    ends = None
    if np.isfinite([*line.values()]).all():
        again = [
            exponents(medians({axes: steps[drawn] for axes, steps in line.items()}), *columns)
            for drawn in random.integers(len(SEEDS), size=(DRAWS, len(SEEDS)))
        ]
        ends = np.percentile(again, [2.5, 97.5], axis=0).round(3).tolist()
    return {
        "exponents": found.round(3).tolist(), "interval": ends, "points": len(line),
        "left out": [axes for axes in emerged if axes not in line],
    }  # fmt: skip


def emergence(rows: Sequence[Row], hops: int, hop: int) -> dict[Axes, np.ndarray]:
    """The steps at which a hop emerged, by context and batch; infinite for never."""
    found: dict[Axes, list[float]] = defaultdict(list)
    for row in rows:
        if row["hops"] == hops:
            found[row["context"], row["batch"]].append(row["emerged"][hop] or np.inf)
    return {axes: np.array(steps) for axes, steps in sorted(found.items())}


def by_law(rows: Sequence[Row]) -> dict[str, tuple[dict[Axes, np.ndarray], float]]:
    """For every law, its points and the published exponent."""
    named = {law: {point.name for point in points} for law, points in LAWS.items()}
    measured = {law: [row for row in rows if row["point"] in named[law]] for law in LAWS}
    shown = {
        "AdamW, by context": (emergence(measured["context"], 1, 0), 2.0),
        "gradient descent, by context": (emergence(measured["descent"], 1, 0), 2.0),
        "induction, by batch × context": (emergence(measured["batch"], 1, 0), -0.5),
        "first of two hops, by batch × context": (emergence(measured["batch"], 2, 0), -0.5),
        "second of two hops, by batch × context": (emergence(measured["batch"], 2, 1), -0.5),
    }
    return {name: law for name, law in shown.items() if len(law[0]) > 2}


def summary(rows: Sequence[Row]) -> list[Row]:
    """A row for each law: measured and published exponents."""
    found = []
    for name, (emerged, published) in by_law(rows).items():
        columns = {"context": (0,)} if published > 0 else {"product": (-1,), "apart": (0, 1)}
        measured = {what: slope(emerged, *each) for what, each in columns.items()}
        found.append({"law": name, "published": published, **measured})
    return found


def courses(rows: Sequence[Row]) -> Iterator[tuple[str, float, str, dict[int, np.ndarray]]]:
    """The lines of the figure: x-axis, published exponent, name, and the steps of the seeds."""
    for name, (emerged, published) in by_law(rows).items():
        what = name.split(",")[0]
        if published > 0:
            yield "N", published, what, {context: s for (context, _), s in emerged.items()}
            continue
        grows = f"batch × N, {'two hops' if 'two hops' in what else what}"
        for one in sorted({context for context, _ in emerged}):
            its = {one * batch: s for (context, batch), s in emerged.items() if context == one}
            if any(np.isfinite(median(steps)) for steps in its.values()):
                yield grows, published, f"{what.removesuffix(' of two hops')}, N = {one}", its


@drawn
def figure(rows: Sequence[Row]) -> Picture:
    """Draw steps until emergence on logarithmic axes, with lines of the published slopes."""
    panels: dict[tuple[str, float], dict[str, dict[int, np.ndarray]]] = defaultdict(dict)
    for grows, published, name, points in courses(rows):
        panels[grows, published][name] = points
    shown = picture(
        "steps until emergence",
        "Steps until an induction head emerges, by N, the positions of facts in the context, or by "
        "the examples of a step (batch) times N. A point is a seed (none if it "
        "never emerges), a line joins medians, and the grey line has the published slope.",
        2.6,
        columns=2,
    )
    panes = shown.subplots(1, len(panels), squeeze=False)[0]
    for axes, ((grows, law), lines) in zip(panes, panels.items(), strict=True):
        for colour, (name, points) in zip(COLOURS, lines.items(), strict=False):
            for x, steps in points.items():
                axes.plot([x] * len(steps), steps, ".", color=colour)
            middle = [median(steps) for steps in points.values()]
            axes.plot(list(points), middle, color=colour, label=name)
        first, *_ = lines.values()
        xs = np.array(sorted({x for points in lines.values() for x in points}), float)
        begin = median(first[int(xs[0])])
        axes.plot(xs, begin * (xs / xs[0]) ** law, "--", color="grey", label=f"slope {law:g}")
        axes.set(xscale="log", yscale="log", xlabel=grows, ylabel="steps until emergence")
        axes.set_xticks(xs, [f"{x:g}" for x in xs])
        axes.xaxis.minorticks_off()
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.yaxis.minorticks_off()
        axes.legend()
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["train", "figures"])
    parser.add_argument("--law", choices=LAWS)
    parser.add_argument("--only", help="the name of one point")
    parser.add_argument("--device", default="cpu")
    chosen = parser.parse_args()
    if chosen.what == "figures":
        rows = read_rows(ROWS)
        for row in summary(rows):
            print_row(row)
        print(save_figure(figure(rows), RESULTS / "emergence-laws.svg"))
        return
    torch.set_num_threads(1)
    keep_pages()
    laws = [chosen.law] if chosen.law else list(LAWS)
    points = dict.fromkeys(point for law in laws for point in LAWS[law])
    for point in sorted(points, key=lambda each: each.size):
        done = {row["point"] for row in read_rows(ROWS)} if ROWS.exists() else set()
        if chosen.only in {None, point.name} and point.name not in done:
            for row in train(point, torch.device(chosen.device)):
                add_row(ROWS, row)


if __name__ == "__main__":
    main()
