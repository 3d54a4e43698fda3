"""How fast a saved page computes: losses with a head changed, in Chromium, in seconds of processor.

    python benchmarks/page_engine.py [--models demo transformer-a planted]

One JSON row for each model and number of examples: the processor time of all of the browser's
processes (whatever else the machine does counts little), of the first ablation, which also draws
the examples and computes what is kept, and of each further one.
"""

import argparse
import base64
import json
import os
import shutil
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright
from safetensors.torch import save

from hopscope import load
from hopscope.web.bundle import STATIC
from hopscope.web.joined import joined
from hopscope.web.tables import engine_tables

ENTRY = """import { Bench, drive } from "./bench.js";
import { changesOf } from "./changes.js";
import { drawn } from "./draw.js";
import { readSafetensors } from "./safetensors.js";
import { Transformer } from "./transformer.js";
globalThis.parts = { Bench, drive, changesOf, drawn, readSafetensors, Transformer };
"""
OPEN = """([tables, weights]) => {
  const bytes = Uint8Array.from(atob(weights), (one) => one.charCodeAt(0)).buffer;
  const model = new parts.Transformer(tables.model, parts.readSafetensors(bytes).tensors);
  globalThis.begin = (examples) => {
    globalThis.bench = new parts.Bench(model, parts.drawn(tables.task, 0, examples));
  };
  globalThis.ablate = async (text) => {
    const { model, exam } = bench;
    const changes = parts.changesOf([text], new Map(), model, exam.table);
    return (await parts.drive(bench.losses(changes))).length;
  };
}"""


def processes(parent: int) -> Iterator[int]:
    """A process and all that it started."""
    yield parent
    for task in Path(f"/proc/{parent}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from processes(int(child))


def processor_seconds() -> float:
    """What the browser's processes have used so far."""
    ticks = 0
    for process in processes(os.getpid()):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
        if process != os.getpid():
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def measured(page: Any, text: str, times: int) -> list[float]:
    found = []
    for _ in range(times):
        before = processor_seconds()
        page.evaluate("(text) => ablate(text)", text)
        found.append(processor_seconds() - before)
    return found


def rows(page: Any, name: str) -> Iterator[dict[str, Any]]:
    study = load(f"gallery/{name}")
    model = study.model
    weights = base64.b64encode(save(dict(model.state_dict()))).decode()
    page.evaluate(OPEN, [engine_tables(study.run.recipe), weights])
    for examples in (32, 256):
        page.evaluate("(examples) => begin(examples)", examples)
        (first,) = measured(page, "1.0=uniform", 1)
        again = measured(page, "0.0=uniform", 3)
        late = measured(page, f"{model.config.layers - 1}.0=uniform", 3)
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

    def read(name: str) -> str:
        return ENTRY if name == "entry.js" else (STATIC / name).read_text()

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        page.evaluate(joined("entry.js", read))
        for name in chosen.models:
            for row in rows(page, name):
                print(json.dumps(row), flush=True)
        browser.close()


if __name__ == "__main__":
    main()
