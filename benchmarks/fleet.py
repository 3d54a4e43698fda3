"""The time of a step for a fleet of 8 of the demo's models, relative to that for a single model.

python benchmarks/fleet.py [--models 8] [--rounds 40] [--device cuda]
"""

import argparse

import torch
from rows import print_row
from train_step import in_turns, median

from hopscope.machine import keep_pages
from hopscope.papers import preset
from hopscope.training.device import precision_of
from hopscope.training.trainer import Trainer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", choices=["float32", "bf16", "auto"], default="auto")
    chosen = parser.parse_args()
    keep_pages()
    device = torch.device(chosen.device)
    demo = preset("demo").recipe
    training = demo.training.model_copy(update={"precision": chosen.precision})
    precision = precision_of(training, device)
    seeds = {"one": (0,), "fleet": tuple(range(chosen.models))}
    trainers = {
        name: Trainer(demo.model_copy(update={"seeds": s}), device, precision)
        for name, s in seeds.items()
    }
    steps = {name: trainer.advance for name, trainer in trainers.items()}
    times = in_turns(steps, chosen.rounds, device, "wall", warm_up=5)
    one, fleet = median(times["one"]), median(times["fleet"])
    row = {
        "benchmark": "fleet",
        "models": chosen.models,
        "precision": precision,
        "one_ms": round(one, 2),
        "fleet_ms": round(fleet, 2),
        "times_as_long": round(fleet / one, 2),
    }
    print_row(row)


if __name__ == "__main__":
    main()
