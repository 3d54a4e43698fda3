"""Redraw the figures in `results/` and `docs/images/`, from rows and from the gallery.

    python benchmarks/figures.py [results] [docs]

No model is trained or queried. Figures whose numbers are in no file are not redrawn: precision and
theory against training (drawn by their own scripts), circuits of language models
(`lm_circuit_tables.py`), and the picture of the page (`screenshot.py`).
"""

import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rows import RESULTS, read_rows

from hopscope.cli.main import run
from hopscope.facts import parse_role
from hopscope.lm.heads import HeadScores, RoleRoute
from hopscope.lm.results import Result
from hopscope.papers.registry import PAPERS
from hopscope.plots.lm import heads_figure, results_figure
from hopscope.plots.saving import save_figure
from hopscope.plots.table_figures import figures

IMAGES = RESULTS.parent / "docs" / "images"
HEADS = RESULTS / "lm" / "heads-qwen2.5-coder-1.5b-equations-d2-opened.json"
COMMANDS = {
    "maps": "attention gallery/demo --figure FILE",
    "order": "emergence gallery/demo --figure FOLDER/emergence.svg",
    "probe": "probe gallery/transformer-a --figure FILE",
    "explained": "circuit gallery/demo --figure FILE",
    "shared-information": "depth --hops 5 --figure FILE",
    "ngram-approach": "show gallery/ngram --figure FOLDER/ngram.svg",
}
"""The command that draws each figure: into FILE, or among others as FOLDER/…-NAME.svg."""


def main() -> None:
    asked = sys.argv[1:] or ["results", "docs"]
    if unknown := set(asked) - {"results", "docs"}:
        sys.exit(f"{', '.join(sorted(unknown))}: expected results, docs, or both")
    if "results" in asked:
        in_results()
    if "docs" in asked:
        for name, line in COMMANDS.items():
            by_command(name, line)
        print(save_figure(heads_figure(scores()), IMAGES / "lm-heads.svg"))
        print(save_figure(results_figure(accuracies()), IMAGES / "lm-accuracy.svg"))


def in_results() -> None:
    """Redraw the figures that exist in `results/`; the docs show them."""
    results = PAPERS.results(RESULTS)
    for table in filter(None, map(results.shown, PAPERS.experiments)):
        path = results.path(table.experiment)
        for name, figure in figures(table, results.shown):
            kept = path.with_name(f"{path.stem}-{name}.svg")
            if kept.is_file():
                print(save_figure(figure, kept))


def accuracies() -> dict[str, list[Result]]:
    """The results of every benchmark in results/lm, by model and kind of prompt."""
    found: dict[str, list[Result]] = {}
    for row in read_rows(RESULTS / "lm" / "bench.jsonl"):
        if row["dtype"] != "bfloat16":  # SmolLM2 in float32: the same to 0.001
            continue
        opened = row["kind"].endswith("-opened")
        result = Result(**{name: row[name] for name in Result.__dataclass_fields__})
        kind = result.kind.removesuffix("-opened")
        name = f"{row['model']}{', opening' * opened}"
        found.setdefault(name, []).append(replace(result, kind=kind))
    return found


def by_command(name: str, line: str) -> None:
    """Redraw an image of the docs with a hopscope command."""
    image = IMAGES / f"{name}.svg"
    with TemporaryDirectory() as folder:
        words = shlex.split(line.replace("FILE", str(image)).replace("FOLDER", folder))
        if run(words):
            sys.exit(f"hopscope {shlex.join(words)} failed")
        for found in Path(folder).rglob(f"*{name.removeprefix('ngram-')}.svg"):
            image.write_bytes(found.read_bytes())
    print(image)


def scores() -> HeadScores:
    """The measured attention of Qwen's heads."""
    kept = json.loads(HEADS.read_text())
    routes = []
    for its in kept["routes"]:
        destination, source = (parse_role(role) for role in its["route"].split(" → "))
        routes.append(RoleRoute(destination, source, its["purpose"]))
    own, others, threshold = (np.asarray(kept[name]) for name in ("own", "others", "threshold"))
    unknown = np.full_like(own, np.nan)  # the saved file does not separate right and wrong answers
    of = kept["model"], kept["kind"], tuple(routes)
    counts = kept["questions"], kept["correct"]
    return HeadScores(*of, own, others, threshold, unknown, unknown, *counts)


if __name__ == "__main__":
    main()
