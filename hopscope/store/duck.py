"""DuckDB as the store uses it: in memory, without extensions from elsewhere, and interruptible."""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SETTINGS: dict[str, Any] = {
    "autoinstall_known_extensions": False,  # these would reach for the network
    "autoload_known_extensions": False,
    "temp_directory": "",  # nothing is written beside the run
}
LISTEN = 0.1
"""Seconds between looks at whether somebody pressed Ctrl-C."""


@contextmanager
def connected(**settings: Any) -> Iterator[Any]:
    """A connection to an empty database in memory."""
    import duckdb  # 70 ms that `hopscope --help` need not wait for

    with duckdb.connect(config={**SETTINGS, **settings}) as connection:
        yield connection


def execute(connection: Any, query: str, values: Any = None, fetch: str = "fetchall") -> Any:
    """What a query gives, which Ctrl-C ends at once; `fetch` is the method that fetches it.

    DuckDB computes in a thread of its own: it would hear of a signal between queries only.
    """
    found: list[Any] = []
    done = threading.Event()

    def compute() -> None:
        try:
            found.append(getattr(connection.execute(query, values), fetch)())
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


def sql_list(paths: Iterable[Path]) -> str:
    """File names as a list in SQL, where an apostrophe is written twice."""
    quoted = ("'" + str(path).replace("'", "''") + "'" for path in paths)
    return f"[{', '.join(quoted)}]"
