"""The tables of a run: Parquet files, written and read by DuckDB.

Every commit of a training adds a part to each table; when the run is complete, the parts of a table
are merged into one file. The bytes of a file depend only on its rows.
"""

import atexit
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from hopscope.errors import RunDamaged, StoreUnwritable
from hopscope.store.folder import RunFolder

DATABASE_SETTINGS: dict[str, Any] = {
    "autoinstall_known_extensions": False,  # these would be fetched from the network
    "autoload_known_extensions": False,
    "temp_directory": "",  # no temporary files
}


class QueryError(Exception):
    """An error of DuckDB; the text is its first line, and the names that it proposes instead."""

    def __init__(self, error: Exception) -> None:
        said, *more = str(error).splitlines() or [""]
        for line in more:
            if line.startswith(("Candidate ", "Did you mean ")):
                said = f"{said.rstrip('!')}; {line[0].lower()}{line[1:]}".replace(": : ", ": ")
        if "module 'pytz'" in said:  # DuckDB makes Python's times with it
            said = "a time with a zone needs pytz: cast it (`now()::timestamp`), or install pytz"
        few = ": allow more (`ulimit -n`)" if "Too many open files" in said else ""
        super().__init__(said[:300] + few)
        self.kind = type(error).__name__


@dataclass(frozen=True)
class RunTable:
    """A table that runs keep as Parquet, in a folder of the same name."""

    name: str
    columns: Mapping[str, str]
    """The type of each column."""
    order: str
    """The columns that its rows are sorted by."""
    file: str
    """The name of the merged file of a complete run."""

    @property
    def parts(self) -> str:
        """The prefix of the names of parts."""
        return f"{self.name}/part-"

    @property
    def typed(self) -> str:
        """The columns in SQL, each cast to its type."""
        return ", ".join(f"{name}::{kind} as {name}" for name, kind in self.columns.items())

    def part_name(self, start: int, stop: int) -> str:
        """Return the name of the part with the records after step `start`, up to `stop` (incl.)."""
        return f"{self.parts}{start:08d}-{stop:08d}.parquet"

    def merged(self, folder: RunFolder) -> bytes:
        """All parts of a run as one file."""
        rows = parquet_rows(folder.paths(self.parts, verify=True))
        with self._damage(folder):
            return to_parquet({}, f"select {self.typed} from {rows} order by {self.order}")

    def select(
        self, folder: RunFolder, query: str, values: Mapping[str, Any]
    ) -> dict[str, np.ndarray]:
        """Return the columns of a query over the table `rows` of one run (no files: empty).

        A missing loss or value is NaN.
        """
        found = folder.snapshot(lambda: self._select(folder, query, values))
        return {
            name: np.ma.filled(each, np.nan if np.issubdtype(each.dtype, np.floating) else None)
            for name, each in found.items()
        }

    def check(self, folder: RunFolder) -> None:
        """Decode all values of a run's files; raises RunDamaged.

        Parquet footers have no checksum of the values.
        """
        every = ", ".join(self.columns)
        self.select(folder, f"select bit_xor(hash({every})) from rows", {})

    def _select(
        self, folder: RunFolder, query: str, values: Mapping[str, Any]
    ) -> dict[str, np.ndarray]:
        paths = folder.paths(f"{self.name}/", verify=True)
        if not paths:
            return {}
        rows = f"with rows as (select {self.typed} from {parquet_rows(paths)}) "
        with self._damage(folder), connection() as duck:
            found: dict[str, np.ndarray] = duck.execute(rows + query, values).fetchnumpy()
        return found

    @contextmanager
    def _damage(self, folder: RunFolder) -> Iterator[None]:
        try:
            yield
        except QueryError as error:
            raise RunDamaged(
                f"the {self.name} of {folder.name} cannot be read ({str(error)[:200]}): "
                f"`{folder.command('verify')}` shows damaged files"
            ) from error


METRICS = RunTable(
    "metrics",
    {"split": "varchar", "step": "integer", "seed": "integer", "hop": "tinyint", "loss": "float"},
    "split, step, seed, hop",
    "metrics/losses.parquet",
)
PARAMETERS = RunTable(
    "parameters",
    {"seed": "integer", "step": "integer", "name": "varchar", "value": "double"},
    "seed, step, name",
    "parameters/values.parquet",
)
TABLES = (METRICS, PARAMETERS)


def merged_tables(folder: RunFolder) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Return each table of a run as one file, and the names of the parts that these replace."""
    files, parts = dict[str, bytes](), list[str]()
    for table in TABLES:
        if names := folder.files(table.parts):
            files[table.file] = table.merged(folder)
            parts += names
    return files, tuple(parts)


def to_parquet(rows: Mapping[str, np.ndarray], query: str) -> bytes:
    """A Parquet file of the query's result; the query may read the table `rows`."""
    try:
        with tempfile.TemporaryDirectory() as folder, connection() as duck:
            path = Path(folder) / "rows.parquet"
            if rows:
                duck.register("rows", dict(rows))
            how = "format parquet, compression zstd, use_tmp_file false"
            duck.execute(f"copy ({query}) to {quoted(str(path))} ({how})")
            return path.read_bytes()
    except (OSError, QueryError) as error:
        if isinstance(error, QueryError) and error.kind != "IOException":
            raise
        raise StoreUnwritable(
            f"cannot write a temporary file ({error}): free some space, or set TMPDIR"
        ) from error


@contextmanager
def connection() -> Iterator[Any]:
    """Yield a connection to an empty in-memory database; errors are raised as QueryError.

    It computes with one thread, so that equal rows make equal bytes.
    """
    cursor = _database(os.getpid()).cursor()
    try:
        with query_errors():
            yield cursor
    finally:
        cursor.close()


@cache
def _database(process: int) -> Any:  # noqa: ARG001  (a fork must not use its parent's)
    """Return the database of this process (cached: opening one is slower than most queries)."""
    atexit.register(_database.cache_clear)  # DuckDB fails if it is still open at the very end
    return open_database(threads=1)


def open_database(**settings: Any) -> Any:
    """Open a new database in memory that installs no extensions."""
    import duckdb  # 70 ms that `hopscope --help` need not wait for

    return duckdb.connect(config={**DATABASE_SETTINGS, **settings})


@contextmanager
def query_errors() -> Iterator[None]:
    """Turn DuckDB's errors into QueryErrors, and its error about Ctrl-C into KeyboardInterrupt."""
    import duckdb  # 70 ms that `hopscope --help` need not wait for

    try:
        yield
    except duckdb.Error as error:
        raise QueryError(error) from error
    except RuntimeError as error:
        if str(error) != "Query interrupted":
            raise
        raise KeyboardInterrupt from error


def parquet_rows(paths: Iterable[Path]) -> str:
    """Return an SQL expression for the rows of Parquet files, with a column `filename`.

    Folder names such as `loss=3` are not read as columns.
    """
    files = sql_list(map(pattern, paths))
    return f"read_parquet({files}, filename = true, hive_partitioning = false)"


def pattern(path: Path) -> str:
    """Return a pattern that matches only this file: DuckDB reads file names as patterns.

    >>> pattern(Path("runs[1]/a*b"))
    'runs[[]1]/a[*]b'
    """
    if re.search("[\ud800-\udfff]", str(path)):
        encoding = sys.getfilesystemencoding()
        if encoding != "utf-8":
            raise RunDamaged(f"{str(path)!r} is read as {encoding} here: set PYTHONUTF8=1")
        raise RunDamaged(f"{str(path)!r} has a name that is not UTF-8: rename the folder")
    found = re.sub(r"[*?[]", r"[\g<0>]", str(path))
    if "\\" in found and "[" in found:  # DuckDB would read other files, or none
        raise RunDamaged(f"{str(path)!r} has a backslash, and also *, ? or [: rename the folder")
    return found


def sql_list(texts: Iterable[str]) -> str:
    """Texts as a list in SQL."""
    return f"[{', '.join(map(quoted, texts))}]"


def quoted(text: str) -> str:
    """Return a text quoted for SQL."""
    return "'" + text.replace("'", "''") + "'"
