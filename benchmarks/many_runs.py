"""Many small trainings: packed and beside each other, beside each other alone, and one by one.

    python benchmarks/many_runs.py --runs 64 --steps 200

All three train the demo's models with the same seeds, each from an empty store. What is measured
for packing counts, too, unless it was measured on this machine before.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

from hopscope.configs import Experiment
from hopscope.papers import preset
from hopscope.store import Store
from hopscope.workers import Here, Pool, Processes, carry_out


def recipes(runs: int, steps: int) -> list[Experiment]:
    fields = preset("demo").experiment.model_dump()
    fields["training"] |= {"steps": steps, "checkpoint_every": steps}
    return [Experiment.model_validate({**fields, "seeds": (seed,)}) for seed in range(runs)]


def seconds(asked: list[Experiment], pool: Pool, device: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        begun = time.monotonic()
        outcome = carry_out(asked, Store(Path(folder)), device=device, workers=pool)
        if not outcome.complete:
            raise SystemExit(f"{pool}: {outcome.troubles}")
        return time.monotonic() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=64)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--device", default="auto")
    chosen = parser.parse_args()
    asked = recipes(chosen.runs, chosen.steps)
    pools: dict[str, Pool] = {
        "one by one": Here(),
        "processes": Processes(chosen.workers, 1),
        "processes, packed": Processes(chosen.workers, "auto"),
    }
    base = 0.0
    for name, pool in pools.items():
        taken = seconds(asked, pool, chosen.device)
        base = base or taken
        row = {"benchmark": "many_runs", "way": name, "runs": chosen.runs, "steps": chosen.steps}
        print(json.dumps(row | {"seconds": round(taken, 1), "ratio": round(taken / base, 3)}))


if __name__ == "__main__":
    main()
