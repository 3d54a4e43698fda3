"""Commands on forged run folders: no traceback, no hang, no great memory, nothing touched outside.

    python benchmarks/forged.py [--trials 10000] [--seed 0] [--commands 3] [--jobs 2]
        [--rows FILE]
    python benchmarks/forged.py --only 4711

Each trial forges one thing or two in a run folder (forgeries.py, forged_files.py): manifests,
configs, circuits, checkpoints, answers and Parquet files changed in their structure, links, pipes,
devices, files of 30 GB that are one hole. Some commands that take a run are then called, readers
first, those that draw less often than others (with --only, all of them). Failures are: a traceback;
more than 10 s or 1 GB; another exit code than 0 to 3; words on stderr that are no line of ours, or
a line that is too long; control characters in what is said; an open outside the run (in the secret
folder beside the store, of a device); anything changed there, in the other run or in a file of the
user's; the other run no longer listed.

Prints a JSON row of numbers, and one for each kind of failure with trials that show it; exit code 1
if there is one. Needs root for devices; without, they are pipes.
"""

import argparse
import json
import os
import re
import resource
import shutil
import signal
import stat
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import children
import damage
import small_runs
import system_calls
from children import child
from damage import COMMANDS, EVERY, Command
from forged_files import World
from forged_values import parquet_files
from forgeries import forge
from small_runs import recipe
from system_calls import Call, logged, read_log

SECONDS = 10
"""Of the processor, for one command."""
HANGS = 25
"""Seconds by the clock after which a command is killed; more, as the machine may be busy."""
MEGABYTES = 1_024
ADDRESSES = 10 * 2**30
"""Bytes of addresses that a child may have, lest a failure takes the machine."""
SECRET = "CANARY-6b1f"
MEMORY = "/memfd:"
"""Begins the name of a file that is in memory alone."""
DEVICES = ("/dev/null", "/dev/urandom", "/dev/random", "/dev/tty", "/dev/shm/")
CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
LINKED = "the run folder is a link"
SHOWN = 5
WRITE = os.O_WRONLY | os.O_RDWR


@dataclass(frozen=True)
class Given:
    """A run to be forged, in a store with one other."""

    name: str
    folder: Path
    run: str
    other: str
    commands: tuple[Command, ...]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--commands", type=int, default=3, help="called in each trial")
    parser.add_argument("--only", type=int, help="one trial alone, by number, with all commands")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rows", type=Path, help="keep each trial's row here, and go on from it")
    chosen = parser.parse_args()
    system_calls.preload()
    with children.scratch() as folder, small_runs.endpoint() as url:
        root = Path(folder)
        children.prepare(root / "warm", url)
        given = [made(root, kind, stop, url) for kind in small_runs.KINDS for stop in (False, True)]
        outcome = child(lambda: parquet_files(root / "tables") and 0, 1_800)
        if outcome.code:
            raise SystemExit(f"no forged tables: {outcome.err}")
        tables = tuple(path.read_bytes() for path in sorted((root / "tables").glob("*.parquet")))
        trials = range(chosen.trials) if chosen.only is None else [chosen.only]
        rows = list(
            children.kept(
                chosen.rows,
                trials,
                lambda number: attempt(number, chosen, given, tables),
                chosen.jobs,
                f"seed {chosen.seed}, {chosen.commands} commands",
            )
        )
    if chosen.only is not None:
        print(json.dumps(rows, indent=1))
    sys.exit(int(report(rows)))


def made(root: Path, kind: str, stop: bool, url: str) -> Given:
    """A run, complete or stopped, with another in its store, and a secret beside the store."""
    folder = root / f"given-{kind}-{'stopped' if stop else 'complete'}"
    near = "ngram" if kind == "transformer" else "transformer"
    recipes = (recipe(kind, url), recipe(near, url, 20))
    at = damage.STOPS[kind] if stop else None
    outcome = child(lambda: _build(folder, recipes, at), 300)
    if outcome.code:
        raise SystemExit(f"cannot make {folder.name}: {outcome.err}")
    names = [each.run_name() for each in recipes]
    return Given(folder.name, folder, *names, (*EVERY, *COMMANDS[kind]))


def _build(folder: Path, recipes: tuple[Any, Any], stop: int | None) -> int:
    """In a child, since DuckDB makes threads."""
    import duckdb

    own, near = recipes
    code = damage.build(folder, [own], near, stop)
    for name in ("outside", "tmp"):
        (folder / name).mkdir()
    (folder / "outside" / "secret.txt").write_text(SECRET)
    row = f"'{SECRET}' as split, 1 as step, 0 as seed, 1::tinyint as hop, 0.5::float as loss"
    with duckdb.connect() as connection:
        connection.execute(f"copy (select {row}) to '{folder}/outside/part.parquet'")
    return code


def attempt(
    number: int, chosen: argparse.Namespace, given: Sequence[Given], tables: tuple[bytes, ...]
) -> dict[str, Any]:
    """One forgery, and some commands."""
    chance = Random(f"{chosen.seed} {number}")
    subject = given[number % len(given)]
    work = Path(tempfile.mkdtemp(prefix="work-", dir=subject.folder.parent))
    shutil.copytree(subject.folder, work, dirs_exist_ok=True)
    world = World(
        work / "runs" / subject.run, work / "runs" / subject.other, work / "outside", tables
    )
    world.unsigned()
    users = [world.run / "notes.md"] if chance.random() < 0.3 else []
    for path in users:
        path.write_text("mine")
    how = forge(world, chance)
    commands = _some(subject.commands, chosen, chance, LINKED in how)
    before = {path: snapshot(path) for path in (world.outside, world.other)}
    results = _called(commands, subject.run, work)
    problems, seconds = [], {}
    for command, result in zip(commands, results, strict=False):
        seconds[command.name] = result["seconds"]
        found = judged(command, result, subject, work, how)
        problems += [(command.name, problem) for problem in found]
    last = commands[len(results) - 1].name
    if last != "rm" and any(not path.exists() for path in users):
        problems.append((last, "deleted a file of the user's"))
    for path, was in before.items():
        if snapshot(path) != was:
            place = "the secret folder" if path == world.outside else "the other run"
            problems.append((last, f"changed {place}"))
    shutil.rmtree(work)
    row = {"trial": number, "subject": subject.name, "forgery": how}
    return {**row, "problems": problems, "seconds": seconds}


def _some(
    commands: Sequence[Command], chosen: argparse.Namespace, chance: Random, linked: bool
) -> list[Command]:
    """Some readers, and one command that writes, last; behind a linked folder only removal."""
    readers = [each for each in commands if not each.writes]
    writers = [each for each in commands if each.writes and (each.name == "rm" or not linked)]
    writers.sort(key=lambda each: each.name == "rm")
    if chosen.only is not None:
        return readers + writers
    readers = [each for each in readers if "figure" not in each.arguments or chance.random() < 0.2]
    picked = chance.sample(readers, min(len(readers), chosen.commands - 1))
    return [*picked, chance.choice([writers[0], *writers])]


def snapshot(folder: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """Everything below a folder: kinds, sizes, times and contents."""
    found = {}
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        regular = stat.S_ISREG(about.st_mode) and about.st_size < 2**24
        data = path.read_bytes() if regular and path.name != ".lock" else b""
        found[str(path.relative_to(folder))] = (
            about.st_mode,
            about.st_size,
            about.st_mtime_ns,
            data,
        )
    return found


def _called(commands: Sequence[Command], run: str, work: Path) -> list[dict[str, Any]]:
    """The commands, one after the other in one child, up to one that kills it."""
    logs = work / "logs"
    logs.mkdir()
    outcome = child(lambda: _calls(commands, run, work), 600)
    results = []
    for number in range(len(commands)):
        if not (logs / f"{number}.calls").exists():
            break
        done = logs / f"{number}.json"
        ended = {"code": outcome.code, "seconds": SECONDS, "megabytes": 0}
        result = json.loads(done.read_text()) if done.exists() else ended
        for name in ("out", "err"):
            result[name] = (logs / f"{number}.{name}").read_bytes().decode(errors="replace")
        result["calls"] = read_log(logs / f"{number}.calls")
        results.append(result)
    if not results:
        raise RuntimeError(f"no command was called: {outcome.err}")
    shutil.rmtree(logs)
    return results


def _calls(commands: Sequence[Command], run: str, work: Path) -> int:
    """In the child: an alarm, a limit and a log for each command."""
    os.chdir(work)
    tempfile.tempdir = str(work / "tmp")
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**30, 2**30))
    for number, command in enumerate(commands):
        for file, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(work / "logs" / f"{number}.{name}", os.O_CREAT | os.O_WRONLY), file)
        Path("/proc/self/clear_refs").write_text("5")  # the peak of memory begins anew
        signal.setitimer(signal.ITIMER_REAL, HANGS)
        begun, code = time.process_time(), children.TRACEBACK
        with logged(Path("/"), work / "logs" / f"{number}.calls", data=False):
            try:
                code = command.call(run)
            except BaseException:  # noqa: BLE001 - it is shown, and counted
                traceback.print_exc()
        for stream in (sys.stdout, sys.stderr):
            if stream is None or stream.closed:
                sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
            else:
                stream.flush()
        seconds = time.process_time() - begun
        peak = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
        assert peak is not None
        row = {"code": code, "seconds": seconds, "megabytes": int(peak[1]) / 1024}
        (work / "logs" / f"{number}.json").write_text(json.dumps(row))
    return 0


def judged(
    command: Command, result: dict[str, Any], subject: Given, work: Path, how: str
) -> Iterator[str]:
    """What is wrong with how one command ended."""
    code, out, err = result["code"], result["out"], result["err"]
    yield from filter(None, [_ending(code, err, result["seconds"])])
    if result["megabytes"] > MEGABYTES:
        yield f"more than {MEGABYTES} MB"
    if any(len(line) > damage.LONGEST for line in err.splitlines()):
        yield f"a line of more than {damage.LONGEST:,} characters"
    said = err if "--csv" in command.arguments else out + err  # values go to programs unchanged
    if CONTROLS.search(said):
        yield "control characters in what it says"
    if SECRET in out + err:
        yield "tells the secret"
    lists = command.name in ("runs", "sql runs", "sql metrics")
    if lists and subject.other not in out and code >= 0:
        yield f"the other run is not listed: {children.plain(err)}"
    yield from sorted({_outside(call, work, how) for call in result["calls"]} - {""})


def _ending(code: int, err: str, seconds: float) -> str:
    """What is wrong with its exit code, its time and its words."""
    told = [line for line in err.splitlines() if line.startswith("hopscope: ")]
    strange = [line for line in err.splitlines() if not line.startswith(("hopscope: ", "["))]
    if code in (-signal.SIGALRM, -signal.SIGXCPU) or seconds >= SECONDS:
        return f"more than {SECONDS} s"
    if code < 0:
        return f"killed by signal {-code}"
    if "Traceback (most recent call last)" in err:
        return f"traceback: {children.plain(err)}"
    if code not in (0, 1, 2, 3) or (code and not told):
        return f"exit code {code} with {len(told)} lines: {children.plain(err)}"
    return f"other words on stderr: {children.plain(strange[0])}" if strange else ""


def _outside(call: Call, work: Path, how: str) -> str:
    """What is wrong with where a file was opened."""
    if call.op not in ("open", "create", "truncate"):
        return ""
    where, secret = call.other, f"{work}/outside"
    if where.startswith(secret) and LINKED not in how:
        return "opened a file in the secret folder"
    if where.startswith("/dev/") and not where.startswith(DEVICES):
        return "opened a device"
    writes = call.op != "open" or call.flags & WRITE
    if writes and not where.startswith((f"{work}/", "/dev/", MEMORY)):
        return f"opened {children.plain(where)} to write"
    return ""


def report(rows: list[dict[str, Any]]) -> bool:
    """Print the numbers, and what went wrong by kind; True if something did."""
    kinds: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in rows:
        for command, problem in row["problems"]:
            kinds[command, problem].append(f"{row['trial']} ({row['subject']}: {row['forgery']})")
    spent: dict[str, float] = defaultdict(float)
    for row in rows:
        for command, seconds in row["seconds"].items():
            spent[command] += round(seconds, 1)
    bad = sum(bool(row["problems"]) for row in rows)
    head = {"benchmark": "forged", "trials": len(rows), "trials_that_fail": bad}
    calls = sum(len(row["seconds"]) for row in rows)
    print(json.dumps(head | {"calls": calls, "kinds_of_failure": len(kinds)}))
    print(json.dumps({"seconds": {name: round(each, 1) for name, each in spent.items()}}))
    for (command, problem), trials in sorted(kinds.items(), key=lambda item: -len(item[1])):
        shown = [trial[:300] for trial in trials[:SHOWN]]
        row = {"command": command, "failure": problem, "trials": len(trials), "e.g.": shown}
        print(json.dumps(row))
    return bool(kinds)


if __name__ == "__main__":
    main()
