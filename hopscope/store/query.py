"""Questions in SQL across runs: the tables `runs`, `metrics` and `parameters`.

`Store().sql("from metrics").df()` answers one; pandas and pyarrow are used if they are installed,
and not needed for anything else here. DuckDB computes in memory, without extensions from elsewhere,
and reads no file but those of the runs.
"""

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from textwrap import shorten
from typing import Any, Protocol, TypeVar, runtime_checkable

from hopscope.configs.recipe import SHAPE
from hopscope.display import Displayed
from hopscope.errors import ConfigError, RunDamaged, RunMissing, RunWarning, StoreError
from hopscope.machine import memory_bytes
from hopscope.store.duck import (
    TABLES,
    check_name,
    first_line,
    interruptible,
    opened,
    pattern,
    sql_list,
    typed,
)
from hopscope.store.folder import RunFolder
from hopscope.store.listing import committed, state_of
from hopscope.store.parquet import check_columns

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


@dataclass(frozen=True)
class Question(Displayed):
    """A question in SQL, answered in the form that is asked for, and computed anew each time. Runs
    that cannot be read are left out, with a warning for each. A notebook shows the answer.
    """

    source: Source
    query: str
    strict: bool = False
    """Is a run that cannot be read an error?"""

    def __repr__(self) -> str:
        query = shorten(self.query, 80, placeholder=" …")
        return f"Question({query!r}), answered by .rows(), .df() or .arrow()"

    def answer(self) -> Answer:
        """The rows with the names of their columns, and a line for each run that is left out."""

        def rows(connection: Any) -> tuple[tuple[str, ...], list[Any]]:
            found = connection.execute(self.query).fetchall()
            return tuple(column[0] for column in connection.description or ()), found

        (columns, found), problems = self._asked(rows)
        return Answer(columns, tuple(found), tuple(problems))

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows, as Python's own values."""
        found: list[tuple[Any, ...]] = self._warned(
            lambda duck: duck.execute(self.query).fetchall()
        )
        return found

    def df(self) -> Any:
        """A data frame of pandas, which hopscope does not need otherwise."""
        _check_library("pandas", "a data frame")
        return self._warned(lambda duck: duck.sql(self.query).df())

    def arrow(self) -> Any:
        """A table of pyarrow, which hopscope does not need otherwise."""
        _check_library("pyarrow", "an Arrow table")
        return self._warned(lambda duck: duck.sql(self.query).to_arrow_table())

    def _warned(self, ask: Callable[[Any], Found]) -> Found:
        found, problems = self._asked(ask)
        for problem in problems:
            warnings.warn(f"left out: {problem}", RunWarning, stacklevel=3)
        return found

    def _asked(self, ask: Callable[[Any], Found]) -> tuple[Found, list[str]]:
        found, problems = _answered(self.source, self.query, ask)
        if self.strict and problems:
            raise RunDamaged(problems[0])
        return found, problems


@dataclass(frozen=True)
class Runs:
    """Some runs of one folder, whose tags are not asked for."""

    root: Path
    folders: Sequence[RunFolder]

    def readable(self) -> tuple[list[RunFolder], list[str]]:
        """The runs as they are now, and one line for each that cannot be read."""
        runs, problems = [], []
        for each in self.folders:
            try:
                runs.append(RunFolder(each.path, each.gallery))
            except RunMissing:
                continue
            except StoreError as error:
                problems.append(str(error))
        return runs, problems

    def tags(self) -> dict[str, tuple[str, ...]]:
        """No tags."""
        return {}


def sql(source: Source, query: str) -> Answer:
    """Run a query over the tables `runs`, `metrics` and `parameters`."""
    return Question(source, query).answer()


def metrics_of(folder: RunFolder) -> Question:
    """The losses of one run as a table: split, step, seed, hop, loss."""
    columns = ", ".join(TABLES["metrics"])
    query = f"select {columns} from metrics order by split, step, seed, hop"
    return Question(Runs(folder.path, [folder]), query, strict=True)


def _answered(source: Source, query: str, ask: Callable[[Any], Found]) -> tuple[Found, list[str]]:
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
        with opened(memory_limit=f"{memory_bytes() // 2**21}MiB") as connection, interruptible():
            _check_question(connection, query)
            files, damaged = _files(runs)
            created = False
            try:
                _create_tables(connection, [r for r in runs if r.name not in damaged], tags, files)
                created = True
                return ask(connection), [*problems, *damaged.values()]
            except duckdb.Error as error:
                if any(_has_changed(run) for run in runs):
                    continue
                found = {} if created and _asked_wrongly(error) else _unreadable(runs, files)
                if not found:
                    raise StoreError(f"{first_line(error)} ({KNOWN})") from error
                left_out |= found
    raise StoreError(f"the runs of {source.root} change faster than they can be read: try again")


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
        raise StoreError(f"{first_line(error)} ({KNOWN})") from error
    if not statements:
        raise StoreError(f"the query is empty ({KNOWN})")
    kinds = [statement.type for statement in statements]
    if kinds != [duckdb.StatementType.SELECT]:
        got = " and ".join(dict.fromkeys(kind.name for kind in kinds))
        raise StoreError(
            f"the query is {got if len(kinds) == 1 else f'{len(kinds)} statements ({got})'}, "
            "expected one SELECT, FROM, WITH, DESCRIBE, SHOW or SUMMARIZE: runs are only read here"
        )


def _files(runs: Sequence[RunFolder]) -> tuple[dict[str, dict[str, list[Path]]], dict[str, str]]:
    """The files of every table, by run; and a line for each run of which one is damaged."""
    found: dict[str, dict[str, list[Path]]] = {table: {} for table in TABLES}
    damaged = {}
    for run in runs:
        try:
            check_name(run.path)
            for table in TABLES:
                found[table][run.name] = run.steadily(lambda t=table, r=run: r.paths(f"{t}/"))  # type: ignore[misc]
        except RunMissing:  # removed since it was listed
            continue
        except StoreError as error:
            damaged[run.name] = str(error)
    return found, damaged


def _create_tables(
    connection: Any,
    runs: Sequence[RunFolder],
    tags: Mapping[str, tuple[str, ...]],
    files: Mapping[str, Mapping[str, list[Path]]],
) -> None:
    names = {run.name for run in runs}
    rows = json.dumps([_row(run, tags.get(run.name, ())) for run in runs])
    fields = "{" + ", ".join(f'"{name}": "{kind}"' for name, kind in RUNS.items()) + "}"
    connection.execute(
        f"create table runs as select r.* from (select unnest(from_json(?, '[{fields}]')) as r)",
        [rows],
    )
    allowed = []
    for table, columns in TABLES.items():
        paths = [path.absolute() for name in names for path in files[table].get(name, ())]
        if paths:
            # The path ends in RUN/TABLE/FILE.
            rows_of = f"read_parquet({sql_list(map(pattern, paths))}, filename = true)"
            run = "parse_path(filename, 'system')[-3] as run"
            query = f"select {run}, {typed(columns)} from {rows_of}"
        else:
            empty = ", ".join(f"null::{kind} as {name}" for name, kind in columns.items())
            query = f"select ''::varchar as run, {empty} where false"
        connection.execute(f"create view {table} as {query}")
        # A file is looked for by its pattern, and opened by its name.
        allowed += [*map(str, paths), *map(pattern, paths)]
    connection.execute(f"set allowed_paths = {sql_list(dict.fromkeys(allowed))}")
    connection.execute("set enable_external_access = false")
    connection.execute("set lock_configuration = true")


def _row(run: RunFolder, tags: tuple[str, ...]) -> dict[str, Any]:
    recipe, manifest, date = run.recipe, run.manifest, committed(run.path)
    return {
        "name": run.name,
        "complete": manifest.complete,
        "step": manifest.step,
        "steps": recipe.steps,
        "seconds": manifest.seconds,
        "task": recipe.task_kind,
        **recipe.shape(),
        "seeds": recipe.seeds,
        "config": recipe.model_dump(mode="json"),
        "kind": recipe.kind,
        "state": state_of(run),
        "date": None if date is None else date.replace(tzinfo=None).isoformat(),
        "tags": tags,
    }


def _has_changed(run: RunFolder) -> bool:
    """Were files of it replaced since its manifest was read?"""
    try:
        return RunFolder(run.path, run.gallery).manifest.files != run.manifest.files
    except StoreError:
        return True


def _asked_wrongly(error: Exception) -> bool:
    import duckdb  # 70 ms that `hopscope --help` need not wait for

    wrong = duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException
    return isinstance(error, (*wrong, duckdb.OutOfMemoryException))


def _unreadable(
    runs: Sequence[RunFolder], files: Mapping[str, Mapping[str, list[Path]]]
) -> dict[str, str]:
    """The runs of which a table cannot be unpacked, with a line on each."""
    found = {}
    for run in runs:
        try:
            for table in TABLES:
                check_columns(run, table, files[table].get(run.name, ()))
        except StoreError as damage:
            found[run.name] = str(damage)
    return found


def _check_library(name: str, form: str) -> None:
    if find_spec(name) is None:
        raise ConfigError(f"{form} needs {name}: `pip install {name}`; rows() does without")
