"""Questions across runs: SQL over every metric of every run.

Three tables: `runs` (name, complete, step, steps, seconds, task, …, config as JSON) and
`metrics` (run, split, step, seed, hop, loss), `parameters` (run, seed, step, name, value; of runs
of the n-gram experiment).
"""

from dataclasses import dataclass
from typing import Any

from hopscope.errors import StoreError
from hopscope.store.folder import RunFolder
from hopscope.store.metrics import sql_list
from hopscope.store.store import Store

RUNS = {
    "name": "varchar",
    "complete": "boolean",
    "step": "integer",
    "steps": "integer",
    "seconds": "double",
    "task": "varchar",
    "hops": "integer",
    "layers": "integer",
    "heads": "integer",
    "d_model": "integer",
    "seeds": "integer[]",
    "config": "json",
}
TABLES = {
    "metrics": "''::varchar as split, 0 as step, 0 as seed, 0::tinyint as hop, 0::float as loss",
    "parameters": "0 as seed, 0 as step, ''::varchar as name, 0::double as value",
}
"""Tables kept as Parquet in folders of the same name, and their columns where there are none."""


@dataclass(frozen=True)
class Answer:
    """The rows of a query."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def sql(store: Store, query: str) -> Answer:
    """Run a query over the tables `runs`, `metrics` and `parameters`."""
    import duckdb  # 70 ms that `hopscope --help` need not wait for

    runs, _ = store.readable()
    with duckdb.connect() as connection:
        _create_views(connection, runs)
        try:
            result = connection.execute(query)
            if result is None:
                raise StoreError("the query is empty (tables: runs, metrics, parameters)")
            columns = tuple(column[0] for column in result.description or ())
            return Answer(columns, tuple(result.fetchall()))
        except duckdb.Error as error:
            first_line = str(error).splitlines()[0]
            raise StoreError(f"{first_line} (tables: runs, metrics, parameters)") from error


def _create_views(connection: Any, runs: list[RunFolder]) -> None:
    columns = ", ".join(f"{name} {kind}" for name, kind in RUNS.items())
    connection.execute(f"create table runs ({columns})")
    if runs:
        marks = ", ".join("?" for _ in RUNS)
        connection.executemany(f"insert into runs values ({marks})", [_row(run) for run in runs])
    for table, empty in TABLES.items():
        paths = [run.path.resolve() / name for run in runs for name in run.files(f"{table}/")]
        rows = f"''::varchar as run, {empty} where false"
        if paths:
            rows = (
                "parse_path(filename)[-3] as run, * exclude (filename) "
                f"from read_parquet({sql_list(paths)}, filename = true)"
            )
        connection.execute(f"create view {table} as select {rows}")


def _row(run: RunFolder) -> list[Any]:
    experiment, manifest = run.experiment, run.manifest
    return [
        run.name,
        manifest.complete,
        manifest.step,
        experiment.steps,
        manifest.seconds,
        experiment.kind,
        *experiment.shape().values(),
        list(experiment.seeds),
        experiment.canonical_json(),
    ]
