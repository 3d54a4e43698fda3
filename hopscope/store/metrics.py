"""The records of a training: losses, and the parameters of small models.

Losses have one row for each split, step, seed and hop; parameters have one for each seed, step and
name.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from hopscope.configs import Recipe
from hopscope.configs.recipe import SPLITS
from hopscope.configs.training import FINAL_STEPS
from hopscope.errors import ConfigError
from hopscope.milestones import learned, learned_below
from hopscope.shapes import Float, Float32, Float64, Int, Int32
from hopscope.store.folder import RunFolder
from hopscope.store.tables import METRICS, PARAMETERS, to_parquet


def loss_rows(
    split: str,
    recipe: Recipe,
    steps: Int32[np.ndarray, "step"],
    losses: Float32[np.ndarray, "step model hop"],
) -> dict[str, np.ndarray]:
    """The rows of the losses of a recipe's models, as columns."""
    asked = np.array(recipe.asked_hops(), np.int8)  # raises above 127 instead of overflowing
    count, models, hops = losses.shape
    return {
        "split": np.repeat(np.int8(SPLITS.index(split)), losses.size),
        "step": np.repeat(steps, models * hops),
        "seed": np.tile(np.repeat(np.asarray(recipe.seeds, np.int32), hops), count),
        "hop": np.tile(asked, count * models),
        "loss": losses.ravel(),
    }


def losses_file(rows: Sequence[dict[str, np.ndarray]]) -> bytes:
    """Return the bytes of one Parquet file of all these rows, sorted."""
    columns = {name: np.concatenate([each[name] for each in rows]) for name in rows[0]}
    names = f"['{SPLITS[0]}', '{SPLITS[1]}'][split + 1]"
    query = f"select {names} as split, step, seed, hop, loss from rows order by {METRICS.order}"
    return to_parquet(columns, query)


def losses(
    folder: RunFolder, split: str
) -> tuple[Int32[np.ndarray, "step"], Float32[np.ndarray, "step model hop"]]:
    """Read the steps and losses of a split, in the order of the recipe's seeds and asked hops."""
    if split not in SPLITS:
        raise ConfigError(f"there are no losses of {split!r}; expected {' or '.join(SPLITS)}")
    seeds, hops = list(folder.recipe.seeds), list(folder.recipe.asked_hops())
    rows = METRICS.select(
        folder,
        "select step, hop, loss from rows where split = $split "
        "order by step, list_position($seeds, seed), hop",
        {"split": split, "seeds": seeds},
    )
    if not rows or not len(rows["step"]):
        return np.empty(0, np.int32), np.empty((0, len(seeds), len(hops)), np.float32)
    steps = np.unique(rows["step"])
    shape = len(steps), len(seeds), len(hops)
    expected = np.stack([steps.repeat(len(seeds) * len(hops)), np.tile(hops, shape[0] * shape[1])])
    if not np.array_equal([rows["step"], rows["hop"]], expected):
        each = "step, seed and hop that its config asks for"
        raise folder.damaged(
            f"the metrics of {folder.name} do not have exactly one row for each {each}"
        )
    return steps, rows["loss"].reshape(shape)


def learned_steps(folder: RunFolder, below: float | None = None) -> list[list[int | None]]:
    """Return for each model the step at which it learned each hop (None: not learned).

    A hop is learned if its loss falls below `below` (default: two thirds of the loss at chance).
    """
    level = learned_below(folder.recipe.chances) if below is None else below
    (steps, train), (checked, validation) = losses(folder, "train"), losses(folder, "validation")
    return [
        learned(steps, train[:, number], checked, validation[:, number], level)
        for number in range(len(folder.recipe.seeds))
    ]


def final_losses(
    steps: Int[np.ndarray, "step"], losses: Float[np.ndarray, "step *rest"]
) -> Float[np.ndarray, "*rest"]:
    """Return the mean of the losses over the last 100 steps.

    The loss at step 0 counts only if there is no other.
    """
    first = min(max(1, steps[-1] - FINAL_STEPS + 1), steps[-1])
    found: np.ndarray = losses[steps >= first].mean(axis=0)
    return found


def parameters_file(
    steps: Int32[np.ndarray, "step"],
    values: Mapping[int, Mapping[str, Float64[np.ndarray, "step"]]],
) -> bytes:
    """Return the bytes of one Parquet file of each seed's parameters at the given steps."""
    named = [(seed, name, series) for seed, own in values.items() for name, series in own.items()]
    columns = {
        "seed": np.repeat(np.array([seed for seed, _, _ in named], np.int32), len(steps)),
        "step": np.tile(steps, len(named)),
        "name": np.repeat(np.array([name for _, name, _ in named]), len(steps)),
        "value": np.concatenate([series for _, _, series in named]),
    }
    return to_parquet(columns, f"select * from rows order by {PARAMETERS.order}")


def parameter_series(folder: RunFolder, seed: int) -> dict[str, Float64[np.ndarray, "step"]]:
    """Return the series of each parameter of one seed by name, and the steps as "step"."""
    query = "select name, step, value from rows where seed = $seed order by name, step"
    rows = PARAMETERS.select(folder, query, {"seed": seed})
    if not rows or not len(rows["step"]):
        return {"step": np.empty(0)}
    names = rows["name"].astype(str)
    steps = np.unique(rows["step"])
    series = {str(name): rows["value"][names == name] for name in np.unique(names)}
    if any(len(each) != len(steps) for each in series.values()):
        what = f"the parameters of {folder.name} do not have exactly one row for each step and name"
        raise folder.damaged(what)
    return {"step": steps.astype(float), **series}
