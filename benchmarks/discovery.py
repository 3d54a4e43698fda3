"""Discovery on trained models: how much is recovered, what is lost without each component, and how
long the search takes.

Trains the demo with ten seeds (as one fleet), unless the store has them already, and prints a JSON
row per model:

    python benchmarks/discovery.py --store runs [--seeds 10] > results/discovery.jsonl

Lost shares are relative to the gap: the loss with everything ablated minus the loss of the model.
`weakest` is the smallest share that is lost without a component with paths. Previous-token heads
are listed separately, as in the paper. Steps that several heads share are also listed separately,
with all their heads removed.
"""

import argparse
import pathlib
import time

import torch
from rows import print_row

from hopscope.circuits import Component, discover
from hopscope.configs import Task
from hopscope.machine import processor
from hopscope.models import Transformer
from hopscope.papers import preset
from hopscope.papers.musat.measure_runs import on_fresh_examples, without_steps
from hopscope.training import train


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=pathlib.Path, default=pathlib.Path("runs"))
    parser.add_argument("--seeds", type=int, default=10)
    chosen = parser.parse_args()
    demo = preset("demo").recipe
    seeds = tuple(range(chosen.seeds))
    run = train(demo.model_copy(update={"seeds": seeds}), chosen.store)
    for seed in seeds:
        print_row(row(f"demo, seed {seed}", run.model.member(seed), demo.task))


def row(name: str, model: Transformer, task: Task) -> dict[str, object]:
    start = time.process_time()
    circuit = discover(model, task, force=True)
    seconds = time.process_time() - start
    losses = circuit.losses
    paths = [each for each in circuit.components if each.paths]
    return {
        "model": name,
        "shape": f"{model.config.layers} x {model.config.heads}",
        "cpu_seconds": round(seconds, 1),
        "verdict": circuit.verdict,
        "losses": {
            which: round(losses.mean(which), 4)
            for which in ("model", "prescribed", "computed", "ablated")
        },
        "recovered": {
            attention: round(circuit.recovered(attention), 3)
            for attention in ("prescribed", "computed")
        },
        "sufficient": circuit.sufficient,
        "weights": circuit.model[:12],
        "paths": len(circuit.paths),
        "each path": [str(path) for path in circuit.paths],
        "weakest": round(min((lost(each) for each in paths if not each.is_previous), default=0), 3),
        "shared steps": [
            f"{step.what} {(step.loss - losses.mean('prescribed')) / losses.gap:.2f}"
            for step in without_steps(on_fresh_examples(model, task, circuit), circuit)
        ],
        "previous token": [round(lost(each), 3) for each in paths if each.is_previous],
        "without paths": [
            f"{each.name} {circuit.described(each)} {lost(each):.2f}"
            for each in circuit.components
            if not each.paths
        ],
        "unnamed": [each.name for each in circuit.unnamed],
        "machine": processor(),
        "threads": torch.get_num_threads(),
    }


def lost(component: Component) -> float:
    """The share of the gap that is lost without a component, with prescribed attention."""
    assert component.lost is not None
    return component.lost.mean


if __name__ == "__main__":
    main()
