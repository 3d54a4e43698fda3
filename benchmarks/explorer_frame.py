"""Where a frame of scrubbing goes: seconds of the processor, from Chromium's own trace.

    python benchmarks/explorer_frame.py [--rounds 3]

Scrubs gallery/demo as explorer_page.py does. Prints a JSON row for all threads of a name (the
processor's time a frame) and, of the page's own thread, for every kind of work what it takes by
itself.
"""

import argparse
import json
import shutil
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from explorer_page import SCRUB, opened
from explorer_server import started
from playwright.sync_api import sync_playwright

CATEGORIES = ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"]
PAGE = "CrRendererMain"
LEAST = 0.02
"""Milliseconds a frame below which a kind of work, or a thread, is left out."""

Event = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    with sync_playwright() as driver, started() as server:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = opened(browser, server)
        browser.start_tracing(page=page, categories=CATEGORIES)
        frames = len(page.evaluate(SCRUB, chosen.rounds)) - 1
        events = json.loads(browser.stop_tracing())["traceEvents"]
        browser.close()
    for row in rows(events, frames):
        print(json.dumps(row))


def rows(events: list[Event], frames: int) -> list[dict[str, object]]:
    """Threads, and kinds of work on the page's own, those that take most first."""
    named = {place(e): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    by_thread = defaultdict[tuple[int, int], list[Event]](list)
    for event in events:
        if event["ph"] == "X" and "tdur" in event:
            by_thread[place(event)].append(event)
    work = {where: own_times(its) for where, its in by_thread.items()}
    spent = {where: sum(its.values()) for where, its in work.items()}
    page = max((each for each in spent if named.get(each) == PAGE), key=lambda each: spent[each])
    by_name = defaultdict[str, float](float)
    for where, its in spent.items():
        by_name[named.get(where, "without a name")] += its
    return [*told("thread", by_name, frames), *told("work", work[page], frames)]


def place(event: Event) -> tuple[int, int]:
    return event["pid"], event["tid"]


def own_times(events: Iterable[Event]) -> dict[str, float]:
    """What each kind of work takes without what it calls, in microseconds."""
    own = defaultdict[str, float](float)
    open_: list[Event] = []
    for event in sorted(events, key=lambda each: (each["ts"], -each["dur"])):
        while open_ and event["ts"] >= open_[-1]["ts"] + open_[-1]["dur"]:
            open_.pop()
        own[event["name"]] += event["tdur"]
        if open_:
            own[open_[-1]["name"]] -= event["tdur"]
        open_.append(event)
    return own


def told(what: str, spent: dict[str, float], frames: int) -> list[dict[str, object]]:
    each = sorted(((us / 1_000 / frames, name) for name, us in spent.items()), reverse=True)
    return [{what: name, "cpu_ms_a_frame": round(ms, 2)} for ms, name in each if ms >= LEAST]


if __name__ == "__main__":
    main()
