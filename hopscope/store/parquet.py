"""Tables that a run keeps as Parquet: made from columns, joined from parts, and read.

Nothing is read before it is as it was committed, and has the columns that it should have.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hopscope.errors import RunDamaged, StoreUnwritable
from hopscope.store.duck import check_name, connected, execute, pattern, quoted, sql_list
from hopscope.store.folder import RunFolder

FREE_ROWS, ROWS_PER_BYTE = 1_000_000, 4
"""A file may have so many rows, and so many more for each of its bytes. Losses take two to four
bytes each; rows that take almost none were made to fill the memory."""


@dataclass(frozen=True)
class Table:
    """A table whose files lie in a folder of its name: parts, which become one file at the end."""

    name: str
    columns: Mapping[str, str]
    """The type of each column, as DuckDB calls it."""
    order: str
    """The order of the rows in a file, as a clause of SQL."""

    @property
    def prefix(self) -> str:
        """What the names of all files of the table begin with."""
        return f"{self.name}/"

    @property
    def parts(self) -> str:
        """What the names of its parts begin with, which are merged when the run is complete."""
        return f"{self.name}/part-"

    def part_name(self, start: int, stop: int) -> str:
        """The file of what was recorded after step `start`, up to `stop`."""
        return f"{self.parts}{start:08d}-{stop:08d}.parquet"

    def merged(self, folder: RunFolder) -> bytes:
        """All parts of a run as one file."""
        import duckdb  # 70 ms that `hopscope --help` need not wait for

        paths = folder.checked(self.parts)
        rows = f"select * from read_parquet({sql_list(map(pattern, paths))}) {self.order}"
        with connected() as connection:
            self.check(connection, folder, paths)
            try:
                return _copy(connection, rows)
            except duckdb.Error as error:  # a column that cannot be unpacked, say
                raise self._unreadable(folder, str(error)) from error

    def select(
        self, folder: RunFolder, query: str, values: Mapping[str, Any]
    ) -> dict[str, np.ndarray]:
        """What the query says of the run's files, its $paths; nothing where there are none."""
        found = folder.steadily(lambda: self._selected(folder, query, values))
        for name, column in found.items():
            if np.ma.is_masked(column) and not np.issubdtype(column.dtype, np.floating):
                raise self._unreadable(folder, f"in a row, {name} is missing")
        return {name: _unmasked(column) for name, column in found.items()}

    def _selected(
        self, folder: RunFolder, query: str, values: Mapping[str, Any]
    ) -> dict[str, np.ndarray]:
        import duckdb  # 70 ms that `hopscope --help` need not wait for

        paths = folder.checked(self.prefix)
        if not paths:
            return {}
        with connected() as connection:
            self.check(connection, folder, paths)
            try:
                asked = {"paths": [pattern(path) for path in paths], **values}
                found: dict[str, np.ndarray] = execute(connection, query, asked, "fetchnumpy")
            except duckdb.Error as error:
                raise self._unreadable(folder, str(error)) from error
        return found

    def unpack(self, folder: RunFolder) -> None:
        """Can every number be read? Other checks look at the files' hashes and footers alone."""
        every = ", ".join(self.columns)  # the footer has no hash of them: they must be unpacked
        self.select(folder, f"select bit_xor(hash({every})) from read_parquet($paths)", {})

    def check(self, connection: Any, folder: RunFolder, paths: Sequence[Path]) -> None:
        """Have the files the table's columns, and no more rows than they can hold?"""
        import duckdb  # 70 ms that `hopscope --help` need not wait for

        for path in paths:
            check_name(path)
            file = quoted(pattern(path))
            try:
                shape = connection.execute(f"describe select * from read_parquet({file})")
                columns = {name: kind for name, kind, *_ in shape.fetchall()}
                counted = f"select sum(num_rows) from parquet_file_metadata({file})"
                rows = int(connection.execute(counted).fetchone()[0])
            except duckdb.Error as error:
                raise self._unreadable(folder, str(error)) from error
            if columns != dict(self.columns):
                got = ", ".join(f"{name} {kind}" for name, kind in columns.items())
                raise self._unreadable(folder, f"{path.name} has the columns {got[:100]}")
            size = folder.manifest.files[f"{self.prefix}{path.name}"].size
            if rows > FREE_ROWS + ROWS_PER_BYTE * size:
                raise self._unreadable(folder, f"{path.name} has {rows:,} rows in so few bytes")

    def _unreadable(self, folder: RunFolder, reason: str) -> RunDamaged:
        first = (reason.splitlines() or [""])[0][:200]
        return RunDamaged(
            f"the {self.name} of {folder.name} cannot be read ({first}): "
            f"`hopscope verify {folder.name}` says which file was damaged, if one was"
        )


def to_parquet(rows: Mapping[str, np.ndarray], query: str) -> bytes:
    """A Parquet file of what the query makes of the table `rows`."""
    with connected() as connection:
        connection.register("rows", dict(rows))
        return _copy(connection, query)


def _copy(connection: Any, query: str) -> bytes:
    import duckdb  # 70 ms that `hopscope --help` need not wait for

    try:
        with _fleeting() as path:
            how = "format parquet, compression zstd, use_tmp_file false"
            execute(connection, f"copy ({query}) to {quoted(str(path))} ({how})")
            return path.read_bytes()
    except (OSError, duckdb.IOException) as error:
        first = str(error).splitlines()[0]
        raise StoreUnwritable(
            f"cannot write a temporary file ({first[:200]}): free some space, or set TMPDIR"
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
