"""A server beside many bad clients: it answers throughout, and nothing is left of them.

    python benchmarks/soak.py [--seconds 60]

For so many seconds, against `hopscope serve` in a process of its own: 200 connections that send
half a request and no more, readers who never read what they asked for, 50 heavy ablations at once,
clients who leave in the middle, and thousands of connections that say nothing. Beside them somebody
asks for the table of runs again and again. Prints a JSON row: how long that took, and memory,
descriptors and threads of the server before and after; exit code 1 if an answer took more than a
second or failed, or if anything is left half a minute after the last client.
"""

import argparse
import json
import random
import socket
import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from http.client import HTTPException

from explorer_server import Server, started

HALF_OPEN, SLOW, HEAVY = 200, 20, 50
SLOWEST = 1.0
"""Seconds that an answer may take meanwhile."""
PATIENCE = 30.0
"""Seconds after which nothing may be left."""
MORE_MB = 50
"""Memory that may be kept: of models that were opened on the way, say."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    chosen = parser.parse_args()
    with started() as server:
        for count in (256, 4096):  # torch is imported, the model open, its memory taken
            body = json.dumps({"examples": count}).encode()
            server.ask("POST", "/api/runs/gallery-demo/ablate", body)
        before, end, failures = server.held(), time.monotonic() + chosen.seconds, Counter[str]()
        works = [half_open, slow_readers, heavy, leaving, silent]
        threads = [
            threading.Thread(target=_until, args=(end, work, server, failures)) for work in works
        ]
        for thread in threads:
            thread.start()
        seconds = asked_all_along(server, end, failures)
        for thread in threads:
            thread.join()
        after = _settled(server, before)
    row = {
        "benchmark": "soak",
        "seconds": chosen.seconds,
        "answers": len(seconds),
        "median_ms": round(1_000 * statistics.median(seconds), 1),
        "slowest_ms": round(1_000 * max(seconds), 1),
        "before": before,
        "after": after,
        "failures": failures,
    }
    print(json.dumps(row))
    less = {name: after[name] - before[name] for name in before}
    left = less["descriptors"] > 0 or less["threads"] > 0 or less["mb"] > MORE_MB
    sys.exit(int(bool(failures) or max(seconds) > SLOWEST or left))


def asked_all_along(server: Server, end: float, failures: Counter[str]) -> list[float]:
    """How long the table of runs took, each time."""
    seconds = []
    while time.monotonic() < end:
        begun = time.monotonic()
        try:
            status, _ = server.ask("GET", "/api/runs")
        except (OSError, HTTPException) as error:
            status = repr(error)
        seconds.append(time.monotonic() - begun)
        failures.update([f"the table answered {status}"] * (status != 200))
        time.sleep(0.05)
    return seconds


def _until(
    end: float,
    work: Callable[[Server, Counter[str]], None],
    server: Server,
    failures: Counter[str],
) -> None:
    while time.monotonic() < end:
        work(server, failures)


def half_open(server: Server, _: Counter[str]) -> None:
    with ExitStack() as stack:
        for number in range(HALF_OPEN):
            with suppress(OSError):
                client = stack.enter_context(server.connect())
                client.sendall(
                    (b"", b"GET /api", server.request("GET", "/api/runs")[:-2])[number % 3]
                )
        time.sleep(random.uniform(0.5, 3))


def slow_readers(server: Server, _: Counter[str]) -> None:
    costs = server.request("POST", "/api/runs/gallery-demo/costs", b'{"examples": 8}')
    with ExitStack() as stack:
        for _ in range(SLOW):
            with suppress(OSError):
                client = stack.enter_context(server.connect())
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
                client.sendall(costs)
        time.sleep(2)


def heavy(server: Server, failures: Counter[str]) -> None:
    """Many computations at once; most are told that too many wait."""
    asked = server.request("POST", "/api/runs/gallery-demo/ablate", b'{"examples": 512}')
    statuses: Counter[str] = Counter()

    def ask() -> None:
        statuses[server.answer(asked)] += 1

    threads = [threading.Thread(target=ask) for _ in range(HEAVY)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # A connection may be given up when sixty-four others are open.
    strange = set(statuses) - {"200", "503", ""}
    failures.update(f"a heavy question answered {status}" for status in strange)


def leaving(server: Server, _: Counter[str]) -> None:
    """Ask, and go before the answer."""
    asked = server.request("POST", "/api/runs/gallery-demo/ablate", b'{"examples": 4096}')
    with suppress(OSError), server.connect() as client:
        client.sendall(asked[: random.randint(1, len(asked))])
        time.sleep(random.uniform(0, 0.2))


def silent(server: Server, _: Counter[str]) -> None:
    for _ in range(100):
        with suppress(OSError):
            server.connect().close()
    time.sleep(0.2)


def _settled(server: Server, before: dict[str, float]) -> dict[str, float]:
    """What the server holds when its clients are gone, or half a minute later."""
    end = time.monotonic() + PATIENCE
    while (held := server.held()) and time.monotonic() < end:
        if all(held[name] <= before[name] for name in ("descriptors", "threads")):
            break
        time.sleep(0.5)
    return held


if __name__ == "__main__":
    main()
