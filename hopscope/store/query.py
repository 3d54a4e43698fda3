"""Questions across runs: SQL over every metric of every run.

Three tables: `runs` (name, complete, step, steps, seconds, task, …, config as JSON), `metrics`
(run, split, step, seed, hop, loss) and `parameters` (run, seed, step, name, value; of runs of the
n-gram experiment).

A question only reads, and reads these tables alone: files of the runs are checked against their
manifests first, and then everything else outside the database is closed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from hopscope.configs.recipe import SHAPE
from hopscope.display import Displayed
from hopscope.errors import RunDamaged, RunMismatch, StoreError
from hopscope.machine import memory_bytes
from hopscope.store import metrics, parameters
from hopscope.store.duck import check_name, database, execute, pattern, sql_list
from hopscope.store.folder import RunFolder
from hopscope.store.listing import committed, state_of
from hopscope.store.parquet import Table

RUNS = {
    "name": "varchar",
    "complete": "boolean",
    "step": "integer",
    "steps": "bigint",
    "seconds": "double",
    "task": "varchar",
    **dict.fromkeys(SHAPE, "bigint"),
    "seeds": "bigint[]",
    "config": "json",
    "kind": "varchar",
    "state": "varchar",
    "date": "timestamp",
    "tags": "varchar[]",
}
"""The columns of the table `runs`, with their types."""
TABLES = (metrics.TABLE, parameters.TABLE)
KNOWN = "tables: runs, metrics, parameters"
TRIES = 10
"""Times a question is asked again, because a run that was trained meanwhile has other files."""


Found = TypeVar("Found")


@runtime_checkable
class Source(Protocol):
    """Runs that can be asked: a store, or one run."""

    @property
    def root(self) -> Path:
        """The folder of the store or of the one run; messages name it."""

    def readable(self) -> tuple[list[RunFolder], list[str]]:
        """The runs that can be read, and one line for each that cannot."""

    def tags(self) -> dict[str, tuple[str, ...]]:
        """The tags of each run that has any, by its name."""


@dataclass(frozen=True)
class Answer(Displayed):
    """The rows that a query found, with the names of their columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    problems: tuple[str, ...] = ()
    """One line for each run that is left out, since it cannot be read."""

    def __repr__(self) -> str:
        return f"Answer({len(self.rows)} rows of {', '.join(self.columns)})"


def sql(store: Source, query: str) -> Answer:
    """Run a query over the tables `runs`, `metrics` and `parameters`."""

    def rows(connection: Any) -> Any:
        found = execute(connection, query)
        return tuple(column[0] for column in connection.description or ()), tuple(found)

    (columns, found), problems = answered(store, query, rows)
    return Answer(columns, found, tuple(problems))


def answered(source: Source, query: str, ask: Callable[[Any], Found]) -> tuple[Found, list[str]]:
    """What `ask` gets from a connection to the tables, once the query was found to be a question;
    and a line for each run that is left out.
    """
    import duckdb  # 70 ms that `hopscope --help` need not wait for

    left_out: dict[str, str] = {}
    for _ in range(TRIES):
        runs, problems = source.readable()
        runs = [run for run in runs if run.name not in left_out]
        problems += left_out.values()
        tags = _tags(source, problems)
        with database(memory_limit=f"{memory_bytes() // 2**21}MiB") as connection:
            _check_question(connection, query)
            try:  # the views bind to files that may go meanwhile
                runs = _with_views(connection, runs, tags, problems)
                return ask(connection), problems
            except duckdb.Error as error:
                if any(_has_changed(run) for run in runs):
                    continue
                found = _unreadable(runs, error)
                if not found:
                    first_line = str(error).splitlines()[0]
                    raise StoreError(f"{first_line[:300]} ({KNOWN})") from error
                left_out |= found
    raise StoreError(f"the runs of {source.root} change faster than they can be read: try again")


def _unreadable(runs: Sequence[RunFolder], error: Exception) -> dict[str, str]:
    """The runs of which a table cannot be unpacked, if that may be why the question failed."""
    import duckdb  # 70 ms that `hopscope --help` need not wait for

    asked_wrongly = duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException
    if isinstance(error, (*asked_wrongly, duckdb.OutOfMemoryException)):
        return {}
    found = {}
    for run in runs:
        try:
            for table in TABLES:
                table.unpack(run)
        except StoreError as damage:
            found[run.name] = str(damage)
    return found


def _tags(source: Source, problems: list[str]) -> Mapping[str, tuple[str, ...]]:
    try:
        return source.tags()
    except StoreError as error:
        problems.append(str(error))
        return {}


def _check_question(connection: Any, query: str) -> None:
    """Is it one statement that only reads?"""
    import duckdb  # 70 ms that `hopscope --help` need not wait for

    try:
        statements = connection.extract_statements(query)
    except duckdb.Error as error:
        raise StoreError(f"{str(error).splitlines()[0][:300]} ({KNOWN})") from error
    if not statements:
        raise StoreError(f"the query is empty ({KNOWN})")
    kinds = [statement.type for statement in statements]
    if kinds != [duckdb.StatementType.SELECT]:
        got = " and ".join(dict.fromkeys(kind.name for kind in kinds))
        raise StoreError(
            f"the query is {got if len(kinds) == 1 else f'{len(kinds)} statements ({got})'}, "
            "expected one SELECT, FROM, WITH, DESCRIBE, SHOW or SUMMARIZE: runs are only read here"
        )


def _with_views(
    connection: Any,
    runs: list[RunFolder],
    tags: Mapping[str, tuple[str, ...]],
    problems: list[str],
) -> list[RunFolder]:
    """The runs that the tables show; those that cannot be read become problems."""
    sound = []
    columns = ", ".join(f"{name} {kind}" for name, kind in RUNS.items())
    connection.execute(f"create table runs ({columns})")
    for run in runs:
        try:
            run.steadily(lambda run=run: _add(connection, run, tags.get(run.name, ())))  # type: ignore[misc]
            sound.append(run)
        except StoreError as error:
            problems.append(str(error))
    for table in TABLES:
        _create_view(connection, table, sound)
    paths = [run.path.absolute() / name for run in sound for name in run.manifest.files]
    # A file is looked for by its pattern, and opened by its name.
    allowed = sql_list(dict.fromkeys([*map(str, paths), *map(pattern, paths)]))
    connection.execute(f"set allowed_paths = {allowed}")
    connection.execute("set enable_external_access = false")
    connection.execute("set lock_configuration = true")
    return sound


def _add(connection: Any, run: RunFolder, tags: tuple[str, ...]) -> None:
    """Check the files of a run that the tables show, and add it to the table of runs."""
    import duckdb  # 70 ms that `hopscope --help` need not wait for

    check_name(run.path)
    for table in TABLES:
        table.check(connection, run, run.checked(table.prefix))
    marks = ", ".join("?" for _ in RUNS)
    try:
        connection.execute(f"insert into runs values ({marks})", _row(run, tags))
    except duckdb.Error as error:
        first = str(error).splitlines()[0][:200]
        raise RunMismatch(f"{run.path}: its config cannot be shown as a table: {first}") from error


def _create_view(connection: Any, table: Table, runs: Sequence[RunFolder]) -> None:
    files = [run.path.absolute() / name for run in runs for name in run.files(table.prefix)]
    if files:
        rows = (
            "parse_path(filename, 'system')[-3] as run, * exclude (filename) "
            f"from read_parquet({sql_list(map(pattern, files))}, filename = true)"
        )
    else:
        empty = (f"null::{kind} as {name}" for name, kind in table.columns.items())
        rows = f"''::varchar as run, {', '.join(empty)} where false"
    connection.execute(f"create view {table.name} as select {rows}")


def _has_changed(run: RunFolder) -> bool:
    """Were files of it replaced since its manifest was read?"""
    try:
        return RunFolder(run.path).manifest.files != run.manifest.files
    except RunDamaged:
        return True


def _row(run: RunFolder, tags: tuple[str, ...]) -> list[Any]:
    recipe, manifest, date = run.recipe, run.manifest, committed(run.path)
    return [
        run.name,
        manifest.complete,
        manifest.step,
        recipe.steps,
        manifest.seconds,
        recipe.task_kind,
        *(recipe.shape()[name] for name in SHAPE),
        list(recipe.seeds),
        recipe.canonical_json(),
        recipe.kind,
        state_of(run),
        date if date is None else date.replace(tzinfo=None),
        list(tags),
    ]
