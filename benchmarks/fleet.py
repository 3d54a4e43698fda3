"""A fleet of 8 of the demo's models beside one of them: how many times as long is a step?

python benchmarks/fleet.py [--models 8] [--rounds 40] [--device cuda]
"""

import argparse
import time

import torch
from rows import print_row

from hopscope.machine import keep_pages
from hopscope.papers import preset
from hopscope.training.device import precision_of
from hopscope.training.trainer import Trainer

WARM_UP = 5


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
    times: dict[str, list[float]] = {name: [] for name in trainers}
    for turn in range(WARM_UP + chosen.rounds):
        for name, trainer in trainers.items():
            begun = time.perf_counter()
            trainer.advance()
            if device.type == "cuda":
                torch.cuda.synchronize()
            if turn >= WARM_UP:
                times[name].append(1e3 * (time.perf_counter() - begun))
    medians = {name: sorted(t)[len(t) // 2] for name, t in times.items()}
    row = {
        "benchmark": "fleet",
        "models": chosen.models,
        "precision": precision,
        "one_ms": round(medians["one"], 2),
        "fleet_ms": round(medians["fleet"], 2),
        "times_as_long": round(medians["fleet"] / medians["one"], 2),
    }
    print_row(row)


if __name__ == "__main__":
    main()
