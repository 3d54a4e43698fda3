"""Time of many small trainings: one by one, as fleets in several processes, and in processes alone.

    python benchmarks/many_runs.py                             # 64 runs of 150 steps: 20 minutes
    python benchmarks/many_runs.py --runs 2 --steps 4          # to see that it runs
    python benchmarks/many_runs.py --address auto              # over a Ray that runs here, too

Each way trains the demo's models with the same seeds, from an empty store. At the end, each way
trains a single run, whose time is mostly start-up.
"""

import argparse
import tempfile
import time
from pathlib import Path

from rows import print_row

from hopscope.configs import Experiment
from hopscope.papers import preset
from hopscope.store import Store
from hopscope.workers import Here, Processes, carry_out
from hopscope.workers.cluster import Cluster
from hopscope.workers.pools import Pool


def recipes(runs: int, steps: int) -> list[Experiment]:
    fields = preset("demo").recipe.model_dump()
    fields["training"] |= {"steps": steps, "checkpoint_every": steps}
    return [Experiment.model_validate({**fields, "seeds": (seed,)}) for seed in range(runs)]


def seconds(asked: list[Experiment], pool: Pool) -> float:
    """The seconds until all of these runs are complete, from an empty store."""
    with tempfile.TemporaryDirectory() as folder:
        begun = time.monotonic()
        outcome = carry_out(asked, Store(Path(folder)), device="cpu", workers=pool)
        if not outcome.complete:
            raise SystemExit(f"not complete: {outcome.troubles}")
        return time.monotonic() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=64)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--address", help="of a Ray that runs")
    chosen = parser.parse_args()
    ways: dict[str, Pool] = {
        "one by one": Here(1, threads=chosen.workers),
        f"Processes({chosen.workers}), fleets": Processes(chosen.workers),
        f"Processes({chosen.workers})": Processes(chosen.workers, 1),
    }
    if chosen.address:
        ways["Ray, fleets"] = Cluster(chosen.address)
    for runs in (chosen.runs, 1):
        taken = {name: seconds(recipes(runs, chosen.steps), pool) for name, pool in ways.items()}
        for name, each in taken.items():
            row = {"benchmark": "many_runs", "way": name, "runs": runs, "steps": chosen.steps}
            ratio = round(each / taken["one by one"], 3)
            print_row(row | {"seconds": round(each, 1), "ratio": ratio})


if __name__ == "__main__":
    main()
