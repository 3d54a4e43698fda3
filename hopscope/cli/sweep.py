"""`hopscope sweep`: all recipes of a file, here, with workers, or as jobs of SLURM."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

from hopscope.cli import flags
from hopscope.cli.options import command, option, refuse_unused
from hopscope.cli.output import note, say
from hopscope.cli.tables import print_rows
from hopscope.cli.workers import WorkerFlags, carried_out, ended, seconds_of, workers_options
from hopscope.configs import Recipe
from hopscope.errors import ConfigError
from hopscope.machine import check_threads
from hopscope.plots.progress import clock_time
from hopscope.plots.symbols import counted, setting_text
from hopscope.runs import Stop
from hopscope.store import Store
from hopscope.workers.fleets import PACK, packs
from hopscope.workers.progress import Plan, plans
from hopscope.workers.recipe_file import read_recipes
from hopscope.workers.shards import Shard
from hopscope.workers.slurm import Array

MINUTES, CPUS = 240, 4
"""Default limits of a SLURM job."""


@command(
    click.argument("file", type=click.Path(path_type=Path)),
    option("--plan", "Show complete and missing runs, and the time these take; train nothing."),
    option("--slurm", "Print a job script for SLURM, to read and submit; train nothing."),
    option("--shard K/N", "Only shard K of N; the first is 1."),
    option("--shards N", "With --slurm: jobs of the array.", default=1),
    option("--time-limit MINUTES", "Stop after so many minutes with a checkpoint and exit code 75 "
           "(with --slurm: of each job, which then queues itself again; default: 240)."),
    workers_options, flags.json, flags.store,
)  # fmt: skip
def sweep(
    file: Path, plan: bool, slurm: bool, shard: str | None, shards: int,
    time_limit: float | None, json: bool, store: Store, how: WorkerFlags,
) -> int:  # fmt: skip
    """Train every recipe of a file: complete runs are kept, stopped runs continue.

    FILE.py holds `recipes`, a list of recipes or a function that yields them; FILE.json one recipe
    or a list.
    """
    if slurm:
        refuse_unused("with --slurm", "--plan", "--shard", "--json", "--device", "--threads")
        return _print_script(file, store, shards, time_limit, how)
    refuse_unused("without --slurm", "--shards")
    recipes: Sequence[Recipe] = read_recipes(file)
    if shard is not None:
        recipes = Shard.read(shard).of_recipes(recipes, how.pool().pack)
    if plan:
        refuse_unused("with --plan", "--time-limit")
        return _print_plan(recipes, store, how.pool().pack, json=json)
    refuse_unused("without --plan", "--json")
    if not recipes:
        say(f"shard {shard} is empty: there are fewer packs than shards; --pack 1 makes more")
        return 0
    seconds = seconds_of(time_limit)
    check_threads(how.threads)
    stop = Stop(seconds)
    with stop.listening():  # also between the runs
        return ended(carried_out(recipes, store, how, stop))


def _print_plan(recipes: Sequence[Recipe], store: Store, pack: int, *, json: bool) -> int:
    rows = plans(recipes, store, pack)
    print_rows([row.to_dict() if json else _cells(row) for row in rows], {}, json=json)
    if not json:
        say(_in_all(rows))
    return 0


def _cells(row: Plan) -> dict[str, object]:
    """Return the cells of a row to print: jobs counted by their models, and the time left."""
    cells = row.to_dict()
    del cells["hours"], cells["settings"], cells["jobs"]
    settings = (f"{field}={setting_text(own)}" for field, own in row.settings.items())
    cells["recipe"] = " ".join((row.title, *settings))
    cells["seeds"] = flags.seeds_text(row.seeds)
    sizes = Counter(row.jobs)
    cells["jobs × models"] = ", ".join(f"{count} × {size}" for size, count in sizes.items()) or "–"
    cells["left"] = "unknown" if row.seconds is None else _time(row.seconds)
    return cells


def _time(seconds: float) -> str:
    return clock_time(max(1.0, seconds)) if seconds else "–"


def _in_all(rows: Sequence[Plan]) -> str:
    """Return the last line: complete runs, the time left, and settings of unknown time."""
    runs, complete = sum(row.runs for row in rows), sum(row.complete for row in rows)
    known = sum(row.seconds for row in rows if row.seconds is not None)
    unknown = sum(row.seconds is None for row in rows)
    parts = [f"{complete} of {runs} runs are complete"]
    if known:
        parts.append(f"{_time(known)} left, one run after the other")
    if unknown:
        parts.append(
            f"the time of {counted(unknown, 'setting')} is unknown until each has trained a step"
        )
    return "; ".join(parts)


def _print_script(
    file: Path, store: Store, shards: int, minutes: float | None, how: WorkerFlags
) -> int:
    if how.workers is not None and not how.workers.isdecimal():
        raise ConfigError(f"--workers is {how.workers!r}; expected a number of processes of a job")
    array = Array(
        file, store.root, shards,
        minutes=_whole("--time-limit", minutes, MINUTES),
        cpus=_whole("--cpus", how.cpus, CPUS),
        gpus=_whole("--gpus", how.gpus, 0),
        workers=int(how.workers or 1),
        pack=PACK if how.pack is None else how.pack,
    )  # fmt: skip
    most = len(packs(read_recipes(file), array.pack))
    if shards > most:
        raise ConfigError(
            f"--shards is {shards}; expected at most {most}, one for each pack of {array.pack} "
            "(a smaller --pack makes more)"
        )
    say(*array.script().splitlines())
    note("hopscope: save it, read it, and submit it with sbatch")
    return 0


def _whole(flag: str, value: float | None, default: int) -> int:
    """Return the value of a flag as a whole number for SLURM; raises ConfigError if it is not."""
    if value is None:
        return default
    if not value.is_integer():  # also NaN and infinity
        raise ConfigError(f"{flag} is {value:g}; expected a whole number with --slurm")
    return int(value)
