"""DuckDB as the store uses it: in memory, without extensions from elsewhere, and interruptible."""

import atexit
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from hopscope.errors import RunDamaged

SETTINGS: dict[str, Any] = {
    "autoinstall_known_extensions": False,  # these would reach for the network
    "autoload_known_extensions": False,
    "temp_directory": "",  # nothing is written beside the run
}
LISTEN = 0.1
"""Seconds between looks at whether somebody pressed Ctrl-C."""


@contextmanager
def connected() -> Iterator[Any]:
    """A connection to an empty database in memory, which computes with one thread: the bytes of a
    Parquet file then depend on its rows alone.
    """
    connection = _database(os.getpid()).cursor()
    try:
        yield connection
    finally:
        connection.close()


@cache
def _database(process: int) -> Any:  # noqa: ARG001  (a fork must not use its parent's)
    """One for the process: to open it takes ten times as long as most of what is asked of it."""
    atexit.register(close)  # DuckDB complains of what is left at the very end
    return database(threads=1)


def close() -> None:
    """End the process's database and its threads, as before a fork; the next use opens another."""
    _database.cache_clear()


def database(**settings: Any) -> Any:
    """A new empty database in memory, as a context."""
    import duckdb  # 70 ms that `hopscope --help` need not wait for

    return duckdb.connect(config={**SETTINGS, **settings})


def execute(connection: Any, query: str, values: Any = None, fetch: str = "fetchall") -> Any:
    """What a query gives, which Ctrl-C ends at once; `fetch` is the method that fetches it."""
    return _interruptible(connection, lambda: connection.execute(query, values), fetch)


def in_form(connection: Any, query: str, form: str) -> Any:
    """The same in another form, by a method of DuckDB's relations: `df`, `to_arrow_table`."""
    return _interruptible(connection, lambda: connection.sql(query), form)


def _interruptible(connection: Any, ask: Callable[[], Any], fetch: str) -> Any:
    """DuckDB computes in a thread of its own: it would hear of a signal between queries only."""
    found: list[Any] = []
    done = threading.Event()

    def compute() -> None:
        try:
            found.append(getattr(ask(), fetch)())
        except BaseException as error:  # noqa: BLE001  (raised again below, by who asked)
            found.append(error)
        finally:
            done.set()

    threading.Thread(target=compute, daemon=True).start()
    try:
        while not done.wait(LISTEN):
            pass
    except BaseException:
        while not done.is_set():
            connection.interrupt()
            done.wait(LISTEN)
        raise
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


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
