"""Mutation testing: whether the tests find single small errors in code that computes numbers.

    python benchmarks/mutants.py map                 # once: which test runs which line (minutes)
    python benchmarks/mutants.py run --count 300     # appends to results/mutants.jsonl; resumable
    python benchmarks/mutants.py table

A mutant is one changed expression or one removed call. Mutants are taken from the packages in turn,
in a shuffled order determined by a seed, so that every prefix of the sample is balanced. Each
mutant is written into a copy of the tree. The fast tests that run its line are run there until one
fails: first those of the test file with the same name, then those of the same package, the fastest
first; at most `--tests` tests, and `--budget` seconds as measured by `map`. With a larger budget,
survivors are tested again. Each mutant is tested in a fork of this process, which has loaded torch
but not hopscope.

mutmut and cosmic-ray do not sample. mutmut rewrites every function to choose its mutant at the
call, which the tests' type checks would notice; cosmic-ray runs one command for every mutant.
"""

import argparse
import ast
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import coverage
import pytest
from rows import add_row, print_table, read_rows

TREE = Path(__file__).parents[1]
ROOMS = {
    "circuits": ("hopscope/circuits/**/*.py",),
    "training": ("hopscope/training/*.py",),
    "tasks": ("hopscope/tasks/*.py",),
    "store": ("hopscope/store/*.py",),
    "papers": (
        "hopscope/papers/judge.py",
        "hopscope/papers/claim.py",
        "hopscope/papers/permutation.py",
        "hopscope/papers/*/*claims.py",
    ),
}
FAST = ["-m", "not slow and not cuda", "-p", "no:cacheprovider"]
HEAVY = ("torch", "pydantic", "duckdb", "matplotlib.pyplot", "einops", "safetensors")

OTHERS = {
    "Lt": "LtE GtE", "LtE": "Lt Gt", "Gt": "GtE LtE", "GtE": "Gt Lt", "Eq": "NotEq", "NotEq": "Eq",
    "Is": "IsNot", "IsNot": "Is", "In": "NotIn", "NotIn": "In", "And": "Or", "Or": "And",
    "Add": "Sub", "Sub": "Add", "Mult": "Div", "Div": "Mult", "FloorDiv": "Mult",
    "Mod": "FloorDiv", "Pow": "Mult", "BitAnd": "BitOr", "BitOr": "BitAnd",
}  # fmt: skip
TWINS = ("min max", "any all", "floor ceil", "argmin argmax", "amin amax", "zeros ones")
NAMED = {a: b for pair in TWINS for a, b in (pair.split(), pair.split()[::-1])}
TYPED = {"isinstance", "issubclass", "map", "filter", "getattr", "setattr", "warn", "field", "cast"}
"""Calls that always fail with their arguments swapped, so that these mutants test nothing."""


@dataclass(frozen=True)
class Mutant:
    room: str
    file: str
    line: int
    kind: str
    was: str
    now: str
    span: tuple[int, int]
    """The range of bytes of the file that the mutant replaces."""
    text: str
    """The replacement."""
    inside: bool
    """Whether it is within a function; other code runs when the module is imported."""

    @property
    def name(self) -> str:
        return f"{self.file}:{self.span[0]}:{self.was}:{self.now}"


def altered(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The kinds and nodes of all mutants of a node."""
    new: Any = deepcopy(node)
    match new:
        case ast.Compare(ops=[op]):
            for other in operators(op):
                yield "comparison", ast.Compare(new.left, [other], new.comparators)
        case ast.BinOp() | ast.AugAssign() | ast.BoolOp() if not text_or_types(new):
            for other in operators(new.op):
                new.op = other
                yield "and, or" if isinstance(new, ast.BoolOp) else "arithmetic", new
        case ast.UnaryOp():
            yield "dropped sign or not", new.operand
        case ast.IfExp():
            yield "condition", ast.IfExp(new.test, new.orelse, new.body)
        case ast.Expr(value=ast.Call()):
            yield "dropped call", ast.Pass()
        case ast.Call(args=[first, second, *rest]) if swappable(new):
            yield "swapped arguments", ast.Call(new.func, [second, first, *rest], new.keywords)
        case _:
            yield from altered_word(new)


def altered_word(new: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The mutants of a constant or a name."""
    match new:
        case ast.Constant(value=bool(value)):
            yield "constant", ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield "constant", ast.Constant(value + 1)
        case ast.Constant(value=float(value)):
            yield "constant", ast.Constant(2 * value or 1.0)
        case ast.Attribute(attr=name, ctx=ast.Load()) if name in NAMED:
            yield "twin", ast.Attribute(new.value, NAMED[name])
        case ast.Name(id=name, ctx=ast.Load()) if name in NAMED:
            yield "twin", ast.Name(NAMED[name])


def operators(op: ast.AST) -> list[Any]:
    return [getattr(ast, name)() for name in OTHERS.get(type(op).__name__, "").split()]


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", None), str)


def text_or_types(node: ast.AST) -> bool:
    """True if strings are added or types united, where any other operator always fails."""
    parts = list(ast.walk(node))
    unites = isinstance(getattr(node, "op", None), ast.BitOr)
    types = unites and any(isinstance(p, ast.Name) and p.id[0].isupper() for p in parts)
    return types or (not isinstance(node, ast.BoolOp) and any(map(is_text, parts)))


def swappable(call: ast.Call) -> bool:
    name = getattr(call.func, "id", getattr(call.func, "attr", ""))
    unlike = isinstance(call.args[0], ast.Lambda) or any(map(is_text, call.args[:2]))
    starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    return name not in TYPED and not unlike and not starred


def children(node: ast.AST) -> Iterator[ast.AST]:
    """The children of a node, without types, decorators, and texts of errors."""
    silent = {"annotation", "returns", "decorator_list", "msg", "exc", "type_params"}
    for field, value in ast.iter_fields(node):
        if field not in silent:
            yield from (v for v in (value if isinstance(value, list) else [value]) if v is not None)


def mutants_of(room: str, file: str) -> Iterator[Mutant]:
    source = (TREE / file).read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def walk(node: Any, *, inside: bool) -> Iterator[Mutant]:
        if isinstance(node, ast.JoinedStr) or not isinstance(node, ast.AST):
            return  # Python 3.11 gives wrong columns within f-strings
        for kind, new in altered(node):
            if room == "store" and isinstance(getattr(node, "op", None), ast.Div):
                continue  # in the store, / joins paths
            begin = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + node.end_col_offset
            was, now = ast.unparse(node), ast.unparse(ast.fix_missing_locations(new))
            text = now if isinstance(new, ast.stmt) else f"({now})"
            yield Mutant(room, file, node.lineno, kind, was, now, (begin, end), text, inside)
        within = inside or isinstance(node, ast.FunctionDef | ast.Lambda)
        for child in children(node):
            yield from walk(child, inside=within)

    yield from walk(ast.parse(source), inside=False)


def sample(seed: int) -> Iterator[Mutant]:
    """Mutants from the packages in turn, until one package has no more."""
    shuffled = []
    for room, patterns in ROOMS.items():
        files = sorted({str(p.relative_to(TREE)) for each in patterns for p in TREE.glob(each)})
        found = [mutant for file in files for mutant in mutants_of(room, file)]
        random.Random(f"{room} {seed}").shuffle(found)
        shuffled.append(found)
    for together in zip(*shuffled, strict=False):
        yield from together


class Tests:
    """The fast tests that run each line, and the seconds that each takes."""

    def __init__(self, folder: Path) -> None:
        times = re.findall(
            r"^([\d.]+)s \w+ +(tests/\S.*)$", (folder / "log").read_text(), re.MULTILINE
        )
        self.seconds: dict[str, float] = defaultdict(float)
        for seconds, test in times:
            self.seconds[test] += float(seconds)
        self.data = coverage.CoverageData(str(folder / "coverage"))
        self.data.read()

    def of(self, mutant: Mutant, most: int, budget: float) -> list[str]:
        by_line = self.data.contexts_by_lineno(str(TREE / mutant.file))
        lines = [mutant.line] if mutant.inside else list(by_line)
        names = {c.rpartition("|")[0] for line in lines for c in by_line.get(line, ())} - {""}
        named, own = f"/test_{Path(mutant.file).stem}.py", f"tests/{mutant.room}/"

        def late(test: str) -> tuple[bool, bool, float, str]:
            return named not in test, not test.startswith(own), self.seconds[test], test

        chosen, spent = [], 0.0
        for test in sorted(names, key=late):
            if not chosen or (len(chosen) < most and spent + self.seconds[test] <= budget):
                chosen.append(test)
                spent += self.seconds[test]
        return chosen


def make_map(folder: Path) -> None:
    """Run the packages' fast tests once, and save the lines and the seconds of each test."""
    folder.mkdir(parents=True, exist_ok=True)
    rooms = [f"tests/{room}" for room in ROOMS]
    command = [sys.executable, "-m", "pytest", *rooms, *FAST, "--durations=0", "-vv"]
    command += ["--cov=hopscope", "--cov-context=test", "--cov-report=", "--cov-fail-under=0"]
    environment = {**os.environ, "COVERAGE_FILE": str(folder / "coverage")}
    with (folder / "log").open("w") as log:
        subprocess.run(command, cwd=TREE, env=environment, stdout=log, check=False)


class FirstFailure:
    """A pytest plugin that writes the name of the failed test to a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_text("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.path.write_text(report.nodeid)


def tested(copy: Path, tests: list[str], limit: float) -> tuple[str, str]:
    """The outcome of tests in the copy, run in a forked process, and the test that failed."""
    noted = copy.parent / "failed"
    child = os.fork()
    if child == 0:
        os.setsid()
        os.chdir(copy)
        os.environ["PYTHONPATH"] = sys.path[0] = str(copy)
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        sys.dont_write_bytecode = True
        quiet = os.open(copy.parent / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        arguments = ["-x", *FAST, "--hypothesis-seed=0", *tests]
        os._exit(int(pytest.main(arguments, plugins=[FirstFailure(noted)])))
    begun = time.monotonic()
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() - begun > limit:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "killed", "took too long"
        time.sleep(0.05)
    code = os.waitstatus_to_exitcode(ended[1])
    return ("survived", "") if code == 0 else ("killed", noted.read_text() or f"exit code {code}")


def prepared(folder: Path) -> Path:
    """Make a fresh copy of the tree. Heavy libraries are imported here; hopscope is not, so that
    tests import it from the copy.
    """
    for name in HEAVY:
        __import__(name)
    sys.path = ["", *(path for path in sys.path if Path(path).resolve() != TREE)]
    copy = folder / "tree"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(TREE, copy, ignore=shutil.ignore_patterns(".git", "_build", ".hypothesis"))
    return copy


def run(chosen: argparse.Namespace) -> None:
    tests, copy = Tests(chosen.map), prepared(chosen.map)
    done = {
        name
        for name, row in rows_in(chosen.rows).items()
        if row["outcome"] == "killed" or row["budget"] >= chosen.budget
    }
    for _, mutant in zip(range(chosen.count), sample(chosen.seed), strict=False):
        if mutant.name in done:
            continue
        begun = time.monotonic()
        these = tests.of(mutant, chosen.tests, chosen.budget)
        outcome, by = ("survived", "no fast test runs it") if not these else ("", "")
        if these:
            target, (begin, end) = copy / mutant.file, mutant.span
            source = target.read_bytes()
            target.write_bytes(source[:begin] + mutant.text.encode() + source[end:])
            limit = 60 + 10 * sum(tests.seconds[test] for test in these)
            outcome, by = tested(copy, these, limit)
            shutil.copy2(TREE / mutant.file, target)
        row = {
            "benchmark": "mutants", "mutant": mutant.name, "room": mutant.room,
            "file": mutant.file, "line": mutant.line, "kind": mutant.kind, "was": mutant.was,
            "now": mutant.now, "tests": len(these), "budget": chosen.budget,
            "outcome": outcome, "by": by, "seconds": round(time.monotonic() - begun, 1),
        }  # fmt: skip
        add_row(chosen.rows, row)


def check(chosen: argparse.Namespace) -> None:
    """Print the tests that killed a mutant but also fail, run alone, on the unchanged tree."""
    copy = prepared(chosen.map)
    for test in sorted({row["by"] for row in rows_in(chosen.rows).values() if "::" in row["by"]}):
        outcome, _ = tested(copy, [test], 600)
        if outcome == "killed":
            print(test, flush=True)


def rows_in(path: Path, *, first: bool = False) -> dict[str, dict[str, Any]]:
    """The last row of every mutant by its name; with `first`, the first row, from before tests were
    added.
    """
    rows = read_rows(path) if path.exists() else []
    return {row["mutant"]: row for row in (reversed(rows) if first else rows)}


def show(path: Path) -> None:
    """Print how many mutants were killed, at first and with the tests added since, by package and
    by kind.
    """
    from hopscope.intervals import share  # imported here, since tests import it from the copy

    at_first, rows = (list(rows_in(path, first=first).values()) for first in (True, False))
    for when, these in (("at first", at_first), ("with tests added since", rows)) if rows else ():
        killed = sum(row["outcome"] == "killed" for row in these)
        low, high = share(killed, len(these))
        print(f"{when}: {killed} of {len(these)} killed ({low:.2f} … {high:.2f})")
    print()
    for what in ("room", "kind"):
        counts = Counter((row[what], row["outcome"]) for row in rows)
        cells = []
        for name in dict.fromkeys(row[what] for row in rows):
            killed, survived = counts[name, "killed"], counts[name, "survived"]
            count = killed + survived
            cells.append((name, count, f"{killed} ({killed / count:.0%})", survived))
        print_table((what, "mutants", "killed", "survived"), cells)
        print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["map", "run", "check", "table"])
    parser.add_argument("--map", type=Path, default=Path("/tmp/hopscope-mutants"))
    parser.add_argument("--rows", type=Path, default=TREE / "results" / "mutants.jsonl")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tests", type=int, default=60)
    parser.add_argument("--budget", type=float, default=40.0)
    chosen = parser.parse_args()
    chosen.rows = chosen.rows.resolve()
    match chosen.what:
        case "map":
            make_map(chosen.map)
        case "run":
            run(chosen)
        case "check":
            check(chosen)
        case "table":
            show(chosen.rows)


if __name__ == "__main__":
    main()
