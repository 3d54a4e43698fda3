"""DuckDB as the store uses it: in memory, without extensions from elsewhere, and interruptible."""

import atexit
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from hopscope.errors import RunDamaged

TABLES = {
    "metrics": {
        "split": "varchar", "step": "integer", "seed": "integer", "hop": "tinyint", "loss": "float",
    },
    "parameters": {"seed": "integer", "step": "integer", "name": "varchar", "value": "double"},
}  # fmt: skip
"""The tables that runs hold as Parquet, in a folder of the same name; their columns with types."""
SETTINGS: dict[str, Any] = {
    "autoinstall_known_extensions": False,  # these would reach for the network
    "autoload_known_extensions": False,
    "temp_directory": "",  # nothing is written beside the run
}


@contextmanager
def connected() -> Iterator[Any]:
    """A connection to an empty database in memory, which computes with one thread: the bytes of a
    Parquet file then depend on its rows alone.
    """
    connection = _database(os.getpid()).cursor()
    try:
        with interruptible():
            yield connection
    finally:
        connection.close()


@cache
def _database(process: int) -> Any:  # noqa: ARG001  (a fork must not use its parent's)
    """One for the process: to open it takes ten times as long as most of what is asked of it."""
    atexit.register(close)  # DuckDB complains of what is left at the very end
    return opened(threads=1)


def close() -> None:
    """End the process's database and its threads, as before a fork; the next use opens another."""
    _database.cache_clear()


def opened(**settings: Any) -> Any:
    import duckdb  # 70 ms that `hopscope --help` need not wait for

    return duckdb.connect(config={**SETTINGS, **settings})


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C within a query is Ctrl-C: DuckDB hears of it, and makes an error of its own of it."""
    try:
        yield
    except RuntimeError as error:
        if str(error) != "Query interrupted":
            raise
        raise KeyboardInterrupt from error


def check_name(path: Path) -> None:
    """Refuse a file or a folder whose name DuckDB cannot take."""
    try:
        str(path.absolute()).encode()
    except UnicodeEncodeError as error:
        raise RunDamaged(
            f"{str(path)!r} has a name that is not UTF-8, so that no table of it can be read: "
            "rename the folder"
        ) from error


def pattern(path: Path) -> str:
    """The pattern that a file alone fits: DuckDB takes the names of the files that it reads for
    patterns.

    >>> pattern(Path("runs[1]/a*b"))
    'runs[[]1]/a[*]b'
    """
    return re.sub(r"[*?[]", r"[\g<0>]", str(path))


def sql_list(names: Iterable[str]) -> str:
    """Names as a list in SQL."""
    return f"[{', '.join(map(quoted, names))}]"


def quoted(name: str) -> str:
    """A name in SQL, where an apostrophe is written twice."""
    return "'" + name.replace("'", "''") + "'"


def first_line(error: object, most: int = 300) -> str:
    """What DuckDB says first."""
    return (str(error).splitlines() or [""])[0][:most]


def typed(columns: Mapping[str, str]) -> str:
    """The columns of a table, each as the type that it should have."""
    return ", ".join(f"{name}::{kind} as {name}" for name, kind in columns.items())
