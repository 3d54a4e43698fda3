"""Discovery on trained models: how much is explained, what each path is worth, how long it takes.

Trains the demo with ten seeds (as one fleet) and the paper's transformer A, unless they are in the
store already, and prints a JSON row per model:

    python benchmarks/discovery.py --store runs [--demo-seeds 10] [--a-seeds 3] [--a-steps 8000]

A path holds if the loss without it is at least threefold what it is with it. Paths from a value to
a key of its own fact (previous position) are counted apart, as in the paper. A step that several
heads share holds if it does without all of them.
"""

import argparse
import json
import pathlib
import time
from collections.abc import Iterator

import torch

from hopscope.circuits import Circuit, discover
from hopscope.circuits.parts import Part
from hopscope.configs import Task
from hopscope.models import Transformer
from hopscope.papers import preset
from hopscope.papers.musat.measure_runs import joins_pair
from hopscope.study import Study
from hopscope.theory import Path
from hopscope.training import train

THREEFOLD = 3.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=pathlib.Path, default=pathlib.Path("runs"))
    parser.add_argument("--demo-seeds", type=int, default=10)
    parser.add_argument("--a-seeds", type=int, default=3)
    parser.add_argument("--a-steps", type=int, default=8_000)
    chosen = parser.parse_args()
    for name, model, task in models(chosen):
        print(json.dumps(row(name, model, task)), flush=True)


def models(chosen: argparse.Namespace) -> Iterator[tuple[str, Transformer, Task]]:
    """Every model with its name and task."""
    demo = preset("demo").recipe
    if chosen.demo_seeds > 1:
        seeds = tuple(range(chosen.demo_seeds))
        run = train(demo.model_copy(update={"seeds": seeds}), chosen.store)
        for seed in seeds:
            yield f"demo, seed {seed}", run.model.member(seed), demo.task
    paper = preset("musat/transformer-a").recipe
    changes = {"steps": chosen.a_steps, "checkpoint_every": 100}
    training = paper.training.model_copy(update=changes)
    for seed in range(chosen.a_seeds):
        run = train(paper.model_copy(update={"seeds": (seed,), "training": training}), chosen.store)
        calm = Study(run).best_late_checkpoint()
        yield f"transformer A, seed {seed}, step {calm.step}", calm.model, paper.task


def row(name: str, model: Transformer, task: Task) -> dict[str, object]:
    start = time.perf_counter()
    circuit = discover(model, task, force=True)
    seconds = time.perf_counter() - start
    paths = [part for part in circuit.parts if part.paths]
    previous = [part for part in paths if joins_pair(part)]
    others = [part for part in paths if part not in previous]
    return {
        "model": name,
        "shape": f"{model.config.layers} x {model.config.heads}",
        "seconds": round(seconds, 1),
        "clean": round(circuit.losses.mean("clean"), 4),
        "circuit": round(circuit.losses.mean("ideal"), 4),
        "ablated": round(circuit.losses.mean("ablated"), 3),
        "limit": round(circuit.losses.limit, 4),
        "solved": circuit.solved,
        "paths": len(circuit.paths),
        "weakest": round(min((fold(circuit, part) for part in others), default=0.0), 1),
        "below threefold": [
            f"{part.layer}.{part.head} {circuit.described(part)} x{fold(circuit, part):.2f}"
            for part in others
            if fold(circuit, part) < THREEFOLD
        ],
        "their steps": [
            f"{path.reader} ← {path.source} x{value:.1f}"
            for part in others
            if fold(circuit, part) < THREEFOLD
            for path, value in step_folds(circuit, part)
        ],
        "previous position": [round(part.cost.mean, 3) for part in previous],
        "not paths": [
            f"{part.layer}.{part.head} {circuit.described(part)} {part.cost.mean:.3f}"
            for part in circuit.parts
            if not part.paths
        ],
        "unexplained": [f"{part.layer}.{part.head}" for part in circuit.unexplained],
        "query learns": [] if circuit.flow is None else list(circuit.flow.reached),
        "agreed": round(min(part.votes for part in circuit.parts), 2) if circuit.parts else None,
        "threads": torch.get_num_threads(),
    }


def fold(circuit: Circuit, part: Part) -> float:
    """How many times higher the circuit's loss is without the part."""
    return part.cost.mean / circuit.losses.mean("ideal")


def step_folds(circuit: Circuit, part: Part) -> list[tuple[Path, float]]:
    """The same, for each path of a part, without every head that does the same step."""
    losses = {(each.reader, each.source): each.cost.mean for each in circuit.shared}
    steps = [(path, losses.get((path.reader, path.source), part.cost.mean)) for path in part.paths]
    return [(path, loss / circuit.losses.mean("ideal")) for path, loss in steps]


if __name__ == "__main__":
    main()
