"""Metrics as Parquet: one row per split, step, seed and hop.

While a run trains, every commit adds a part; when it is complete, the parts become one file.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Float32, Int, Int32

from hopscope.configs import Recipe
from hopscope.configs.training import FINAL_STEPS
from hopscope.errors import ConfigError, RunDamaged
from hopscope.store import parquet
from hopscope.store.folder import RunFolder

TABLE = "metrics"
ORDER = "split, step, seed, hop"
LOSSES = "metrics/losses.parquet"
"""The file of all losses of a complete run."""
PART = parquet.part_prefix(TABLE)
SPLITS = ("train", "validation")


def check_split(split: str) -> None:
    """Refuse losses of which there are none."""
    if split not in SPLITS:
        raise ConfigError(f"there are no losses of {split!r}; expected {' or '.join(SPLITS)}")


def part_name(start: int, stop: int) -> str:
    """The file of the losses of the steps after `start`, up to and including `stop`."""
    return parquet.part_name(TABLE, start, stop)


def part(
    split: str,
    recipe: Recipe,
    steps: Int32[np.ndarray, "step"],
    losses: Float32[np.ndarray, "step model hop"],
) -> dict[str, np.ndarray]:
    """The rows of the losses of a recipe's models on the hops that it asks for, as columns."""
    asked = np.array(recipe.asked_hops(), np.int8)  # an error, not another number, beyond 127
    count, models, hops = losses.shape
    return {
        "split": np.repeat(np.int8(SPLITS.index(split)), losses.size),
        "step": np.repeat(steps, models * hops),
        "seed": np.tile(np.repeat(np.asarray(recipe.seeds, np.int32), hops), count),
        "hop": np.tile(asked, count * models),
        "loss": losses.ravel(),
    }


def to_parquet(parts: Sequence[dict[str, np.ndarray]]) -> bytes:
    """One Parquet file of all the columns given, rows in a fixed order."""
    rows = {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
    names = f"['{SPLITS[0]}', '{SPLITS[1]}'][split + 1]"
    query = f"select {names} as split, step, seed, hop, loss from rows order by {ORDER}"
    return parquet.to_parquet(rows, query)


def merged(folder: RunFolder) -> bytes:
    """All parts of a run as one file."""
    return parquet.merged(folder, TABLE, ORDER)


def losses(
    folder: RunFolder, split: str
) -> tuple[Int32[np.ndarray, "step"], Float32[np.ndarray, "step model hop"]]:
    """Steps, and losses [step, model, hop] in the order of the recipe's seeds and asked hops."""
    check_split(split)
    seeds, hops = list(folder.recipe.seeds), folder.recipe.asked_hops()
    rows = parquet.select(
        folder,
        TABLE,
        "select step, coalesce(list_position($seeds, seed), 0) - 1 as model, hop, loss "
        "from rows where split = $split order by step, model, hop",
        {"split": split, "seeds": seeds},
    )
    if not rows or not len(rows["step"]):
        return np.empty(0, np.int32), np.empty((0, len(seeds), 0), np.float32)
    if not _is_whole(rows, len(seeds), hops):
        raise RunDamaged(
            f"the metrics of {folder.name} have not one row for each step, seed and hop that its "
            f"config asks for: restore them from a copy, or `hopscope rm {folder.name}` and train "
            "again"
        )
    shape = (-1, len(seeds), len(hops))
    return rows["step"][:: len(seeds) * len(hops)], rows["loss"].reshape(shape)


def _is_whole(rows: dict[str, np.ndarray], models: int, hops: Sequence[int]) -> bool:
    """Has every step, model and hop one row, in this order?"""
    each = models * len(hops)
    if len(rows["step"]) % each:
        return False
    steps = rows["step"].reshape(-1, each)
    model, hop = (rows[name].reshape(-1, models, len(hops)) for name in ("model", "hop"))
    return bool(
        (steps == steps[:, :1]).all()
        and (np.diff(steps[:, 0]) > 0).all()
        and (model == np.arange(models)[:, None]).all()
        and (hop == np.array(hops)).all()
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
