"""Metrics as Parquet: one row per split, step, seed and hop.

While a run trains, every commit adds a part; when it is complete, the parts become one file.
"""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32, Int32

from hopscope.errors import RunDamaged
from hopscope.store.folder import RunFolder

LOSSES = "metrics/losses.parquet"
PART = "metrics/part-"
SPLITS = ("train", "validation")
ORDER = "order by split, step, seed, hop"


def part_name(start: int, stop: int) -> str:
    return f"{PART}{start:08d}-{stop:08d}.parquet"


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
    return parquet(rows, f"select {names} as split, step, seed, hop, loss from rows {ORDER}")


def parquet(rows: dict[str, np.ndarray], query: str) -> bytes:
    """A Parquet file of what the query makes of the table `rows`."""
    with _connection() as connection:
        connection.register("rows", rows)
        return _copy(connection, query)


def merged(folder: RunFolder) -> bytes:
    """All parts of a run as one file."""
    return read_parts(folder, PART, ORDER)


def read_parts(folder: RunFolder, prefix: str, order: str) -> bytes:
    """The run's files with this prefix as one."""
    paths = sql_list(folder.path / name for name in folder.files(prefix))
    with _connection() as connection:
        return _copy(connection, f"select * from read_parquet({paths}) {order}")


def select(
    folder: RunFolder, prefix: str, query: str, values: dict[str, Any]
) -> dict[str, np.ndarray]:
    """What the query says of the run's files with this prefix; nothing where there are none."""
    paths = [str(folder.path / name) for name in folder.files(prefix)]
    if not paths:
        return {}
    import duckdb  # 70 ms that `hopscope --help` need not wait for

    with _connection() as connection:
        try:
            found = connection.execute(query, {"paths": paths, **values}).fetchnumpy()
        except duckdb.Error as error:
            raise RunDamaged(
                f"the metrics of {folder.name} cannot be read: "
                f"`hopscope verify {folder.name}` says which file"
            ) from error
    return {name: _unmasked(column) for name, column in found.items()}


def sql_list(paths: Iterable[Path]) -> str:
    """File names as a list in SQL, where an apostrophe is written twice."""
    quoted = ("'" + str(path).replace("'", "''") + "'" for path in paths)
    return f"[{', '.join(quoted)}]"


def _unmasked(column: np.ndarray) -> np.ndarray:
    """What is missing in a column of numbers is not a number, and not what lies under the mask."""
    if np.ma.isMaskedArray(column) and np.issubdtype(column.dtype, np.floating):
        return np.asarray(np.ma.filled(column, np.nan))
    return np.asarray(column)


def losses(folder: RunFolder, split: str) -> tuple[np.ndarray, np.ndarray]:
    """Steps, and losses [step, model, hop] in the order of the experiment's seeds."""
    seeds = folder.experiment.seeds
    rows = select(
        folder,
        "metrics/",
        "select step, hop, loss from read_parquet($paths) where split = $split "
        "order by step, list_position($seeds, seed), hop",
        {"split": split, "seeds": list(seeds)},
    )
    if not rows:
        return np.empty(0, np.int32), np.empty((0, len(seeds), 0), np.float32)
    hops = int(rows["hop"].max()) if len(rows["hop"]) else 0
    shape = (-1, len(seeds), hops)
    table = rows["loss"].reshape(shape if hops else (0, len(seeds), 0))
    return rows["step"][:: max(1, len(seeds) * hops)], table


@contextmanager
def _connection() -> Iterator[Any]:
    import duckdb  # 70 ms that `hopscope --help` need not wait for

    # One thread: the bytes of a Parquet file then depend on its rows alone.
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


def _copy(connection: Any, query: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        connection.execute(f"copy ({query}) to '{path}' (format parquet, compression zstd)")
        return path.read_bytes()
