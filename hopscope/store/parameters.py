"""Parameters of small models during training, as Parquet: one row per seed, step and number.

Like metrics, they grow by parts, which become one file when the run is complete.
"""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float64, Int32

from hopscope.errors import RunDamaged
from hopscope.store import parquet
from hopscope.store.folder import RunFolder

TABLE = "parameters"
ORDER = "seed, step, name"
VALUES = "parameters/values.parquet"
PART = parquet.part_prefix(TABLE)


def part_name(start: int, stop: int) -> str:
    """The file of what was recorded after step `start`, up to `stop`."""
    return parquet.part_name(TABLE, start, stop)


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
    return parquet.to_parquet(rows, f"select * from rows order by {ORDER}")


def merged(folder: RunFolder) -> bytes:
    """All parts of a run as one file."""
    return parquet.merged(folder, TABLE, ORDER)


def values(folder: RunFolder, seed: int) -> dict[str, Float64[np.ndarray, "step"]]:
    """Every number of one seed by name, and the steps under "step"."""
    query = "select name, step, value from rows where seed = $seed order by name, step"
    rows = parquet.select(folder, TABLE, query, {"seed": seed})
    if not rows or not len(rows["step"]):
        return {"step": np.empty(0)}
    names = rows["name"].astype(str)
    steps = np.unique(rows["step"])
    series = {str(name): rows["value"][names == name] for name in np.unique(names)}
    if any(len(each) != len(steps) for each in series.values()):
        raise RunDamaged(
            f"the parameters of {folder.name} have not one row for each step and name: restore "
            f"them from a copy, or `hopscope rm {folder.name}` and train again"
        )
    return {"step": steps.astype(float), **series}
