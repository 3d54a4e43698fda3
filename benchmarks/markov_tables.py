"""The tables of docs/markov.md, from the rows of `hopscope reproduce chen` or benchmarks/markov.py.

python benchmarks/markov_tables.py results/chen/settings.jsonl results/chen/training.jsonl
"""

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]
COLUMNS = (
    "setting", "s", "paper", "heads", "chosen", "share", "attention", "a", "loss", "GIH", "Bayes",
    "distance",
)  # fmt: skip
WORDS = ("what", "seed", "parents", "chosen_lags")
"""What of a seed's row is no number to average."""


def main() -> None:
    rows = [
        json.loads(line)
        for path in sys.argv[1:]
        for line in Path(path).read_text().split("\n")
        if line
    ]
    kinds: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        kinds[row.get("what", "")].append(row)
    print("\n".join(settings(kinds["setting"])))
    print()
    print("\n".join(claims(kinds["seed"])))
    print()
    print("\n".join(transfers(kinds["transfer"])))


def settings(rows: list[Row]) -> list[str]:
    lines = [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
    for row in rows:
        attention = " ".join(f"{weight:.3f}" for weight in row["attention"])
        losses = [f"{row['loss'][name]:.3f}" for name in ("model", "gih", "bayes")]
        predicted = row["predicted"]
        cells = [row["setting"], f"{row['seconds']:.0f}", lags(predicted["paper"]),
                 lags(predicted.get("heads")), lags(row["chosen_lags"]), f"{row['share']:.3f}",
                 attention, f"{row['a']:.2f}", *losses, f"{row['distance']:.4f}"]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    slopes = {row["setting"]: row["slopes_of_a"] for row in rows if "length" in row["setting"]}
    return [*lines, "", *(f"slopes of a, {name}: {found}" for name, found in slopes.items())]


def claims(rows: list[Row]) -> list[str]:
    chosen = {tuple(row["chosen_lags"]) for row in rows}
    lines = [f"{len(rows)} seeds; chosen: {chosen}"]
    for name in [name for name in rows[0] if name not in WORDS]:
        values = np.array([row[name] for row in rows])
        lines.append(f"{name}: {values.min():.4f} … {values.max():.4f}, mean {values.mean():.4f}")
    return lines


def transfers(rows: list[Row]) -> list[str]:
    """Means over seeds, and how often the model is worse than GIH."""
    groups: dict[tuple[int, float], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["length"], row["alpha"]].append(row)
    lines = []
    for (length, alpha), group in sorted(groups.items()):
        means = {name: np.mean([row["loss"][name] for row in group]) for name in group[0]["loss"]}
        worse = sum(row["loss"]["model"] > row["loss"]["gih"] for row in group)
        distances = [row["distance"] for row in group]
        losses = ", ".join(f"{name} {mean:.3f}" for name, mean in means.items())
        apart = f"{np.mean(distances):.4f} ({min(distances):.4f} … {max(distances):.4f})"
        matched = np.mean([row["matched"] for row in group])
        lines.append(
            f"L {length}, α {alpha}: {losses}; distance {apart}, matched {matched:.3f}; worse than "
            f"GIH in {worse} of {len(group)}"
        )
    return lines


def lags(found: list[int] | None) -> str:
    return "–" if found is None else ",".join(map(str, found))


if __name__ == "__main__":
    main()
