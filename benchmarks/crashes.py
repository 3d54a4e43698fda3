"""A crash before, in the middle of and after every system call, and what the next call makes of it.

    python benchmarks/crashes.py [--only training] [--every 10] [--jobs 2]
    python benchmarks/crashes.py --trial "training 57 kill half"

For training, the n-gram experiment, a benchmark, a copy from the gallery, discovery and removal:
the process is killed before the first call that changes a file, halfway through each write, and
after each change (which is before the next one); the disk is full from each call on that needs
space; each call that reads or changes files fails once with an I/O error; the power is cut between
any two calls (power_cuts.py says what that may leave). Then the same command is given again, and
every committed byte must be as if nothing had happened. Faults that are reported must end in one
line, not in a traceback. Two rows more come from the log of calls alone: which manifests named what
was not flushed yet, and what a power cut takes after the command has returned.

What the C library calls inside itself (reading folders, stat) is not spoiled. Prints a JSON row
for each command and for each kind of failure, with trials that show it; exit code 1 if one is left.
"""

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import children
import power_cuts
import small_runs
import system_calls
from children import Outcome, child, hopscope
from small_runs import make, transformer
from system_calls import CHANGES, SPACE, Call

from hopscope.errors import HopscopeError
from hopscope.store import Store

FAULTS = {
    "kill before": system_calls.KILL_BEFORE,
    "kill half": system_calls.KILL_HALF,
    "kill after": system_calls.KILL_AFTER,
    "disk full": system_calls.NO_SPACE,
    "I/O error": system_calls.IO_ERROR,
}
SHOWN = 5
"""Trials named for each kind of failure."""
Runs = dict[str, dict[str, bytes]]


@dataclass(frozen=True)
class Operation:
    """A command, and the folder as it finds it."""

    name: str
    arguments: tuple[str, ...]
    before: Path
    """Holds the folders `runs` and `tmp`."""
    restored_by: tuple[str, ...] = ()
    """The command that must lead to the same bytes again where this one removes them."""

    def call(self, work: Path, arguments: tuple[str, ...] | None = None) -> int:
        """In a child: the command, in a folder like `before`."""
        os.chdir(work)
        tempfile.tempdir = str(work / "tmp")
        return hopscope(*(arguments or self.arguments))


@dataclass(frozen=True)
class Trial:
    """One fault at one call, or one state that a power cut left."""

    operation: str
    number: int
    fault: str
    state: power_cuts.State | None = None

    def __str__(self) -> str:
        return f"{self.operation} {self.number} {self.fault}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", action="append", help="a command, e.g. training")
    parser.add_argument("--trial", help="one trial alone, as failures name it")
    parser.add_argument("--every", type=int, default=1, help="every so many trials")
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    system_calls.preload()
    with children.scratch() as folder, small_runs.endpoint() as url:
        root = Path(folder)
        children.prepare(root / "warm", url)
        failed = False
        for operation in operations(root, url):
            if chosen.trial and not chosen.trial.startswith(operation.name + " "):
                continue
            if chosen.only and operation.name not in chosen.only:
                continue
            failed |= examine(operation, root, chosen)
    sys.exit(int(failed))


def operations(root: Path, url: str) -> Iterator[Operation]:
    """All commands, in their folders."""
    given, recipe = root / "given", transformer()
    for name in ("empty", "trained"):
        (given / name / "runs").mkdir(parents=True)
        (given / name / "tmp").mkdir()
    (given / "empty" / "runs").rmdir()
    file = given / "experiment.json"
    file.write_text(recipe.canonical_json())
    train = ("train", str(file), "--store", "runs", "--device", "cpu", "--threads", "1")
    child(lambda: make(recipe, Store(given / "trained" / "runs")) and 0)
    yield Operation("training", train, given / "empty")
    numbers = "--alphabet 2 --length 12 --heads 2 --window 2 --stages CW,a --epochs 4 4"
    more = "--chains 24 --validation-chains 12 --records 2 --threads 1 --store runs"
    yield Operation("ngram", ("markov", "train", *f"{numbers} {more}".split()), given / "empty")
    asked = "--formulations f1 --hops 2 --questions 40 --protocol greedy --template raw"
    bench = ("llm", "bench", "--model", f"{url}#fake", *asked.split(), "--store", "runs")
    yield Operation("bench", bench, given / "empty")
    yield Operation("copy", ("gallery", "copy", "ngram", "--store", "runs"), given / "empty")
    run, options = recipe.run_name(), ("--all", "--force", "--examples", "16", "--store", "runs")
    yield Operation("discover", ("discover", run, *options), given / "trained")
    yield Operation("rm", ("rm", run, "--store", "runs"), given / "trained", train)


def examine(operation: Operation, root: Path, chosen: argparse.Namespace) -> bool:
    """All trials of a command, in rows; True if one went wrong."""
    work, log = root / "work-log", root / "calls"
    shutil.copytree(operation.before, work)
    recorded = system_calls.recording(work, log, lambda: operation.call(work))
    outcome = child(recorded)
    if outcome.code:
        raise SystemExit(f"{operation.name} fails by itself: {outcome.err}")
    goal, calls = goal_of(operation, work), system_calls.read_log(log)
    shutil.rmtree(work)
    trials = [*faults(operation, calls), *cuts(operation, calls, work)]
    if chosen.trial:
        trials = [trial for trial in trials if str(trial) == chosen.trial]
    trials = trials[:: chosen.every]
    rows = list(
        children.spread(trials, lambda trial: attempt(trial, operation, goal, root), chosen.jobs)
    )
    if chosen.trial:
        print(json.dumps(rows, indent=1))
    flushes = order(operation, calls, work, goal)
    failures = [*grouped(rows), *flushes]
    changing = sum(call.op in CHANGES for call in calls)
    row = {"benchmark": "crashes", "command": operation.name, "calls": len(calls)}
    row |= {"calls_that_change": changing, "trials": len(rows)}
    row |= {"ended_the_same": sum(row["same"] for row in rows)}
    row |= {"left_something_behind": sum(row["left"] > 0 for row in rows)}
    print(json.dumps(row | {"kinds_of_failure": len(failures)}), flush=True)
    for failure in failures:
        print(json.dumps(failure, ensure_ascii=False), flush=True)
    return bool(failures)


def goal_of(operation: Operation, work: Path) -> Runs:
    """What must be there in the end."""
    if operation.restored_by:
        outcome = child(lambda: operation.call(work, operation.restored_by))
        assert outcome.code == 0, outcome.err
    found, problems = committed(work / "runs")
    assert not problems, problems
    return found


def faults(operation: Operation, calls: list[Call]) -> Iterator[Trial]:
    """Every call with every fault that it can have."""
    first = next(call for call in calls if call.op in CHANGES)
    for call in calls:
        possible = ["I/O error"]
        if call.op in SPACE:
            possible.append("disk full")
        if call == first:
            possible.append("kill before")
        if call.op in CHANGES and call.op != "fsync":
            possible.append("kill after")
        if call.op == "write" and len(call.data) > 1:
            possible.append("kill half")
        for fault in possible:
            yield Trial(operation.name, call.number, fault)


def cuts(operation: Operation, calls: list[Call], work: Path) -> Iterator[Trial]:
    """Every state that a power cut may leave; what lies in $TMPDIR is lost."""
    shutil.copytree(operation.before, work)
    for name, state in power_cuts.states(work, calls):
        kept = {path: data for path, data in state.items() if not path.startswith("tmp")}
        yield Trial(operation.name, int(name.split()[-1]), f"power cut, {name}", kept)
    shutil.rmtree(work)


def attempt(trial: Trial, operation: Operation, goal: Runs, root: Path) -> dict[str, Any]:
    """One trial: what went wrong, if anything did."""
    work, problems = Path(tempfile.mkdtemp(prefix="work-", dir=root)), []
    if trial.state is None:
        shutil.copytree(operation.before, work, dirs_exist_ok=True)
        problems.append(spoiled(trial, child(lambda: _spoil(trial, operation, work))))
    else:
        power_cuts.write(trial.state, work)
        (work / "tmp").mkdir()
    again = child(lambda: operation.call(work))
    problems.append(ended("the next call", again))
    if again.code and not (trial.operation in ("copy", "rm") and again.code == 2):
        problems.append(f"the next call fails: {children.plain(again.err)}")
    if operation.restored_by:
        restored = child(lambda: operation.call(work, operation.restored_by))
        problems.append(ended("training again", restored))
    difference, left = compared(work / "runs", goal)
    problems = [problem for problem in (*problems, difference) if problem]
    shutil.rmtree(work)
    return {"trial": str(trial), "problems": problems, "same": not difference, "left": left}


def _spoil(trial: Trial, operation: Operation, work: Path) -> int:
    system_calls.arm(work, trial.number, FAULTS[trial.fault])
    return operation.call(work)


def spoiled(trial: Trial, outcome: Outcome) -> str:
    """What is wrong with how the spoiled process itself ended."""
    if trial.fault.startswith("kill"):
        return "" if outcome.code == -9 else "the fault was not reached"
    return ended(trial.fault, outcome)


def ended(what: str, outcome: Outcome) -> str:
    """A traceback, or a failure without a line."""
    if outcome.crashed:
        return f"{what}: traceback or signal {outcome.code}: {children.plain(outcome.err)}"
    if outcome.code and not outcome.told:
        return f"{what}: exit code {outcome.code} without a word"
    return ""


def committed(store: Path) -> tuple[Runs, list[str]]:
    """All that the manifests name, and what cannot be read."""
    runs, problems = Store(store).readable()
    found: Runs = {}
    for run in runs:
        try:
            found[run.name] = {name: run.read(name) for name in run.manifest.files}
        except HopscopeError as error:
            problems.append(str(error))
        manifest = (run.path / "manifest.json").read_bytes()
        found.setdefault(run.name, {})["manifest.json"] = small_runs.timeless(manifest)
    return found, problems


def compared(store: Path, goal: Runs) -> tuple[str, int]:
    """What is not as it should be; and how many files are there that no manifest names."""
    found, problems = committed(store)
    named = sum(map(len, found.values()))
    left = len(small_runs.files(store)) - named if store.exists() else 0
    if problems:
        return f"unreadable in the end: {children.plain(problems[0])}", left
    if found.keys() != goal.keys():
        return f"runs in the end: {sorted(found)}, expected {sorted(goal)}", left
    for run, files in goal.items():
        if files != found[run]:
            names = {name for name, data in files.items() if found[run].get(name) != data}
            return f"other bytes in the end: {sorted(names | (found[run].keys() - files))}", left
    return "", left


def order(
    operation: Operation, calls: list[Call], work: Path, goal: Runs
) -> Iterator[dict[str, Any]]:
    """What manifests named before it was flushed; what is lost when the command has returned."""
    shutil.copytree(operation.before, work)
    disk, early, renames = power_cuts.Disk(work), defaultdict(list), 0
    for call in calls:
        disk.follow(call)
        if call.op == "rename" and call.other.endswith("/manifest.json"):
            renames += 1
            folder = str(Path(call.other).parent)
            names = [*json.loads(disk.content(call.other))["files"]]
            for problem in disk.unflushed(folder, names):
                early[re.sub(r"\d+", "#", problem)].append(str(call.number))
    base = {"command": operation.name, "failure": "named before it was flushed"}
    for problem, numbers in early.items():
        shown = f"{len(set(numbers))} of {renames} manifests, at calls {', '.join(numbers[:SHOWN])}"
        yield base | {"what": problem, "where": shown}
    shutil.rmtree(work)
    power_cuts.write(disk.after_cut("strict"), work)
    if not operation.restored_by:
        difference, _ = compared(work / "runs", goal)
    else:
        difference = ", ".join(committed(work / "runs")[0])
    shutil.rmtree(work)
    if difference:
        lost = "a power cut after the command has returned takes its work"
        yield {"command": operation.name, "failure": lost, "what": difference}


def grouped(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Failures by their text."""
    kinds = defaultdict(list)
    for row in rows:
        for problem in row["problems"][:1]:
            kinds[problem].append(row["trial"])
    for problem, trials in sorted(kinds.items(), key=lambda item: -len(item[1])):
        yield {"failure": problem, "trials": len(trials), "e.g.": trials[:SHOWN]}


if __name__ == "__main__":
    main()
