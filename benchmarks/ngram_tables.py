"""The tables of docs/ngram.md, from the rows of `hopscope papers run chen`.

python benchmarks/ngram_tables.py results/chen/settings.jsonl results/chen/training.jsonl
"""

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from hopscope.configs import NgramProcess

Row = dict[str, Any]
COLUMNS = ("setting", "paper", "heads", "chosen", "a", "loss", "GIH", "Bayes", "distance")
WORDS = ("what", "run", "seed", "parents", "chosen_lags", "seconds")
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
    """A line for each setting: losses are means over its seeds, other values spans."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["setting"]].append(row)
    lines = [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
    for name, group in groups.items():
        predicted = group[0]["predicted"]
        cells = [name, lags(predicted["paper"]), lags(predicted.get("heads")), chosen(group),
                 spanned([row["a"] for row in group], 2),
                 *(f"{mean([row['loss'][name] for row in group]):.3f}"
                   for name in ("model", "gih", "bayes")),
                 spanned([row["distance"] for row in group], 4)]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, "", *sharpness(groups), *lengths(groups)]


def sharpness(groups: dict[str, list[Row]]) -> list[str]:
    """Where the chosen set has not all of Σ c², or its heads are less sharp than elsewhere."""
    told = []
    for name, group in groups.items():
        shares = [row["share"] for row in group]
        weights = [weight for row in group for weight in row["attention"]]
        if min(shares) < 0.9995 or min(weights) < 0.98:
            told.append(f"{name}: share {spanned(shares, 3)}, attention {spanned(weights, 3)}")
    return told


def chosen(group: list[Row]) -> str:
    """The set that won, or how often each did."""
    counts = Counter(lags(row["chosen_lags"]) for row in group)
    if len(counts) == 1:
        return next(iter(counts))
    return "; ".join(f"{name} ({count})" for name, count in counts.most_common())


def mean(values: list[float]) -> float:
    return float(np.mean(values))


def spanned(values: list[float], digits: int) -> str:
    ends = [f"{value:.{digits}f}" for value in (min(values), max(values))]
    return ends[0] if ends[0] == ends[1] else " … ".join(ends)


def lengths(groups: dict[str, list[Row]]) -> list[str]:
    """How a at the end goes with the logarithm of the length of the chains of training, and how
    far the model's loss is above GIH's.
    """
    known = {
        group[0]["changes"].get("process", {}).get("length", NgramProcess().length): group
        for name, group in groups.items()
        if name == "the paper's" or name.startswith("length")
    }
    logs = np.array([np.log(length) for length, group in known.items() for _ in group])
    ends = np.array([row["a"] for group in known.values() for row in group])
    slope, at_one = np.polyfit(logs, ends, 1)
    left = float(np.sum((ends - slope * logs - at_one) ** 2) / np.sum((ends - ends.mean()) ** 2))
    told = [f"a by length: slope by its logarithm {slope:.2f}, R² {1 - left:.3f}"]
    for length, group in sorted(known.items()):
        above = {
            kind: mean([row[kind]["model"] - row[kind]["gih"] for row in group])
            for kind in ("loss", "expected")
        }
        told.append(
            f"L {length}: a {mean([row['a'] for row in group]):.1f}, loss above GIH's "
            f"{above['loss']:+.4f}, expected {above['expected']:+.4f}"
        )
    return told


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
