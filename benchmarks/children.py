"""Commands in forked children: what each said, how it ended, how long it took, and its memory.

torch takes seconds to import and a fork milliseconds, so that thousands of trials are feasible. The
parent must not have computed with several threads before: a fork takes none of them along.
"""

import atexit
import gc
import io
import json
import math
import os
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from small_runs import KINDS, make, recipe

from hopscope.store import Store, duck

FAST = Path("/dev/shm").resolve()
TELL_EVERY = 60
"""Seconds between words on how far the trials are."""
TRACEBACK = 70
"""Exit code of a child whose work raised what nobody caught."""


@dataclass(frozen=True)
class Outcome:
    """How a child ended."""

    code: int
    """Its exit code; minus the signal's number if one killed it."""
    out: str
    err: str
    seconds: float
    megabytes: float
    """Most memory it had, what it shares with the parent included."""

    @property
    def crashed(self) -> bool:
        """Did it end in a traceback, or by a signal that nobody sent?"""
        return "Traceback (most recent call last)" in self.err or self.code < 0

    @property
    def told(self) -> list[str]:
        """The lines meant for the user about what is wrong."""
        return [line for line in self.err.splitlines() if line.startswith("hopscope: ")]


def prepare(folder: Path, url: str) -> None:
    """Import what is slow and do everything once, with one thread; call it before the first fork.

    What torch, DuckDB and others set up at first use is then there in every child.
    """
    import matplotlib as mpl
    import torch

    mpl.use("Agg")
    os.environ["COLUMNS"] = "250"  # no name is cut
    torch.set_num_threads(1)
    store = Store(folder)
    names = {kind: make(recipe(kind, url), store).name for kind in KINDS}
    run, several = names["transformer"], ("--all", "--force", "--examples", "16")
    commands = [
        ["runs"], ["sql", "select 1"], ["verify", run], ["gallery", "copy", "ngram"],
        *(["show", name] for name in names.values()), ["discover", run, *several],
        ["circuit", "show", run], ["resume", run, "--device", "cpu"],
        ["maps", run, "--figure", str(folder / "maps.svg")],
    ]  # fmt: skip
    for arguments in commands:
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
            code = hopscope(*arguments, "--store", folder)
        if code:
            raise SystemExit(f"{arguments} fails: {err.getvalue() or out.getvalue()}")
    duck.close()
    if len(list(Path("/proc/self/task").iterdir())) > 1:
        raise SystemExit("threads are left over in this process: its forks would not be whole")
    gc.collect()
    gc.freeze()  # else every collection in a child copies the parent's pages
    atexit.register(gc.unfreeze)


def hopscope(*arguments: str | Path) -> int:
    """The command line, in this process: its exit code."""
    from hopscope.cli.main import main

    sys.argv = ["hopscope", *map(str, arguments)]
    try:
        main()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return 0


def child(work: Callable[[], int | None], limit: float = 60.0) -> Outcome:
    """Do it in a fork, which is killed when it has computed for so many seconds, or hangs.

    What else the machine does is no fault of the child's: the limit counts the processor's seconds
    (SIGXCPU), and one that waits for something is left ten times as long by the clock (SIGALRM).
    """
    begun = time.monotonic()
    with tempfile.TemporaryFile("w+b") as out, tempfile.TemporaryFile("w+b") as err:
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            _work(work, out.fileno(), err.fileno(), limit)
        _, status, used = os.wait4(pid, 0)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    code = os.waitstatus_to_exitcode(status)
    return Outcome(code, *texts, time.monotonic() - begun, used.ru_maxrss / 1024)


def _work(work: Callable[[], int | None], out: int, err: int, limit: float) -> None:
    """In the child: never returns."""
    os.dup2(out, 1)
    os.dup2(err, 2)
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, 10 * limit)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit), resource.RLIM_INFINITY))
    code = TRACEBACK
    try:
        code = work() or 0
    except BaseException:  # noqa: BLE001 - it is shown, and the process ends
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(code)


def kept(
    rows: Path | None,
    trials: Iterable[Any],
    work: Callable[[Any], dict[str, Any]],
    jobs: int,
    settings: str = "",
) -> Iterator[dict[str, Any]]:
    """The work's rows for all trials; those that stand in a file already are not tried again.

    Each row is appended to the file as it comes, so that thousands of trials can be stopped and
    gone on with. A row names its trial and its settings; the code must be the same throughout.
    """
    open_trials = dict.fromkeys(trials)
    if rows is not None and rows.exists():
        for row in map(json.loads, rows.read_text().splitlines()):
            if row["trial"] in open_trials and row["settings"] == settings:
                del open_trials[row["trial"]]
                yield row
    for row in spread(open_trials, work, jobs):
        row["settings"] = settings
        if rows is not None:
            with rows.open("a") as file:
                file.write(json.dumps(row) + "\n")
        yield row


def spread(
    trials: Iterable[Any], work: Callable[[Any], dict[str, Any]], jobs: int
) -> Iterator[dict[str, Any]]:
    """The work's rows for all trials, shared out over so many processes, as they come.

    How far it is goes to stderr. Ctrl-C ends it early, with the rows there are.
    """
    trials = list(trials)
    workers = [_worker(trials[number::jobs], work) for number in range(jobs)]
    done, told = 0, time.monotonic()
    try:
        while workers:
            ready = wait([pipe for _, pipe in workers])
            for worker in [each for each in workers if each[1] in ready]:
                try:
                    row = worker[1].recv()
                except EOFError:
                    workers.remove(worker)
                    if os.waitpid(worker[0], 0)[1]:
                        raise SystemExit("a worker failed") from None
                    continue
                done += 1
                yield row
            if time.monotonic() - told > TELL_EVERY:
                told = time.monotonic()
                print(f"{done:,} of {len(trials):,} trials", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print(f"stopped after {done:,} of {len(trials):,} trials", file=sys.stderr)
        for pid, _ in workers:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _worker(trials: list[Any], work: Callable[[Any], dict[str, Any]]) -> tuple[int, Connection]:
    ours, its = Pipe(duplex=False)
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        its.close()
        return pid, ours
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        for trial in trials:
            its.send(work(trial))
    except BaseException:  # noqa: BLE001 - it is shown, and the process ends
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def scratch() -> "tempfile.TemporaryDirectory[str]":
    """A folder for trials, in memory where there is such a place."""
    parent = FAST if FAST.is_dir() else None
    return tempfile.TemporaryDirectory(prefix="hopscope-", dir=parent)


def plain(text: str) -> str:
    """The line that tells most (an exception, or the last), without what differs between trials."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(" ")]
    raised = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Interrupt)\b", line)]
    last = (raised or lines or ["nothing was said"])[-1]
    last = re.sub(r"/\S*/work-[^/\s]*", "WORK", last)
    last = re.sub(r"/tmp\w{8}\b", "/TMP", last)
    last = re.sub(r"(['\"\\])[^'\"]*/[^'\"]*?([\w-]+(\.\w+)?)\\?['\"]", r"'… \2'", last)
    return re.sub(r"\d+", "#", re.sub(r"[0-9a-f]{10,}", "HASH", last))[:300]
