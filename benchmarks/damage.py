"""Damage to files of runs of all kinds, and what every command that takes a run says about it.

    python benchmarks/damage.py [--each 200] [--jobs 2] [--rows FILE]
    python benchmarks/damage.py --trial "bit flip 17"

So many truncations, bit flips, zeroed blocks, removed and swapped files, spread over all files of
complete and of stopped runs of four kinds. Every command must then do one of these:

    found       it ends with exit code 1, 2 or 3 and one line on stderr
    said        it does its work without what is damaged, and says so in a line on stderr
    no matter   it says, writes and leaves behind what it does of the undamaged run

`verify` may do the first alone; `runs` and `sql` must go on to list the other run of the store. A
command that opens none of the damaged files in the undamaged run is not called (`not read`), except
where files are gone. Prints a JSON row of all numbers, and one for each kind of failure, with
trials that show it; exit code 1 if there is one.
"""

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import children
import small_runs
import system_calls
from children import Outcome, child, hopscope
from small_runs import make, recipe
from system_calls import logged, read_log

from hopscope.configs import Experiment, Recipe
from hopscope.store import Store

DAMAGES = ("truncation", "bit flip", "zeroed block", "removed", "swapped")
STOPS = {"transformer": 4, "fleet": 4, "ngram": 5, "bench": 20}
BLOCK = 512
LONGEST = 1_000
"""Characters of a line on stderr that one can still read."""
SHOWN = 5
METRICS = "select run, split, step, seed, hop, loss from metrics order by all"
PARAMETERS = "select run, seed, step, name, value from parameters order by all"
RUNS = "select name, step, complete, seeds, config from runs order by all"


@dataclass(frozen=True)
class Command:
    """A command line; RUN stands for the run's name."""

    name: str
    arguments: str
    writes: bool = False
    """Does it change the run?"""

    def call(self, run: str) -> int:
        """In a child, in the folder of a trial."""
        words = [run if word == "RUN" else word for word in self.arguments.split(" ")]
        return hopscope(*[word.replace("~", " ") for word in words], "--store", "runs")


@dataclass(frozen=True)
class Subject:
    """A run to be damaged, in a store with one other run and a sibling of its kind."""

    name: str
    run: str
    sibling: str
    neighbour: str
    folder: Path
    commands: tuple[Command, ...]
    references: "dict[str, Reference]"


@dataclass(frozen=True)
class Reference:
    """What a command does of the undamaged run."""

    outcome: Outcome
    written: dict[str, bytes]
    left: dict[str, bytes]
    opened: frozenset[str]
    """Files of the run."""


def sql(query: str) -> str:
    return f"sql {query.replace(' ', '~')} --csv"


EVERY = (
    Command("runs", "runs"),
    Command("show", "show RUN"),
    Command("sql runs", sql(RUNS)),
    Command("sql metrics", sql(METRICS)),
    Command("verify", "verify RUN"),
    Command("rm", "rm RUN", writes=True),
)
MODEL = (
    Command("resume", "resume RUN --device cpu --threads 1", writes=True),
    Command("show figure", "show RUN --figure out/losses.svg"),
    Command("maps", "maps RUN --examples 8 --figure out/maps.svg --out out/maps.json"),
    Command("discover", "discover RUN --all --force --examples 16", writes=True),
    Command("ablate", "ablate RUN --examples 8 --out out/ablate.json"),
    Command("ablate circuit", "ablate RUN --examples 8 --circuit"),
    Command("emergence", "emergence RUN --figure out/emergence.svg --out out/emergence.json"),
    Command("emergence all", "emergence RUN --all"),
    Command("circuit show", "circuit show RUN"),
    Command("circuit export", "circuit export RUN --out out/circuit.json"),
    Command("circuit edges", "circuit export RUN --format edges --out out/edges.json"),
)
NGRAM = (
    Command("resume", "resume RUN --threads 1", writes=True),
    Command("sql parameters", sql(PARAMETERS)),
    Command("markov figures", "markov figures RUN --out out"),
    Command("markov transfer", "markov transfer RUN --lengths 10 --alphas 0.5 --chains 20"),
)
BENCH = (
    Command("resume", "resume RUN", writes=True),
    Command("llm show", "llm show RUN"),
    Command("llm figure", "llm show RUN --figure out/accuracy.svg"),
    Command("llm answers", "llm show RUN --answers"),
    Command("llm json", "llm show RUN --json"),
)
COMMANDS = {"transformer": MODEL, "learned": MODEL, "fleet": MODEL, "ngram": NGRAM, "bench": BENCH}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--each", type=int, default=200, help="of each kind of damage")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trial", help="one trial alone, as failures name it")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rows", type=Path, help="keep each trial's row here, and go on from it")
    chosen = parser.parse_args()
    system_calls.preload()
    with children.scratch() as folder, small_runs.endpoint() as url:
        root = Path(folder)
        children.prepare(root / "warm", url)
        subjects = list(made(root, url))
        trials = [f"{damage} {n}" for damage in DAMAGES for n in range(chosen.each)]
        if chosen.trial:
            trials = [chosen.trial]
        rows = list(
            children.kept(
                chosen.rows,
                trials,
                lambda trial: attempt(trial, chosen.seed, subjects, root),
                chosen.jobs,
                f"seed {chosen.seed}",
            )
        )
    if chosen.trial:
        print(json.dumps(rows, indent=1))
    sys.exit(int(report(rows)))


def made(root: Path, url: str) -> Iterator[Subject]:
    """Runs of all kinds, complete and stopped, each in a store of its own."""
    for named in small_runs.KINDS:
        for stop in (None, STOPS[named]):
            kind = "learned" if named == "transformer" and stop is None else named
            folder = root / f"{kind}-{stop}"
            near = "ngram" if named == "transformer" else "transformer"
            alike, other = (recipe(kind, url), recipe(kind, url, 10)), recipe(near, url, 20)
            outcome = child(lambda: build(folder, alike, other, stop), 300)  # noqa: B023
            if outcome.code:
                raise SystemExit(f"cannot make {kind}: {outcome.err}")
            names = [each.run_name() for each in (*alike, other)]
            name = f"{kind} {'complete' if stop is None else 'stopped'}"
            subject = Subject(name, *names, folder, (*EVERY, *COMMANDS[kind]), {})
            for command in subject.commands:
                subject.references[command.name] = reference(subject, command, root)
            yield subject


def build(folder: Path, alike: Sequence[Recipe], near: Recipe, stop: int | None) -> int:
    """In a child: runs of one kind, where there can be circuits with them, and another run."""
    (folder / "out").mkdir(parents=True)
    os.chdir(folder)
    store = Store("runs")
    runs = [make(each, store, stop) for each in alike]
    make(near, store)
    if isinstance(alike[0], Experiment):
        discover = next(each for each in MODEL if each.name == "discover")
        return max(discover.call(run.name) for run in runs)
    return 0


def reference(subject: Subject, command: Command, root: Path) -> Reference:
    """What the command does of the undamaged run, and which files it opens for it."""
    work, log = _copy(subject, root), root / "opened"

    def call() -> int:
        os.chdir(work)
        with logged(work / "runs" / subject.run, log, data=False):
            return command.call(subject.run)

    outcome = child(call)
    if outcome.crashed:
        raise SystemExit(f"{command.name} of {subject.name} fails by itself: {outcome.err}")
    prefix = f"{work}/runs/{subject.run}/"
    opened = {call.path.removeprefix(prefix) for call in read_log(log)}
    found = Reference(outcome, *_left(work), frozenset(opened))
    shutil.rmtree(work)
    return found


def _copy(subject: Subject, root: Path) -> Path:
    work = Path(tempfile.mkdtemp(prefix="work-", dir=root))
    return shutil.copytree(subject.folder, work, dirs_exist_ok=True)


def _left(work: Path) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """What was written beside the store, and what is in it."""
    return small_runs.files(work / "out"), small_runs.files(work / "runs")


def damage(trial: str, seed: int, subject: Subject, store: Path) -> tuple[list[str], str]:
    """Damage a file or two of the run: which, and how, in words."""
    kind, chance = trial.rpartition(" ")[0], Random(f"{trial} {seed}")
    folder = store / subject.run
    names = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
    name = chance.choice([each for each in names if each != ".lock"])
    data = bytearray((folder / name).read_bytes())
    if kind == "removed":
        (folder / name).unlink()
        return [name], f"{name} removed"
    if kind == "swapped":
        return _swapped(subject, store, name, names, chance)
    at = chance.randrange(len(data))
    if kind == "truncation":
        del data[at:]
    elif kind == "bit flip":
        data[at] ^= 1 << chance.randrange(8)
    else:
        size = min(chance.randrange(1, BLOCK), len(data) - at)
        data[at : at + size] = bytes(size)
    (folder / name).write_bytes(data)
    return [name], f"{name}: {kind} at byte {at}"


def _swapped(
    subject: Subject, store: Path, name: str, names: list[str], chance: Random
) -> tuple[list[str], str]:
    """Contents exchanged with another file of the run, or with the sibling's of the same name."""
    folder, sibling = store / subject.run, store / subject.sibling / name
    others = [each for each in names if each not in (name, ".lock")]
    other = folder / chance.choice(others)
    if chance.random() < 0.5 and sibling.exists():
        other = sibling
    one, two = (folder / name).read_bytes(), other.read_bytes()
    (folder / name).write_bytes(two)
    other.write_bytes(one)
    touched = [name] if other == sibling else [name, str(other.relative_to(folder))]
    return touched, f"{name} swapped with {other.relative_to(store)}"


def attempt(trial: str, seed: int, subjects: list[Subject], root: Path) -> dict[str, Any]:
    """One damage, and every command."""
    subject = subjects[int(trial.rpartition(" ")[2]) % len(subjects)]
    results, damaged = [], _copy(subject, root)
    before = small_runs.raw(damaged / "runs")
    touched, how = damage(trial, seed, subject, damaged / "runs")
    changed = small_runs.raw(damaged / "runs") != before
    inside = [f"{subject.run}/{name}" for name in touched]
    for command in subject.commands:
        known = subject.references[command.name]
        if not changed or ("removed" not in trial and known.opened.isdisjoint(touched)):
            results.append((command.name, "not read", ""))
            continue
        work = Path(tempfile.mkdtemp(prefix="work-", dir=root))
        shutil.copytree(damaged, work, dirs_exist_ok=True)
        outcome = child(lambda: _called(work, command, subject.run))  # noqa: B023
        found, problem = judged(command, subject, outcome, work, inside)
        results.append((command.name, found, problem))
        shutil.rmtree(work)
    shutil.rmtree(damaged)
    return {"trial": trial, "subject": subject.name, "damage": how, "results": results}


def _called(work: Path, command: Command, run: str) -> int:
    os.chdir(work)
    return command.call(run)


def judged(
    command: Command, subject: Subject, outcome: Outcome, work: Path, touched: list[str]
) -> tuple[str, str]:
    """What became of it, and what is wrong with that."""
    known, told = subject.references[command.name], outcome.told
    problem = _manners(command, subject, outcome)
    if outcome.code in (1, 2, 3) and told:
        return "found", problem
    written, left = _left(work)
    hoped = known.left
    if command.name != "resume" or "complete" in subject.name:  # what it need not touch may stay
        hoped = {
            **hoped,
            **{name: left[name] for name in touched if name in left and name in hoped},
        }
        hoped = {name: data for name, data in hoped.items() if name in left or name not in touched}
    parts = {
        "exit code": outcome.code == known.outcome.code,
        "output": timeless(outcome.out) == timeless(known.outcome.out),
        "files written": written == known.written,
        "what is left in the store": not command.writes
        or _of(left, subject) == _of(hoped, subject),
    }
    other = [name for name, same in parts.items() if not same]
    if command.name == "verify" and not problem:
        problem = "damage is not found"
    if not other or problem:
        return "no matter", problem
    if told:
        return "said", ""
    return "silent", f"without a word, another {other[0]}"


def _manners(command: Command, subject: Subject, outcome: Outcome) -> str:
    """A traceback, too many or too long words, another run lost."""
    if outcome.crashed:
        return f"traceback or signal {outcome.code}: {children.plain(outcome.err)}"
    strange = [
        line for line in outcome.err.splitlines() if not line.startswith(("hopscope: ", "["))
    ]
    if strange:
        return f"other words on stderr: {children.plain(strange[0])}"
    if outcome.code and not outcome.told:
        return f"exit code {outcome.code} without a word"
    if any(len(line) > LONGEST for line in outcome.told):
        return "a message of more than 1,000 characters"
    lists = command.name == "runs" or command.name.startswith("sql")
    known = subject.references[command.name].outcome.out
    if lists and subject.neighbour in known and subject.neighbour not in outcome.out:
        return f"the other run is no longer listed: {children.plain(outcome.err)}"
    return ""


def _of(files: dict[str, bytes], subject: Subject) -> dict[str, bytes]:
    """The run's files: what was swapped with its sibling stays swapped there."""
    return {name: data for name, data in files.items() if name.startswith(f"{subject.run}/")}


def timeless(text: str) -> str:
    """Without the seconds that something took, and the lines that tell how fast it goes."""
    lines = [line for line in text.splitlines() if "/s ·" not in line]
    return re.sub(r"\d[\d.,]* s\b", "# s", "\n".join(lines))


def report(rows: list[dict[str, Any]]) -> bool:
    """Print the numbers, and what went wrong by kind; True if something did."""
    became: Counter[str] = Counter()
    kinds = defaultdict(list)
    for row in rows:
        for command, found, problem in row["results"]:
            became[found] += 1
            if problem:
                where = f"{row['trial']} ({row['subject']}; {row['damage']})"
                kinds[command, problem].append(where)
    head = {"benchmark": "damage", "damages": len(rows), "calls": sum(became.values())}
    failed = sum(map(len, kinds.values()))
    print(json.dumps(head | dict(became) | {"failed": failed, "kinds_of_failure": len(kinds)}))
    for (command, problem), where in sorted(kinds.items(), key=lambda item: -len(item[1])):
        row = {"command": command, "failure": problem, "times": len(where), "e.g.": where[:SHOWN]}
        print(json.dumps(row, ensure_ascii=False))
    return bool(kinds)


if __name__ == "__main__":
    main()
