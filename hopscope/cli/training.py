"""`hopscope train`, `resume`, `presets` and `demo`."""

from math import log
from operator import itemgetter
from pathlib import Path
from shlex import quote
from typing import TypeVar

import click

from hopscope import papers, runs
from hopscope import study as studies
from hopscope.cli import flags
from hopscope.cli.changes import changed
from hopscope.cli.display import RunDisplay
from hopscope.cli.options import command, completing, option, refuse_unused
from hopscope.cli.output import say, warn
from hopscope.cli.tables import circuit_parts, print_parts, print_rows, run_parts
from hopscope.cli.workers import WorkerFlags, carried_out, ended, workers_options
from hopscope.configs import Experiment, LmBench, Recipe, read_recipe
from hopscope.configs.recipe import of_seeds
from hopscope.errors import ConfigError
from hopscope.papers.cost import training_flop
from hopscope.plots.piece import pieces_of
from hopscope.plots.progress import clock_time
from hopscope.plots.symbols import setting_text
from hopscope.store import RunFolder, Store
from hopscope.store.files import check_files, read_bytes, write_bytes
from hopscope.workers.recipe_file import mistakes_in

R = TypeVar("R", bound=Recipe)
LONG = 60.0
"""A training that is estimated to take longer than this (seconds) is announced with its time."""


KEYS = completing(lambda ctx: [f"{key}=" for key in recipe_of(ctx.params["recipe"]).named()])


@command(
    click.argument("recipe", metavar="RECIPE", shell_complete=flags.PRESETS),
    click.argument("changes", nargs=-1, metavar="[KEY=VALUE]…", shell_complete=KEYS),
    flags.seeds, workers_options, flags.store,
    option("--prolong RUN", "Continue from a run of the same training with fewer steps; that run "
           "is kept.", shell_complete=flags.RUNS),
)  # fmt: skip
def train(
    recipe: str, changes: tuple[str, ...], seeds: tuple[int, ...] | None, prolong: str | None,
    store: Store, how: WorkerFlags,
) -> int:  # fmt: skip
    """Train a preset (`hopscope presets` lists them) or a recipe's file (FILE.json).

    KEY=VALUE changes a field of the recipe. `hopscope presets NAME` shows every key of a preset
    with its value; docs/fields.md explains them. The most common:

    \b
      training.steps=1000        optimiser steps
      training.lr=0.001          learning rate
      training.batch=64          examples of a step
      model.layers=3             layers
      model.heads=4              heads of a layer
      task.hops=2                hops of a question

    Several seeds (--seeds 0..7) make one run each; they train together as fleets.
    """
    chosen = with_seeds(changed(recipe_of(recipe), changes, recipe), changes, seeds)
    for setting in chosen.warnings():
        warn(setting)
    several = seeds is not None and len(seeds) > 1
    if several or how.workers is not None:
        if prolong is not None:
            raise ConfigError(
                "--prolong goes on with one run: leave out --workers, and name one seed"
            )
        recipes = of_seeds(chosen) if several else [chosen]
        outcome = carried_out(recipes, store, how)
        say(*(folder.name for folder in outcome.folders))
        return ended(outcome)
    how.pool()  # refuses flags that need --workers
    if how.pack is not None:
        raise ConfigError("--pack is for several runs: name several with --seeds")
    if prolong is not None:
        from hopscope.training import prolong as begin

        if not isinstance(chosen, Experiment):
            raise ConfigError("--prolong goes on with a training over facts")
        begin(flags.find_run(prolong, store, beside=chosen.run_name()), chosen, store)
    show_trained(chosen, store, how.device, how.threads)
    return 0


@command(
    flags.run, flags.device, flags.threads, flags.store,
    option("--endpoint URL", "The run's endpoint again (with #NAME), if it asks one: "
           "$HOPSCOPE_API_KEY is sent there."),
)  # fmt: skip
def resume(run: str, device: str, threads: int | None, store: Store, endpoint: str | None) -> None:
    """Continue a run that was stopped or killed; the result is the same as without the stop."""
    folder = flags.find_run(run, store)
    folder.check_resumable()
    _check_endpoint(folder, endpoint)
    show_trained(folder.recipe, Store(folder.path.parent), device, threads)


def _check_endpoint(folder: RunFolder, named: str | None) -> None:
    """Raise ConfigError unless the user names the endpoint that the run asks.

    The run may be somebody else's, and its endpoint receives the user's key.
    """
    recipe = folder.recipe
    if not isinstance(recipe, LmBench) or not recipe.endpoint:
        refuse_unused("as this run asks no endpoint", "--endpoint")
    elif named != recipe.model and not folder.manifest.complete:
        raise ConfigError(
            f"{folder.name} sends its questions and $HOPSCOPE_API_KEY to {recipe.model}: if you "
            f"trust it, add --endpoint {quote(recipe.model)}"
        )


@command(
    click.argument("name", required=False, metavar="[PRESET]", shell_complete=flags.PRESETS),
    option("--save FILE.json", "Write the preset as a recipe, which `hopscope train FILE.json` "
           "takes."),
    flags.json,
)  # fmt: skip
def presets(name: str | None, save: Path | None, json: bool) -> None:
    """List the presets, or show every field of one with its source in the paper."""
    if save is not None:
        refuse_unused("with --save", "--json")
        _save_preset(name, save)
        return
    if name is None:
        known = papers.presets().values()
        print_rows([{"name": one.name, "summary": one.summary} for one in known], {}, json=json)
        return
    chosen = papers.preset(name)
    if not json:
        say(f"{name}: {chosen.summary}", "")
    rows = [
        {"field": field, "value": value if json else setting_text(value), "source": source}
        for field, value, source in chosen.fields()
    ]
    print_rows(rows, {}, json=json)


def _save_preset(name: str | None, path: Path) -> None:
    if name is None:
        raise ConfigError("--save writes one preset: name it; `hopscope presets` lists them")
    if path.suffix != ".json":
        raise ConfigError(f"--save is {path}; expected a name that ends in .json")
    recipe = papers.preset(name).recipe
    check_files(path)
    write_bytes(path, recipe.to_file().encode())
    say(f"recipe: {path}; `hopscope train {quote(str(path))}` trains it")


@command(
    option("--seed N", "Which model: another seed begins with other weights and sees other "
           "examples.", default=0),
    option("--save FILE.html", "Where the page goes (default: reports/RUN.html)."),
    flags.store,
)  # fmt: skip
def demo(seed: int, save: Path | None, store: Store) -> None:
    """Train the demo preset, find its circuit, watch it emerge, and write the explorer's page."""
    recipe = papers.preset("demo").recipe
    experiment = recipe.replace(seeds=(seed,))
    from hopscope.web.bundle import check_target, write_page

    path = save or Path("reports") / f"{experiment.run_name()}.html"
    check_target(path)
    show_trained(experiment, store, "cpu", None)
    from hopscope.training import Run
    from hopscope.web.views import Views

    say("", "Taking it apart …")
    study = studies.RunStudy(Run(store.find(experiment.run_name())))
    print_parts(circuit_parts(study.discover()))
    say("", "Watching it emerge …")
    print_parts(pieces_of(study.emergence()))
    views = Views(store, read_only=True)
    page = write_page(views, views.id_of(experiment.run_name()), path)
    say("", f"The explorer, with this model inside: {page}")


def with_seeds(recipe: R, changes: tuple[str, ...], seeds: tuple[int, ...] | None) -> R:
    """Return the recipe with the seeds of --seeds; raises if `changes` also set seeds."""
    if seeds is not None and any(change.startswith("seeds=") for change in changes):
        raise ConfigError("the seeds are given twice, as --seeds and as seeds=…: give one of them")
    return recipe if seeds is None else recipe.replace(seeds=seeds)


def recipe_of(name: str) -> Recipe:
    """Return a preset, or the recipe in a .json file."""
    if name.endswith(".json"):
        with mistakes_in(name):
            return read_recipe(read_bytes(Path(name)))
    if name.endswith(".py"):
        raise ConfigError(f"{name} is a script: `hopscope sweep {name}` trains what it lists")
    found: Recipe = papers.preset(name).recipe
    return found


def show_trained(recipe: Recipe, store: Store, device: str, threads: int | None) -> None:
    """Train a recipe and print its results."""
    _say_cost(recipe, store)
    trained = runs.train(recipe, store, device, RunDisplay(), threads)
    say()
    print_parts(run_parts(trained))


def _say_cost(recipe: Recipe, store: Store) -> None:
    """Print how long a long training may take, from the speed of the store's most similar run."""
    if not isinstance(recipe, Experiment) or store.has_complete(recipe):
        return
    flop = training_flop(recipe)
    known = [
        (abs(log(training_flop(own) / own.steps * recipe.steps / flop)), folder, own)
        for folder in store.readable()[0]
        if isinstance(own := folder.recipe, Experiment) and folder.manifest.complete
    ]
    if known:
        _, folder, own = min(known, key=itemgetter(0))
        seconds = folder.manifest.seconds * flop / training_flop(own)
        if seconds > LONG:
            say(f"about {clock_time(seconds)}, at the speed of {folder.name}")
