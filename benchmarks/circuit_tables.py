"""The tables of circuits in docs/trust.md, from the rows in results.

python results/scripts/circuit_tools.py --examples 32 > results/circuit_tools.jsonl
python benchmarks/discovery.py --store runs > results/discovery.jsonl
python benchmarks/other_tasks.py samples --models models > results/samples.jsonl
python benchmarks/circuit_tables.py
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median

from rows import RESULTS, Row, print_table, read_rows

OURS = "hopscope circuit"
PAIR = ("precision", "recall")
NOT_LOOKED_UP = {
    "itself", "previous", "uniform", "by position", "by token", "as in the model",
}  # fmt: skip


def main() -> None:
    tools, models = (
        read_rows(RESULTS / f"{name}.jsonl") for name in ("circuit_tools", "discovery")
    )
    ours = {row["model"]: row["seconds"] for row in tools if row["tool"] == OURS}
    print_table(
        ("", "models", *(f"{what}: precision / recall" for what in ("heads", "rows", "paths")),
         "seconds, median", "times hopscope's, median"),
        [
            compared(tool, [row for row in tools if row["tool"] == tool], ours)
            for tool in dict.fromkeys(row["tool"] for row in tools)
        ],
    )  # fmt: skip
    print()
    print_table(
        ("model", "verdict", "paths", "weakest", "shared steps", "CPU seconds"),
        [
            (
                row["model"], row["verdict"], row["paths"], f"{row['weakest']:.1%}",
                listed(row["shared steps"]), row["cpu_seconds"],
            )
            for row in models
        ],
    )  # fmt: skip
    print()
    samples = read_rows(RESULTS / "samples.jsonl")
    print_table(
        ("model", "verdicts", "recovered", "rows", "in all five, of any", "look-ups alone"),
        [
            stable(model, [row for row in samples if row["model"] == model])
            for model in dict.fromkeys(row["model"] for row in samples)
        ],
    )


def stable(model: str, rows: Sequence[Row]) -> Sequence[object]:
    """A table row: how far searches of a model on several samples agree."""
    verdicts = Counter(row["verdict"].split(":")[0] for row in rows)
    recovered = sorted(row["recovered"]["prescribed"] for row in rows)
    sizes = sorted(len(row["rows"]) for row in rows)
    return (
        model,
        ", ".join(f"{verdict} {count}" for verdict, count in verdicts.items()),
        f"{recovered[0]:.1%} … {recovered[-1]:.1%}",
        f"{sizes[0]} … {sizes[-1]}",
        in_common([set(row["rows"]) for row in rows]),
        in_common([look_ups(row["rows"]) for row in rows]),
    )


def in_common(found: Sequence[set[str]]) -> str:
    return f"{len(set.intersection(*found))} of {len(set.union(*found))}"


def look_ups(rows: Iterable[str]) -> set[str]:
    """The rows that look at a role or a relation, without their other targets."""
    found = set()
    for row in rows:
        head, target, role = re.fullmatch(r"(\S+) (.+) → (.+)", row).groups()
        parts = [re.sub(r"^[\d.]+ ", "", part) for part in target.split(" + ")]
        looked_up = [part for part in parts if part not in NOT_LOOKED_UP]
        if looked_up:
            found.add(f"{head} {' + '.join(looked_up)} → {role}")
    return found


def compared(tool: str, rows: Sequence[Row], ours: dict[str, float]) -> Sequence[object]:
    ratios = sorted(row["seconds"] / ours[row["model"]] for row in rows)
    spread = f"{median(ratios):.1f} ({ratios[0]:.1f} to {ratios[-1]:.0f})"
    grades = [
        " / ".join(mean(row.get(f"{what}_{which}") for row in rows) for which in PAIR)
        for what in ("head", "row", "path")
    ]
    return (tool, len(rows), *grades, f"{median(row['seconds'] for row in rows):.2f}", spread)


def mean(values: Iterable[float | None]) -> str:
    """The mean over the models for which the tool gives a value."""
    known = [value for value in values if value is not None]
    return f"{sum(known) / len(known):.3f}" if known else "–"


def listed(words: Sequence[str]) -> str:
    return "; ".join(words) or "–"


if __name__ == "__main__":
    main()
