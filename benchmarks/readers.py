"""Four trainings beside seven kinds of readers, in loops: every call succeeds and sees every run.

    python benchmarks/readers.py [--seconds 60]

Each trainer trains one small model after the other, with a commit every few steps and the metrics
merged at the end of each; a run that it has made is noted before anybody is asked for it. Each
reader asks again and again: `runs`, `show`, `sql` and `verify` at the command line; losses, models
of checkpoints and `Store.find` from Python. It must succeed, say nothing on stderr, and see every
run that was noted when it began. Prints a JSON row, and one for each kind of failure; exit code 1
if there is one.
"""

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import children
import small_runs
from children import child, hopscope
from small_runs import transformer

from hopscope.store import RunFolder, Store
from hopscope.training import Run, train

TRAINERS = 4
STEPS = 40
SHOWN = 5
QUERY = (
    "select r.name, count(m.step) from runs r left join metrics m on m.run = r.name group by all"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    chosen = parser.parse_args()
    with children.scratch() as folder, small_runs.endpoint() as url:
        root = Path(folder)
        children.prepare(root / "warm", url)
        (root / "made").mkdir()
        end = time.monotonic() + chosen.seconds
        works: list[Callable[[], dict[str, Any]]] = [
            lambda number=number: training(number, root, end) for number in range(TRAINERS)
        ]
        works += [lambda name=name: reading(name, root, end) for name in READERS]
        rows = list(children.spread(works, lambda work: work(), len(works)))
        rows += [finished(root)]
    sys.exit(int(report(rows, chosen.seconds)))


def training(number: int, root: Path, end: float) -> dict[str, Any]:
    """Train one model after the other, and note each as soon as it is there."""
    store, failures, count = Store(root / "runs"), Counter[str](), 0
    while time.monotonic() < end:
        experiment = transformer(seed=1_000 * number + count, steps=STEPS)
        noted = _Noting(root / "made" / experiment.run_name())
        outcome = child(lambda: _train(experiment, store, noted), 600)  # noqa: B023
        if outcome.code or outcome.err:
            failures[f"exit code {outcome.code}: {children.plain(outcome.err)}"] += 1
        count += 1
    return {"who": "training", "calls": count, "failures": failures}


def _train(experiment: Any, store: Store, noted: "_Noting") -> int:
    return 0 if train(experiment, store, "cpu", noted).folder.manifest.complete else 1


class _Noting(small_runs.Stopper):
    """A watcher that notes that the run is there."""

    def __init__(self, mark: Path) -> None:
        super().__init__(at=2**31)
        self.mark = mark

    def start(self, folder: RunFolder, step: int) -> None:  # noqa: ARG002
        self.mark.touch()


def reading(name: str, root: Path, end: float) -> dict[str, Any]:
    """Ask until the end."""
    failures, count, chance = Counter[str](), 0, random.Random(name)
    while time.monotonic() < end:
        made = sorted(path.name for path in (root / "made").iterdir())
        if not made:
            time.sleep(0.05)
            continue
        run = chance.choice(made[-8:] if count % 2 else made)
        outcome = child(lambda: READERS[name](root / "runs", run), 600)  # noqa: B023
        count += 1
        if outcome.code or outcome.err:
            failures[f"exit code {outcome.code}: {children.plain(outcome.err)}"] += 1
        elif name in LISTING and (unseen := [each for each in made if each not in outcome.out]):
            failures[f"does not see {len(unseen)} of the runs"] += 1
    return {"who": name, "calls": count, "failures": failures}


def _losses(store: Path, run: str) -> int:
    steps, values = Run(Store(store).find(run)).losses("train")
    assert len(steps) == len(values) <= STEPS
    assert list(steps) == list(range(1, len(steps) + 1))
    return 0


def _model(store: Path, run: str) -> int:
    found = Run(Store(store).find(run))
    if found.checkpoints:
        found.model_at(random.choice(found.checkpoints))
    return 0


def _find(store: Path, run: str) -> int:
    assert Store(store).find(run).name == run
    print(*Store(store).names())
    return 0


READERS: dict[str, Callable[[Path, str], int]] = {
    "runs": lambda store, _: hopscope("runs", "--store", store),
    "show": lambda store, run: hopscope("show", run, "--store", store),
    "sql": lambda store, _: hopscope("sql", QUERY, "--csv", "--store", store),
    "verify": lambda store, run: hopscope("verify", run, "--store", store),
    "losses": _losses,
    "model_at": _model,
    "find": _find,
}
LISTING = ("runs", "sql", "find")
"""Those that tell of every run."""


def finished(root: Path) -> dict[str, Any]:
    """In the end all runs are whole."""
    runs, problems = Store(root / "runs").readable()
    problems += [problem for run in runs for problem in run.verify()]
    problems += [f"{run.name} is not complete" for run in runs if not run.manifest.complete]
    failures = Counter(map(children.plain, problems))
    return {"who": "the runs in the end", "calls": len(runs), "failures": failures}


def report(rows: list[dict[str, Any]], seconds: float) -> bool:
    """Print the numbers, and what went wrong by kind; True if something did."""
    calls: Counter[str] = Counter()
    kinds: Counter[tuple[str, str]] = Counter()
    for row in rows:
        calls[row["who"]] += row["calls"]
        for failure, count in row["failures"].items():
            kinds[row["who"], failure] += count
    head = {"benchmark": "readers", "seconds": seconds, "calls": dict(calls)}
    print(json.dumps(head | {"failed": kinds.total(), "kinds_of_failure": len(kinds)}))
    for (who, failure), count in kinds.most_common():
        print(json.dumps({"who": who, "failure": failure, "times": count}, ensure_ascii=False))
    return bool(kinds)


if __name__ == "__main__":
    main()
