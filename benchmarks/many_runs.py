"""Many small trainings: packed and beside each other, beside each other alone, and one by one.

    python benchmarks/many_runs.py                             # 64 runs of 150 steps: 25 minutes
    python benchmarks/many_runs.py --runs 2 --steps 4          # to see that it runs
    python benchmarks/many_runs.py --steps 50 > results/many_runs.jsonl

All ways train the demo's models with the same seeds, each from an empty store, one way after the
other. `Processes(2)` measures first how large fleets may be, which counts, too: nothing is
remembered from before. `plain Ray` is what one writes by hand: a task of Ray for each training.
Then one run alone, by `Here` and by `Cluster` (a Ray of our own), which is nearly all start-up; the
second of two calls that share a Ray says what is left without that.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from hopscope.configs import Experiment
from hopscope.papers import preset
from hopscope.store import Store
from hopscope.workers import Here, Pool, Processes, carry_out
from hopscope.workers.cluster import Cluster
from hopscope.workers.session import LOCAL, connected


def recipes(runs: int, steps: int) -> list[Experiment]:
    fields = preset("demo").recipe.model_dump()
    fields["training"] |= {"steps": steps, "checkpoint_every": steps}
    return [Experiment.model_validate({**fields, "seeds": (seed,)}) for seed in range(runs)]


def seconds(asked: list[Experiment], act: Callable[[list[Experiment], Store], object]) -> float:
    """How long it takes until all of these are complete, from nothing."""
    with tempfile.TemporaryDirectory() as folder:
        store, begun = Store(Path(folder)), time.monotonic()
        act(asked, store)
        taken = time.monotonic() - begun
        missing = [each.run_name() for each in asked if not store.has_complete(each)]
        if missing:
            raise SystemExit(f"not complete: {missing}")
    return taken


def by(pool: Pool) -> Callable[[list[Experiment], Store], object]:
    return lambda asked, store: carry_out(asked, store, device="cpu", workers=pool)


def plain_ray(asked: list[Experiment], store: Store) -> None:
    """Without anything of `hopscope.workers` but the closed Ray."""
    with connected(LOCAL) as ray:

        @ray.remote(num_cpus=1)
        def trained(recipe: str, root: str) -> None:
            from hopscope.configs import read_recipe
            from hopscope.runs import train

            train(read_recipe(recipe), Store(root), "cpu", threads=1)

        texts = [each.written().decode() for each in asked]
        ray.get([trained.remote(text, str(store.root.absolute())) for text in texts])


def start_up(asked: list[Experiment]) -> dict[str, float]:
    """Seconds of one run alone: here, over a Ray of our own, and over one that is there already."""
    found = {"Here": seconds(asked, by(Here(threads=1))), "Cluster": seconds(asked, by(Cluster()))}
    with connected(LOCAL):
        pool = by(Cluster("auto"))
        seconds(asked, pool)
        found["Cluster, Ray there"] = seconds(asked, pool)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=64)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        os.environ["HOPSCOPE_CACHE"] = cache
        many, one = recipes(chosen.runs, chosen.steps), recipes(1, chosen.steps)
        ways = {
            "one by one": by(Here(threads=chosen.workers)),
            f"Processes({chosen.workers}), packed": by(Processes(chosen.workers)),
            f"Processes({chosen.workers})": by(Processes(chosen.workers, 1)),
            "plain Ray": plain_ray,
        }
        taken = {name: seconds(many, act) for name, act in ways.items()}
        told(chosen.runs, chosen.steps, taken)
        told(1, chosen.steps, start_up(one))


def told(runs: int, steps: int, taken: dict[str, float]) -> None:
    """A row for each way, beside the first one."""
    first = next(iter(taken.values()))
    for name, each in taken.items():
        row = {"benchmark": "many_runs", "way": name, "runs": runs, "steps": steps}
        print(json.dumps(row | {"seconds": round(each, 1), "ratio": round(each / first, 3)}))


if __name__ == "__main__":
    main()
