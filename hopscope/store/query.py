"""SQL queries across runs, over the tables `runs`, `metrics` and `parameters`.

`Store().sql("from metrics").df()` runs a query; only `df` and `arrow` need pandas and pyarrow.
DuckDB computes in memory, installs no extensions, and can read only files of runs.
"""

import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from textwrap import shorten
from typing import Any, TypeVar

from hopscope.configs.recipe import SHAPE, of_seeds
from hopscope.display import Displayed
from hopscope.errors import ConfigError, RunDamaged, RunMissing, RunWarning, StoreError
from hopscope.machine import memory_bytes
from hopscope.store.folder import RunFolder
from hopscope.store.listing import committed, state_of
from hopscope.store.tables import (
    METRICS,
    TABLES,
    QueryError,
    RunTable,
    open_database,
    parquet_rows,
    pattern,
    query_errors,
    sql_list,
)

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
TRIES = 10
"""Most attempts for a query (trainings may replace files meanwhile)."""
TABLE_NAMES = "tables: runs, metrics, parameters"
USER_ERRORS = ("BinderException", "CatalogException", "OutOfMemoryException")
"""DuckDB errors that are caused by the query, not by a file."""
T = TypeVar("T")
Files = dict[str, list[Path]]
"""The files of the tables that a query reads, by run."""


@dataclass(frozen=True)
class Answer(Displayed):
    """The result of a query: rows and the names of their columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    problems: tuple[str, ...] = ()
    """One line for each run that is left out because it cannot be read."""

    def __repr__(self) -> str:
        return f"Answer({len(self.rows)} rows of {', '.join(self.columns)})"


@dataclass(frozen=True)
class SqlQuery(Displayed):
    """An SQL query, which is computed again at each call of `rows`, `df`, `arrow` or `answer`.

    Runs that cannot be read are left out, with a warning for each. A notebook shows the result.
    """

    query: str
    runs: Callable[[], tuple[list[RunFolder], list[str]]]
    """Reads the runs; also returns one line for each unreadable run."""
    tags: Callable[[], Mapping[str, tuple[str, ...]]] | None = None
    """Reads the tags of runs, by name; None if there are no tags."""
    strict: bool = False
    """Whether an unreadable run raises RunDamaged."""
    twice: bool = False
    """Whether a model counts in its own run and also in its fleet, which is not removed yet."""

    def __repr__(self) -> str:
        query = shorten(self.query, 80, placeholder=" …")
        return f"SqlQuery({query!r}), answered by .rows(), .df() or .arrow()"

    def answer(self) -> Answer:
        """Run the query; the answer also has a line for each run that is left out."""

        def ask(duck: Any) -> tuple[tuple[str, ...], list[Any]]:
            rows = duck.execute(self.query).fetchall()
            return tuple(column[0] for column in duck.description or ()), rows

        (columns, rows), problems = self._ask(ask)
        return Answer(columns, tuple(rows), tuple(problems))

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows, as plain Python values."""
        rows: list[tuple[Any, ...]] = self._warn(lambda duck: duck.execute(self.query).fetchall())
        return rows

    def df(self) -> Any:
        """A data frame of pandas."""
        _check_library("pandas", "a data frame")
        return self._warn(lambda duck: duck.sql(self.query).df())

    def arrow(self) -> Any:
        """A table of pyarrow."""
        _check_library("pyarrow", "an Arrow table")
        return self._warn(lambda duck: duck.sql(self.query).to_arrow_table())

    def _warn(self, ask: Callable[[Any], T]) -> T:
        found, problems = self._ask(ask)
        for problem in problems:
            warnings.warn(f"left out: {problem}", RunWarning, stacklevel=3)
        return found

    def _ask(self, ask: Callable[[Any], T]) -> tuple[T, list[str]]:
        """Call `ask` with a connection; return its result, and a line for each run left out.

        If DuckDB fails, a training may have replaced files, so the query is repeated. If it fails
        again with the same files, it is repeated without the runs whose files are damaged.
        """
        tables = [table for table in TABLES if table.name in self.query.lower()]
        damaged: dict[str, str] = {}
        before: Files | None = None
        for _ in range(TRIES):
            runs, problems = self.runs()
            runs = [run for run in runs if run.name not in damaged]
            files = _files(runs, tables, damaged)
            runs = [run for run in runs if run.name in files]
            runs = runs if self.twice else _each_model_once(runs)
            files = {run.name: files[run.name] for run in runs}
            try:
                found = self._ask_once(ask, runs, files, problems)
            except QueryError as error:
                unreadable = _unreadable(runs, tables) if files == before else {}
                if files == before and not unreadable:
                    raise StoreError(f"{error} ({TABLE_NAMES})") from error
                damaged, before = damaged | unreadable, files
                continue
            problems += damaged.values()
            if self.strict and problems:
                raise RunDamaged(problems[0])
            return found, problems
        raise StoreError("the runs change faster than they can be read: try again")

    def _ask_once(
        self, ask: Callable[[Any], T], runs: list[RunFolder], files: Files, problems: list[str]
    ) -> T:
        """Return what `ask` returns.

        Raises StoreError for a wrong query, and QueryError for other failures (damaged files).
        """
        try:
            tags = self.tags() if self.tags else {}
        except StoreError as error:
            tags = {}
            problems.append(str(error))
        with open_database(memory_limit=f"{memory_bytes() // 2**21}MiB") as duck:
            _check_query(duck, self.query)
            with query_errors():
                _create_tables(duck, runs, tags, files)
            try:
                with query_errors():
                    return ask(duck)
            except QueryError as error:
                if error.kind in USER_ERRORS:
                    raise StoreError(f"{error} ({TABLE_NAMES})") from error
                raise


def read_runs(paths: Iterable[Path], gallery: bool = False) -> tuple[list[RunFolder], list[str]]:
    """Read the runs in these folders; return them, and one line for each unreadable run.

    Runs that were removed meanwhile are left out.
    """
    runs, problems = [], []
    for path in paths:
        try:
            runs.append(RunFolder(path, gallery))
        except RunMissing:
            continue
        except StoreError as error:
            problems.append(str(error))
    return runs, problems


def metrics_of(folder: RunFolder) -> SqlQuery:
    """The losses of one run as a table: split, step, seed, hop, loss."""
    query = f"select {', '.join(METRICS.columns)} from metrics order by {METRICS.order}"
    return SqlQuery(query, partial(read_runs, [folder.path], folder.gallery), strict=True)


def _check_query(duck: Any, query: str) -> None:
    """Raise StoreError unless the query is a single statement that only reads."""
    try:
        with query_errors():
            kinds = [statement.type.name for statement in duck.extract_statements(query)]
    except QueryError as error:
        raise StoreError(f"{error} ({TABLE_NAMES})") from error
    if not kinds:
        raise StoreError(f"the query is empty ({TABLE_NAMES})")
    if kinds == ["MULTI"]:
        raise StoreError("PIVOT needs its columns here, as `on split in ('train', 'validation')`")
    if kinds != ["SELECT"]:
        got = " and ".join(dict.fromkeys(kinds))
        raise StoreError(
            f"the query is {got if len(kinds) == 1 else f'{len(kinds)} statements ({got})'}, "
            "expected one SELECT, FROM, WITH, DESCRIBE, SHOW or SUMMARIZE: runs are only read here"
        )


def _each_model_once(runs: Sequence[RunFolder]) -> list[RunFolder]:
    """Leave out single runs whose complete fleet is still in the store."""
    fleets = [run.recipe for run in runs if run.packed and run.manifest.complete]
    members = {each.run_name() for fleet in fleets for each in of_seeds(fleet)}
    return [run for run in runs if run.name not in members]


def _files(runs: Sequence[RunFolder], tables: Sequence[RunTable], damaged: dict[str, str]) -> Files:
    """The files of these tables, by run; runs with a damaged file are added to `damaged`."""
    found: Files = {}
    for run in runs:
        try:
            prefixes = [f"{table.name}/" for table in tables]
            found[run.name] = run.snapshot(partial(_paths, run, prefixes))
        except RunMissing:
            continue
        except StoreError as error:
            damaged[run.name] = str(error)
    return found


def _paths(run: RunFolder, prefixes: Sequence[str]) -> list[Path]:
    paths = [path.absolute() for prefix in prefixes for path in run.paths(prefix)]
    for path in paths:
        pattern(path)  # raises for names that DuckDB could not read
    return paths


def _create_tables(
    duck: Any,
    runs: Sequence[RunFolder],
    tags: Mapping[str, tuple[str, ...]],
    files: Files,
) -> None:
    rows = json.dumps([_row(run, tags.get(run.name, ())) for run in runs])
    fields = "{" + ", ".join(f'"{name}": "{kind}"' for name, kind in RUNS.items()) + "}"
    duck.execute(
        f"create table runs as select r.* from (select unnest(from_json(?, '[{fields}]')) as r)",
        [rows],
    )
    allowed = [path for paths in files.values() for path in paths]
    for table in TABLES:
        paths = [path for path in allowed if path.parent.name == table.name]
        if paths:
            # A file's path ends in RUN/TABLE/FILE.
            run = "parse_path(filename, 'system')[-3] as run"
            query = f"select {run}, {table.typed} from {parquet_rows(paths)}"
        else:
            empty = ", ".join(f"null::{kind} as {name}" for name, kind in table.columns.items())
            query = f"select ''::varchar as run, {empty} where false"
        duck.execute(f"create view {table.name} as {query}")
    # DuckDB checks both the pattern and the name of a file against this list.
    duck.execute(f"set allowed_paths = {sql_list({*map(str, allowed), *map(pattern, allowed)})}")
    duck.execute("set timezone = 'UTC'")  # as the column `date`, so that `now()` compares with it
    duck.execute("set enable_external_access = false")
    duck.execute("set lock_configuration = true")


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


def _unreadable(runs: Sequence[RunFolder], tables: Sequence[RunTable]) -> dict[str, str]:
    """Return the runs that have an unreadable table, with a line on each."""
    found = {}
    for run in runs:
        try:
            for table in tables:
                table.check(run)
        except StoreError as error:
            found[run.name] = str(error)
    return found


def _check_library(name: str, form: str) -> None:
    if find_spec(name) is None:
        raise ConfigError(f"{form} needs {name}: `pip install {name}`; rows() does without")
