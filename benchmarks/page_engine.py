"""Processor time of a saved page in Chromium for losses with a head changed.

    python benchmarks/page_engine.py [--models demo transformer-a planted]

Prints a JSON row for each model and number of examples: the processor time of all of the browser's
processes (so that other load on the machine matters little), for the first ablation, which also
fills the caches, and for each further ablation.
"""

import argparse
import os
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from explorer_server import chromium
from rows import print_row

from hopscope import load
from hopscope.web.bundle import ENGINE
from hopscope.web.carried import engine_data, step_data
from hopscope.web.joined import joined_script
from hopscope.web.page import static_text

STEP = 0
OPEN = """(carried) => { globalThis.engine = hopscopeEngine().onPage(carried); }"""
ABLATE = """async ([examples, text]) => {
  await engine.ablate({ step: 0, examples, changes: [text] });
}"""


def processes(parent: int) -> Iterator[int]:
    """The ids of a process and all its descendants."""
    yield parent
    for task in Path(f"/proc/{parent}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from processes(int(child))


def processor_seconds() -> float:
    """The processor time that the browser's processes have used so far."""
    ticks = 0
    for process in processes(os.getpid()):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
        if process != os.getpid():
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def measured(page: Any, examples: int, *texts: str) -> list[float]:
    found = []
    for text in texts:
        before = processor_seconds()
        page.evaluate(ABLATE, [examples, text])
        found.append(processor_seconds() - before)
    return found


def rows(page: Any, name: str) -> Iterator[dict[str, Any]]:
    study = load(f"gallery/{name}")
    steps = {STEP: step_data(study.model, study.run.recipe.task)}
    carried = engine_data(study.run.recipe, steps)
    last = study.model.config.layers - 1
    ways = ("itself", "previous", "position")
    for examples in (64, 256):
        page.evaluate(OPEN, {**carried, "hops": study.run.recipe.loss_names(0)})
        (first,) = measured(page, examples, "0.0=uniform")
        again = measured(page, examples, *(f"0.0={way}" for way in ways))
        late = measured(page, examples, *(f"{last}.0={way}" for way in ways))
        yield {
            "model": name,
            "examples": examples,
            "first_s": round(first, 3),
            "first_layer_s": round(statistics.median(again), 3),
            "last_layer_s": round(statistics.median(late), 3),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=["demo", "planted", "transformer-a"])
    chosen = parser.parse_args()

    with chromium() as browser:
        page = browser.new_page()
        page.evaluate(joined_script(ENGINE, static_text, "hopscopeEngine"))
        for name in chosen.models:
            for row in rows(page, name):
                print_row(row)


if __name__ == "__main__":
    main()
