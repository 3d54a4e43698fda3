"""Parameters of small models during training, as Parquet: one row per seed, step and number.

Like metrics, they grow by parts, which become one file when the run is complete.
"""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float64, Int32

from hopscope.errors import RunDamaged
from hopscope.store.folder import RunFolder
from hopscope.store.parquet import Table
from hopscope.store.parquet import to_parquet as parquet

TABLE = Table(
    "parameters",
    {"seed": "INTEGER", "step": "INTEGER", "name": "VARCHAR", "value": "DOUBLE"},
    "order by seed, step, name",
)
VALUES = "parameters/values.parquet"
PART = TABLE.parts
LONGEST = 80
"""Letters of the longest name of a parameter that is read: many long ones would fill the memory."""


def part_name(start: int, stop: int) -> str:
    """The file of what was recorded after step `start`, up to `stop`."""
    return TABLE.part_name(start, stop)


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
    return parquet(rows, f"select * from rows {TABLE.order}")


def merged(folder: RunFolder) -> bytes:
    """All parts of a run as one file."""
    return TABLE.merged(folder)


def values(folder: RunFolder, seed: int) -> dict[str, Float64[np.ndarray, "step"]]:
    """Every number of one seed by name, and the steps under "step"."""
    rows = TABLE.select(
        folder,
        "select left(name, $most) as name, step, value from read_parquet($paths) "
        "where seed = $seed order by name, step",
        {"seed": seed, "most": LONGEST + 1},
    )
    if not rows or not len(rows["step"]):
        return {"step": np.empty(0)}
    names = rows["name"].astype(str)
    longest = max(np.unique(names), key=len)
    if len(longest) > LONGEST:
        raise RunDamaged(
            f"the parameters of {folder.name} have a name of more than {LONGEST} letters, "
            f"{longest[:20]}…: no training of hopscope writes that; restore them from a copy"
        )
    steps = np.unique(rows["step"])
    series = {str(name): rows["value"][names == name] for name in np.unique(names)}
    if any(len(each) != len(steps) for each in series.values()):
        raise RunDamaged(
            f"the parameters of {folder.name} have not one row for each step and name: restore "
            f"them from a copy, or `hopscope rm {folder.name}` and train again"
        )
    return {"step": steps.astype(float), **series}
