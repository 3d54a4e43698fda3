"""`hopscope sweep`, `sweep plan` and `sweep slurm`: all recipes of a file."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from hopscope.cli.arguments import JsonArguments, StoreArguments
from hopscope.cli.output import note, say
from hopscope.cli.workers import WorkersArguments, carried_out, ended, pool_of, seconds_of
from hopscope.configs import Recipe
from hopscope.errors import ConfigError
from hopscope.machine import check_threads
from hopscope.report.symbols import counted
from hopscope.store import Store
from hopscope.workers.recipe_file import read_recipes
from hopscope.workers.shards import Shard

if TYPE_CHECKING:
    from hopscope.workers.progress import Plan

File = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]


@dataclass(frozen=True)
class SweepArguments(StoreArguments, WorkersArguments):
    """Carry out every recipe of a file: what is complete is taken as it is, what was begun goes on.

    `sweep plan FILE` says what that would be; `sweep slurm FILE` prints a job script for SLURM.
    """

    file: File
    """FILE.py, in which `recipes` is a list of recipes or a function that yields them; or FILE.json
    with one recipe or a list."""
    shard: str | None = None
    """K/N: only shard K of N, the first is 1. All shards together are the whole sweep."""
    time_limit: float | None = None
    """Minutes, after which the runs stop with a checkpoint, and the command with exit code 75."""


@dataclass(frozen=True)
class PlanArguments(StoreArguments, WorkersArguments, JsonArguments):
    """What there is of a file's recipes, what is missing, how these workers would pack that, and
    how long it may take. Nothing is trained for it.
    """

    file: File
    """FILE.py or FILE.json, as of `sweep`."""
    shard: str | None = None
    """K/N: only shard K of N."""


@dataclass(frozen=True)
class SlurmArguments(StoreArguments):
    """Print a job script for SLURM, whose jobs take a shard of the recipes each. Read it, then
    submit it; nothing is submitted here.
    """

    file: File
    """FILE.py or FILE.json, as of `sweep`."""
    shards: int = 1
    """Jobs of the array."""
    minutes: int = 240
    """How long one job may take, before it stops with checkpoints and queues itself again."""
    cpus: int = 4
    """Processors of each job."""
    gpus: int = 0
    """GPUs of each job."""
    workers: int = 1
    """Processes of each job, which share its processors."""


def sweep(chosen: SweepArguments) -> int:
    recipes, store = _recipes(chosen), Store(chosen.store)
    if not recipes:
        say(
            f"shard {chosen.shard} is empty: there are fewer packs than shards; --pack 1 makes more"
        )
        return 0
    seconds = seconds_of(chosen.time_limit)
    check_threads(chosen.threads)
    from hopscope.runs import Stop

    stop = Stop(seconds)
    with stop.listening():  # between the runs as well
        return ended(carried_out(recipes, store, chosen, stop))


def plan(chosen: PlanArguments) -> int:
    from hopscope.cli.tables import print_rows
    from hopscope.workers.progress import plans

    recipes, store = _recipes(chosen), Store(chosen.store)
    rows = plans(recipes, store, pool_of(chosen).pack)
    if chosen.json:
        print_rows([row.to_dict() for row in rows], {}, json=True)
    else:
        print_rows([_row_for_people(row) for row in rows], {})
        say(_in_all(rows))
    return 0


def _row_for_people(row: "Plan") -> dict[str, object]:
    """A row for people: jobs by their size, and a time that is read at a glance."""
    cells = row.to_dict()
    del cells["hours"]
    sizes = Counter(row.jobs)
    cells["jobs"] = ", ".join(f"{count} × {size}" for size, count in sizes.items()) or "–"
    cells["left"] = "unknown" if row.seconds is None else _time(row.seconds)
    return cells


def _time(seconds: float) -> str:
    from hopscope.report.progress import clock_time

    return clock_time(max(1.0, seconds)) if seconds else "–"


def _in_all(rows: Sequence["Plan"]) -> str:
    """The last line: how much there is, and how long the rest takes, as far as that is known."""
    runs, complete = sum(row.runs for row in rows), sum(row.complete for row in rows)
    known = sum(row.seconds for row in rows if row.seconds is not None)
    unknown = sum(row.seconds is None for row in rows)
    parts = [f"{complete} of {runs} runs are complete"]
    if known:
        parts.append(f"{_time(known)} left, one run after the other")
    if unknown:
        parts.append(
            f"the time of {counted(unknown, 'setting')} is unknown until a run of each has begun"
        )
    return "; ".join(parts)


def slurm(chosen: SlurmArguments) -> int:
    from hopscope.workers.slurm import Array

    store = Store(chosen.store)
    array = Array(
        chosen.file, store.root, chosen.shards, chosen.minutes, chosen.cpus, chosen.gpus,
        chosen.workers,
    )  # fmt: skip
    recipes = read_recipes(chosen.file)
    if chosen.shards > len(recipes):
        raise ConfigError(f"--shards is {chosen.shards}; expected at most {len(recipes)}, one each")
    say(*array.script().splitlines())
    note("hopscope: save it, read it, and submit it with sbatch")
    return 0


def _recipes(chosen: SweepArguments | PlanArguments) -> tuple[Recipe, ...]:
    recipes, shard = read_recipes(chosen.file), chosen.shard
    if shard is None:
        return recipes
    return Shard.read(shard).of_recipes(recipes, pool_of(chosen).pack)
