"""Parameters of small models during training, as Parquet: one row per seed, step and number.

Like metrics, they grow by parts, which become one file when the run is complete.
"""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float64, Int32

from hopscope.store.folder import RunFolder
from hopscope.store.metrics import parquet, read_parts, select

VALUES = "parameters/values.parquet"
PART = "parameters/part-"
ORDER = "order by seed, step, name"


def part_name(start: int, stop: int) -> str:
    return f"{PART}{start:08d}-{stop:08d}.parquet"


def to_parquet(
    steps: Int32[np.ndarray, "step"],
    values: Mapping[int, Mapping[str, Float64[np.ndarray, "step"]]],
) -> bytes:
    """One file of every seed's numbers by name, at the given steps."""
    named = [(seed, name, series) for seed, all_ in values.items() for name, series in all_.items()]
    rows = {
        "seed": np.repeat(np.array([seed for seed, _, _ in named], np.int32), len(steps)),
        "step": np.tile(steps, len(named)),
        "name": np.repeat(np.array([name for _, name, _ in named]), len(steps)),
        "value": np.concatenate([series for _, _, series in named]),
    }
    return parquet(rows, f"select * from rows {ORDER}")


def merged(folder: RunFolder) -> bytes:
    """All parts of a run as one file."""
    return read_parts(folder, PART, ORDER)


def values(folder: RunFolder, seed: int) -> dict[str, Float64[np.ndarray, "step"]]:
    """Every number of one seed by name, and the steps under "step"."""
    rows = select(
        folder,
        "parameters/",
        "select name, step, value from read_parquet($paths) where seed = $seed order by name, step",
        {"seed": seed},
    )
    if not rows:
        return {"step": np.empty(0)}
    names = rows["name"].astype(str)
    series = {str(name): rows["value"][names == name] for name in np.unique(names)}
    return {"step": np.unique(rows["step"]).astype(float), **series}
