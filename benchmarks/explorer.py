"""Response times of the explorer's server.

    python benchmarks/explorer.py [--runs 1000] [--clicks 100]

With a store of `--runs` runs: the time for the table of runs on the first request, on the second,
and without changes; memory without an open model; processor time without requests. Then clicks,
over HTTP: the loss with one head switched off, a different head each time, on 256 examples, for the
demo and for transformer A. Prints a JSON row for each.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from explorer_server import Server, started
from rows import print_row

from hopscope.configs import Experiment, Model, Retrieval, Training
from hopscope.store import RunFolder, Store
from hopscope.training import train

TRAINING = Training(
    steps=4, batch=8, examples=64, checkpoint_every=3, validate_every=3, validation_examples=16,
    precision="float32",
)  # fmt: skip
IDLE = 20.0
"""For how many seconds an idle server is observed."""


def recipe(seed: int) -> Experiment:
    """The recipe of a small model."""
    task, model = Retrieval(hops=1, chains=2), Model(layers=2, heads=1, d_model=16)
    return Experiment(task=task, model=model, training=TRAINING, seeds=(seed,))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--clicks", type=int, default=100)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "runs")
        make_runs(root, chosen.runs)
        with started(root) as server:
            print_row(table(server, chosen.runs))
            print_row(idle(server))
            for name in ("demo", "transformer-a"):
                print_row(clicks(server, name, chosen.clicks))


def make_runs(root: Path, count: int) -> None:
    """Create `count` runs: copies of a trained run with different seeds."""
    store = Store(root)
    first = train(recipe(0), store).folder
    for seed in range(1, count):
        made = store.create(recipe(seed))
        for name in first.manifest.files:
            if name != "config.json":
                target = made.path / name
                target.parent.mkdir(exist_ok=True)
                shutil.copyfile(first.path / name, target)
        _commit_as(made, first)


def _commit_as(made: RunFolder, first: RunFolder) -> None:
    """Write the manifest of `first`, with the name and config of `made`."""
    own = made.manifest.files["config.json"]
    files = {**first.manifest.files, "config.json": own}
    manifest = first.manifest.model_copy(update={"name": made.manifest.name, "files": files})
    (made.path / "manifest.json").write_bytes(manifest.to_bytes())


def table(server: Server, count: int) -> dict[str, object]:
    """Times for the table of runs: its first portion, the whole table, a request for changes."""
    first, portion = _timed(lambda: server.ask("/api/runs"))
    whole, (rows, cursor) = _timed(lambda: _all_rows(server, portion))
    unchanged, none = _timed(lambda: server.ask(f"/api/runs?since={cursor}"))
    assert rows > count
    assert none["rows"] == []
    return {
        "benchmark": "explorer table",
        "runs": count,
        "first_ms": first,
        "first_rows": len(portion["rows"]),
        "whole_ms": round(first + whole, 1),
        "unchanged_ms": unchanged,
        "mb": server.held()["mb"],
    }


def _all_rows(server: Server, portion: dict) -> tuple[int, str]:
    """The total number of rows, requested as the page does, and the last cursor."""
    rows = len(portion["rows"])
    while portion.get("more"):
        portion = server.ask(f"/api/runs?since={portion['cursor']}")
        rows += len(portion["rows"])
    return rows, portion["cursor"]


def idle(server: Server) -> dict[str, object]:
    """The processor time without requests."""
    before = sum(server.process.cpu_times()[:2])
    time.sleep(IDLE)
    used = sum(server.process.cpu_times()[:2]) - before
    return {"benchmark": "explorer idle", "seconds": IDLE, "percent": round(100 * used / IDLE, 2)}


def clicks(server: Server, name: str, count: int) -> dict[str, object]:
    """Times from a click to new losses, for a different head or change each time."""
    path = f"/api/runs/gallery-{name}"
    model = server.ask(path)["model"]
    heads = [(at, head) for at in range(model["layers"]) for head in range(model["heads"])]
    ways = ("uniform", "itself", "previous")
    changes = [f"{at}.{head}={way}" for way in ways for at, head in heads]
    opening, _ = _timed(lambda: server.ask(f"{path}/ablate", {"examples": 255, "changes": []}))
    spent = []
    for number in range(count):
        pair = [changes[number % len(changes)], changes[(7 * number + 1) % len(changes)]]
        asked = pair if number >= len(changes) else pair[:1]
        question = {"examples": 256, "changes": asked}
        milliseconds, _ = _timed(lambda: server.ask(f"{path}/ablate", question))  # noqa: B023
        spent.append(milliseconds)
    return {
        "benchmark": "explorer click",
        "model": name,
        "clicks": count,
        "opening_ms": opening,
        "median_ms": round(statistics.median(spent), 1),
        "p95_ms": round(statistics.quantiles(spent, n=20)[-1], 1),
        "mb": server.held()["mb"],
    }


def _timed(work) -> tuple[float, Any]:
    begun = time.perf_counter()
    found = work()
    return round(1_000 * (time.perf_counter() - begun), 1), found


if __name__ == "__main__":
    main()
