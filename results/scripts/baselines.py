"""Which arrows do EAP-IG, activation patching and direct logit attribution find, and what are they
worth? On planted models (D = 1 … 5), whose circuits are known, and on models of the gallery.

    python results/scripts/baselines.py [--hops 1..5] [--examples 24] [--steps 5,50] > rows.jsonl
    python results/scripts/baselines.py --gallery demo planted >> rows.jsonl
    python results/scripts/baselines.py --table

A row per model and method: precision and recall of the circuit's arrows and rows of heads at the
best threshold, chosen by knowing the circuit; which kinds of arrows are missing (those that carry
an answer, those that tell later heads where it is found); and the share of the gap between model
and guessing that is left when as many arrows are kept as the circuit has, or the fewest more.
"""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hopscope
from hopscope.circuits import CallbackModel, adapter_of, discover
from hopscope.circuits.baselines import baselines, held_against
from hopscope.circuits.pairs import pairs_of
from hopscope.circuits.ranking import Arrow, Baselines
from hopscope.configs import Retrieval
from hopscope.models.planted import planted

RESULTS = Path(__file__).parents[1] / "baselines.jsonl"


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--hops", default="1..5")
    reader.add_argument("--examples", type=int, default=24)
    reader.add_argument("--steps", default="5,50")
    reader.add_argument("--gallery", nargs="*")
    reader.add_argument("--table", action="store_true")
    chosen = reader.parse_args()
    if chosen.table:
        show()
        return
    first, last = map(int, chosen.hops.split(".."))
    rows = (
        trained(chosen.gallery, chosen.examples)
        if chosen.gallery
        else known(range(first, last + 1), chosen)
    )
    for row in rows:
        print(json.dumps(row), flush=True)


def known(hops: range, chosen: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Planted models: the truth beside every method, and beside what discovery finds."""
    for count in hops:
        grown = planted(Retrieval(hops=count, chains=4, dim=4 * (count + 1), symbols="one-hot"))
        truth = tuple(Arrow(p.layer, p.head, p.reader, p.source) for p in grown.paths)
        subject, pairs = adapter_of(grown.model), pairs_of(grown.task, chosen.examples)
        assert not isinstance(subject, CallbackModel)
        name = f"planted, {count} hop{'s' * (count > 1)}"
        for number, steps in enumerate(map(int, chosen.steps.split(","))):
            begun = time.process_time()
            found = held_against(subject, pairs, truth, steps=steps, exact=number == 0)
            yield from rows_of(name, found, time.process_time() - begun, once=number == 0)
        begun = time.process_time()
        circuit = discover(grown.model, grown.task, examples=chosen.examples)
        mine = {Arrow(p.layer, p.head, p.reader, p.source) for p in circuit.paths}
        yield {
            "benchmark": "baselines", "model": name, "method": "hopscope discover",
            "arrow_precision": len(mine & set(truth)) / len(mine),
            "arrow_recall": len(mine & set(truth)) / len(truth),
            "cpu_seconds": round(time.process_time() - begun, 1),
        }  # fmt: skip


def trained(names: list[str], examples: int) -> Iterator[dict[str, Any]]:
    """Models of the gallery: the circuit that was found in them beside every method."""
    for name in names:
        study = hopscope.load(f"gallery/{name}")
        begun = time.process_time()
        found = baselines(study.model, study.circuit, examples)
        yield from rows_of(f"gallery/{name}", found, time.process_time() - begun)


def rows_of(
    name: str, found: Baselines, seconds: float, once: bool = True
) -> Iterator[dict[str, Any]]:
    """A row for the circuit and one for each method; only of EAP-IG if it was measured before."""
    mine = found.circuit_kept
    shared = {"benchmark": "baselines", "model": name, "examples": found.examples,
              "possible": found.possible, "arrows": mine.arrows}  # fmt: skip
    if once:
        yield {**shared, "method": "circuit", "kept": mine.arrows, "share": round(mine.share, 3),
               "cpu_seconds_of_all": round(seconds, 1)}  # fmt: skip
    for its in found.rankings:
        if not once and its.method != "EAP-IG":
            continue
        enough = [kept for kept in its.kept if kept.arrows >= mine.arrows] or list(its.kept[-1:])
        row = {**shared, "method": its.method}
        if its.method == "EAP-IG":
            row["steps"] = found.steps
        for by in ("arrow", "row"):
            grade = its.best(found.circuit, by)
            if its.grades(found.circuit, by):
                row |= {f"{by}_precision": round(grade.precision, 3),
                        f"{by}_recall": round(grade.recall, 3),
                        f"{by}_threshold": round(grade.threshold, 4)}  # fmt: skip
        found_rows = {each.row for each in its.scored if each.score >= 0.01}
        row["missing"] = sorted({str(a) for a in found.circuit if a.row not in found_rows})[:12]
        yield {**row, "kept": enough[0].arrows, "share": round(enough[0].share, 3)}


def show() -> None:
    """The rows as a table."""
    rows = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    lines = []
    for row in rows:
        method = row["method"] + (f", {row['steps']} steps" if "steps" in row else "")
        grades = [
            f"{row[f'{by}_precision']:.2f} / {row[f'{by}_recall']:.2f}"
            if f"{by}_precision" in row
            else "·"
            for by in ("arrow", "row")
        ]
        kept = f"{row['share']:.2f} ({row['kept']})" if "share" in row else "·"
        lines.append((row["model"], method, *grades, kept))
    head = ("model", "method", "arrows: precision / recall", "rows of heads",
            "share left (arrows kept)")  # fmt: skip
    for line in (head, ["---"] * len(head), *lines):
        print("| " + " | ".join(line) + " |")


if __name__ == "__main__":
    main()
