"""Tables that a run keeps as Parquet, in a folder of the table's name: parts, which every commit
adds to while the run is trained, and which become one file when it is complete.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from hopscope.errors import RunDamaged, StoreUnwritable
from hopscope.store.duck import (
    TABLES,
    check_name,
    connected,
    first_line,
    pattern,
    quoted,
    sql_list,
    typed,
)
from hopscope.store.folder import RunFolder


def part_prefix(table: str) -> str:
    """What the names of a table's parts begin with."""
    return f"{table}/part-"


def part_name(table: str, start: int, stop: int) -> str:
    """The file of what was recorded after step `start`, up to and including `stop`."""
    return f"{part_prefix(table)}{start:08d}-{stop:08d}.parquet"


def to_parquet(rows: Mapping[str, np.ndarray], query: str) -> bytes:
    """A Parquet file of what the query makes of the table `rows`."""
    with connected() as connection:
        connection.register("rows", dict(rows))
        return _copy(connection, query)


def merged(folder: RunFolder, table: str, order: str) -> bytes:
    """All parts of a run's table as one file, with its rows in this order."""
    import duckdb  # 70 ms that `hopscope --help` need not wait for

    paths = folder.checked(part_prefix(table))
    with connected() as connection:
        try:
            files = sql_list(map(pattern, paths))
            return _copy(connection, f"select * from read_parquet({files}) order by {order}")
        except duckdb.Error as error:  # a column that cannot be unpacked, say
            raise _unreadable(folder, table, error) from error


def select(
    folder: RunFolder, table: str, query: str, values: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """What the query says of a run's `rows`; nothing where there are none."""
    found = folder.steadily(lambda: _selected(folder, table, query, values))
    for name, column in found.items():
        if np.ma.is_masked(column) and not np.issubdtype(column.dtype, np.floating):
            raise _unreadable(folder, table, f"in a row, {name} is missing")
    return {name: _unmasked(column) for name, column in found.items()}


def check_columns(folder: RunFolder, table: str, paths: Sequence[Path]) -> None:
    """Refuse files of which a column is missing, is of another type, or cannot be unpacked."""
    import duckdb  # 70 ms that `hopscope --help` need not wait for

    with connected() as connection:
        for path in paths:
            file = f"read_parquet({quoted(pattern(path))})"
            try:
                shape = connection.execute(f"describe select * from {file}").fetchall()
                got = {name: kind.lower() for name, kind, *_ in shape}
                if got != TABLES[table]:
                    listed = ", ".join(f"{name} {kind}" for name, kind in got.items())
                    raise _unreadable(folder, table, f"{path.name} has the columns {listed[:100]}")
                # The footer has no hash of the numbers: they must be unpacked.
                every = ", ".join(TABLES[table])
                connection.execute(f"select bit_xor(hash({every})) from {file}").fetchall()
            except duckdb.Error as error:
                raise _unreadable(folder, table, error) from error


def _selected(
    folder: RunFolder, table: str, query: str, values: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    import duckdb  # 70 ms that `hopscope --help` need not wait for

    paths = folder.checked(f"{table}/")
    if not paths:
        return {}
    check_name(folder.path)
    files = sql_list(map(pattern, paths))
    rows = f"with rows as (select {typed(TABLES[table])} from read_parquet({files})) "
    with connected() as connection:
        try:
            found: dict[str, np.ndarray] = connection.execute(rows + query, values).fetchnumpy()
        except duckdb.Error as error:
            raise _unreadable(folder, table, error) from error
    return found


def _unreadable(folder: RunFolder, table: str, reason: object) -> RunDamaged:
    return RunDamaged(
        f"the {table} of {folder.name} cannot be read ({first_line(reason, 200)}): "
        f"`hopscope verify {folder.name}` says which file was damaged, if one was"
    )


def _copy(connection: Any, query: str) -> bytes:
    import duckdb  # 70 ms that `hopscope --help` need not wait for

    try:
        with _fleeting() as path:
            how = "format parquet, compression zstd, use_tmp_file false"
            connection.execute(f"copy ({query}) to {quoted(str(path))} ({how})")
            return path.read_bytes()
    except (OSError, duckdb.IOException) as error:
        raise StoreUnwritable(
            f"cannot write a temporary file ({first_line(error, 200)}): free some space, or set "
            "TMPDIR"
        ) from error


@contextmanager
def _fleeting() -> Iterator[Path]:
    """A file for DuckDB to write to, of which nothing is left, even if the process is killed."""
    if not hasattr(os, "memfd_create"):  # Linux has it; elsewhere a kill leaves a file behind
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder) / "rows.parquet"
        return
    number = os.memfd_create("rows.parquet")
    try:
        yield Path(f"/proc/self/fd/{number}")
    finally:
        os.close(number)


def _unmasked(column: np.ndarray) -> np.ndarray:
    """NULLs of a float column become NaN: DuckDB hands them out as a masked array."""
    if np.ma.isMaskedArray(column) and np.issubdtype(column.dtype, np.floating):
        return np.asarray(np.ma.filled(column, np.nan))
    return np.asarray(column)
