"""The tables of docs/ngram.md, from the rows of `hopscope papers run chen`.

python benchmarks/ngram_tables.py
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

import numpy as np
from rows import RESULTS, print_table

from hopscope.configs import NgramProcess
from hopscope.papers.chen.claims import PAPER, lags
from hopscope.papers.chen.rows import Lags, SeedRow, SettingRow, TransferRow
from hopscope.papers.judge import group, span
from hopscope.papers.registry import PAPERS

COLUMNS = ("setting", "paper", "heads", "chosen", "a", "loss", "GIH", "Bayes", "distance")
NO_NUMBERS = {"what", "run", "seed", "parents", "chosen_lags", "seconds"}
"""Fields of a seed's row that are not averaged."""
Settings = Mapping[str, Sequence[SettingRow]]


def main() -> None:
    results = PAPERS.results(RESULTS)
    measured = [
        row
        for name in ("chen/settings", "chen/training")
        for run in results.measured(name).values()
        for row in run.rows
    ]
    settings = group(
        [row for row in measured if isinstance(row, SettingRow)], lambda row: row.setting
    )
    print_table(COLUMNS, [cells(name, own) for name, own in settings.items()])
    print()
    print(*sharpness(settings), *lengths(settings), sep="\n")
    print()
    print(*claims([row for row in measured if isinstance(row, SeedRow)]), sep="\n")
    print()
    print(*transfers([row for row in measured if isinstance(row, TransferRow)]), sep="\n")


def cells(name: str, models: Sequence[SettingRow]) -> Sequence[str]:
    """The table row of a setting: mean losses over its seeds, and the ranges of other values."""
    predicted = models[0].predicted
    losses = [
        fmean(getattr(row.loss, which) for row in models) for which in ("model", "gih", "bayes")
    ]
    return (
        name,
        lags(predicted["paper"]),
        lags(predicted["heads"]) if "heads" in predicted else "–",
        chosen(models),
        span((row.a for row in models), 2),
        *(f"{loss:.3f}" for loss in losses),
        span((row.distance for row in models), 4),
    )


def chosen(models: Sequence[SettingRow]) -> str:
    """The chosen set, or if seeds differ, how often each set was chosen."""
    counts: Counter[Lags] = Counter(row.chosen_lags for row in models)
    if len(counts) == 1:
        return lags(models[0].chosen_lags)
    return "; ".join(f"{lags(its)} ({count})" for its, count in counts.most_common())


def sharpness(settings: Settings) -> Iterator[str]:
    """Lines for settings in which the chosen set's share of Σ c² or its heads' attention is not
    near 1.
    """
    for name, models in settings.items():
        shares = [row.share for row in models]
        weights = [weight for row in models for weight in row.attention]
        if min(shares) < 0.9995 or min(weights) < 0.98:
            yield f"{name}: share {span(shares, 3)}, attention {span(weights, 3)}"


def lengths(settings: Settings) -> Iterator[str]:
    """Lines on how the final a depends on the logarithm of the training chains' length, and on how
    far the model's loss is above GIH's.
    """
    known = {
        models[0].changes.get("process", {}).get("length", NgramProcess().length): models
        for name, models in settings.items()
        if name == PAPER or name.startswith("length")
    }
    logs = np.array([np.log(length) for length, models in known.items() for _ in models])
    ends = np.array([row.a for models in known.values() for row in models])
    slope, at_one = np.polyfit(logs, ends, 1)
    left = float(np.sum((ends - slope * logs - at_one) ** 2) / np.sum((ends - ends.mean()) ** 2))
    yield f"a by length: slope by its logarithm {slope:.2f}, R² {1 - left:.3f}"
    for length, models in sorted(known.items()):
        above = fmean(row.loss.model - row.loss.gih for row in models)
        expected = fmean(row.expected.model - row.expected.gih for row in models)
        yield (
            f"L {length}: a {fmean(row.a for row in models):.1f}, loss above GIH's {above:+.4f}, "
            f"expected {expected:+.4f}"
        )


def claims(models: Sequence[SeedRow]) -> Iterator[str]:
    won = {row.chosen_lags for row in models}
    yield f"{len(models)} seeds; chosen: {won}"
    for name in SeedRow.model_fields:
        if name not in NO_NUMBERS:
            values = np.array([getattr(row, name) for row in models])
            yield f"{name}: {values.min():.4f} … {values.max():.4f}, mean {values.mean():.4f}"


def transfers(rows: Sequence[TransferRow]) -> Iterator[str]:
    """Lines with means over seeds, and how often the model is worse than GIH."""
    groups = group(rows, lambda row: (row.length, row.alpha))
    for (length, alpha), models in sorted(groups.items()):
        losses = ", ".join(
            f"{which} {fmean(getattr(row.loss, which) for row in models):.3f}"
            for which in ("model", "gih", "bayes", "truth")
        )
        distances = [row.distance for row in models]
        apart = f"{fmean(distances):.4f} ({min(distances):.4f} … {max(distances):.4f})"
        matched = fmean(row.matched for row in models)
        worse = sum(row.loss.model > row.loss.gih for row in models)
        yield (
            f"L {length}, α {alpha}: {losses}; distance {apart}, matched {matched:.3f}; worse than "
            f"GIH in {worse} of {len(models)}"
        )


if __name__ == "__main__":
    main()
