"""Metrics as Parquet: one row per split, step, seed and hop.

While a run trains, every commit adds a part; when it is complete, the parts become one file.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Float32, Int, Int32

from hopscope.configs.training import FINAL_STEPS
from hopscope.errors import ConfigError, RunDamaged
from hopscope.store.folder import RunFolder
from hopscope.store.parquet import Table
from hopscope.store.parquet import to_parquet as parquet

TABLE = Table(
    "metrics",
    {
        "split": "VARCHAR",
        "step": "INTEGER",
        "seed": "INTEGER",
        "hop": "TINYINT",
        "loss": "FLOAT",
    },
    "order by split, step, seed, hop",
)
LOSSES = "metrics/losses.parquet"
"""The file of all losses of a complete run."""
PART = TABLE.parts
MOST_HOPS = 127
"""Hops whose losses are told apart: their number is a byte."""
SPLITS = ("train", "validation")


def check_split(split: str) -> None:
    """Refuse losses of which there are none."""
    if split not in SPLITS:
        raise ConfigError(f"there are no losses of {split!r}; expected {' or '.join(SPLITS)}")


def part_name(start: int, stop: int) -> str:
    """The file of the losses of the steps after `start`, up to and including `stop`."""
    return TABLE.part_name(start, stop)


def part(
    split: str,
    seeds: Sequence[int],
    steps: Int32[np.ndarray, "step"],
    losses: Float32[np.ndarray, "step model hop"],
) -> dict[str, np.ndarray]:
    """Columns of the rows that say what every model's loss was, hop by hop (counted from 1)."""
    count, models, hops = losses.shape
    return {
        "split": np.repeat(np.int8(SPLITS.index(split)), losses.size),
        "step": np.repeat(steps, models * hops),
        "seed": np.tile(np.repeat(np.asarray(seeds, np.int32), hops), count),
        "hop": np.tile(np.arange(1, hops + 1, dtype=np.int8), count * models),
        "loss": losses.ravel(),
    }


def to_parquet(parts: Sequence[dict[str, np.ndarray]]) -> bytes:
    """One Parquet file of all the columns given, rows in a fixed order."""
    rows = {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
    names = f"['{SPLITS[0]}', '{SPLITS[1]}'][split + 1]"
    return parquet(rows, f"select {names} as split, step, seed, hop, loss from rows {TABLE.order}")


def merged(folder: RunFolder) -> bytes:
    """All parts of a run as one file."""
    return TABLE.merged(folder)


def losses(
    folder: RunFolder, split: str
) -> tuple[Int32[np.ndarray, "step"], Float32[np.ndarray, "step model hop"]]:
    """Steps, and losses [step, model, hop] in the order of the recipe's seeds."""
    check_split(split)
    seeds = list(folder.recipe.seeds)
    rows = TABLE.select(
        folder,
        "select step, coalesce(list_position($seeds, seed), 0) - 1 as model, hop, loss "
        "from read_parquet($paths) where split = $split order by step, model, hop",
        {"split": split, "seeds": seeds},
    )
    if not rows or not len(rows["step"]):
        return np.empty(0, np.int32), np.empty((0, len(seeds), 0), np.float32)
    # Where a hop is missing, the largest is not a number.
    hops = int(np.nan_to_num(rows["hop"].max()))
    if not _is_whole(rows, len(seeds), hops):
        raise RunDamaged(
            f"the metrics of {folder.name} have not one row for each step, seed and hop: restore "
            f"them from a copy, or `hopscope rm {folder.name}` and train again"
        )
    return rows["step"][:: len(seeds) * hops], rows["loss"].reshape(-1, len(seeds), hops)


def _is_whole(rows: dict[str, np.ndarray], models: int, hops: int) -> bool:
    """Has every step, model and hop one row, in this order?"""
    each = models * hops
    if hops < 1 or len(rows["step"]) % each:
        return False
    steps = rows["step"].reshape(-1, each)
    model, hop = (rows[name].reshape(-1, models, hops) for name in ("model", "hop"))
    return bool(
        (steps == steps[:, :1]).all()
        and (np.diff(steps[:, 0]) > 0).all()
        and (model == np.arange(models)[:, None]).all()
        and (hop == np.arange(1, hops + 1)).all()
    )


def ended(
    steps: Int[np.ndarray, "step"], losses: Float[np.ndarray, "step *rest"]
) -> Float[np.ndarray, "*rest"]:
    """Where losses ended, as far as they came: their mean over the last 100 steps, without that
    before the first step where there are others.
    """
    first = min(max(1, steps[-1] - FINAL_STEPS + 1), steps[-1])
    found: np.ndarray = losses[steps >= first].mean(axis=0)
    return found
