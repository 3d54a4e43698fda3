"""`hopscope train`, `resume` and `demo`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import tyro

from hopscope.cli.arguments import (
    DeviceArguments,
    RunArguments,
    StoreArguments,
    parse,
)
from hopscope.cli.commands import HELP
from hopscope.cli.kinds import show_run
from hopscope.cli.output import say, warn
from hopscope.cli.workers import WorkersArguments, carried_out, ended, pool_of
from hopscope.configs import Experiment, Recipe, read_recipe
from hopscope.configs.recipe import of_seeds
from hopscope.errors import ConfigError
from hopscope.papers import preset
from hopscope.store import Store
from hopscope.store.files import check_files, read_bytes

R = TypeVar("R", bound=Recipe)
SEEDS = "--seeds"
MOST_SEEDS = 100_000
"""How many seeds a range may have."""


@dataclass(frozen=True, kw_only=True)
class TrainOptions(StoreArguments, WorkersArguments):
    """How to train, whatever is trained."""

    prolong: Annotated[str | None, tyro.conf.arg(metavar="RUN")] = None
    """A run of the same training with fewer steps, to go on from; it stays as it is."""


@dataclass(frozen=True)
class TrainArguments(TrainOptions, Generic[R]):
    """Train a preset (`hopscope presets`) or a recipe's file; every field is a flag."""

    recipe: Annotated[R, tyro.conf.arg(name="")]


@dataclass(frozen=True)
class ResumeArguments(RunArguments, DeviceArguments):
    """Go on with a run that was stopped or killed; it ends as if nothing had happened."""


@dataclass(frozen=True)
class DemoArguments(StoreArguments):
    """Train the demo preset, take it apart, watch it emerge; all of it goes to a page as well."""

    seed: int = 0
    """Which model: another number begins with other weights, and sees other examples."""
    out: Path | None = None
    """Where the page goes; unset: reports/RUN.html."""


def train(words: Sequence[str]) -> int:
    if not words or words[0].startswith("-"):
        if words and words[0] in HELP:
            say("usage: hopscope train PRESET|FILE.json [--field value …]")
            say("Every field of the preset is a flag: hopscope train PRESET --help lists them;")
            say("hopscope presets lists the presets.")
            return 0
        raise ConfigError("train needs a preset first: `hopscope train demo`, `hopscope presets`")
    recipe = _recipe(words[0])
    form = arguments_for(recipe)
    chosen: Any = parse(form, f"train {words[0]}", with_ranges(words[1:]), default=form(recipe))
    for setting in chosen.recipe.warnings():
        warn(setting)
    store = Store(chosen.store)
    several = len(chosen.recipe.seeds) > 1 and any(w.startswith(SEEDS) for w in words)
    if several or chosen.workers is not None:
        return _train_all(chosen, store, split=several)
    pool_of(chosen)  # refuses what is for several workers alone
    if chosen.pack is not None:
        raise ConfigError("--pack is for several runs: name several with --seeds")
    if chosen.prolong is not None:
        from hopscope.training import prolong

        shorter = store.find(chosen.prolong, beside=chosen.recipe.run_name())
        prolong(shorter, chosen.recipe, store)
    show_run(_train(chosen.recipe, store, chosen.device, chosen.threads))
    return 0


def _train_all(chosen: Any, store: Store, *, split: bool) -> int:
    """Train with workers; one run for each seed that the line names, the same with any workers."""
    if chosen.prolong is not None:
        raise ConfigError("--prolong goes on with one run: leave out --workers, and name one seed")
    recipes = of_seeds(chosen.recipe) if split else [chosen.recipe]
    outcome = carried_out(recipes, store, chosen)
    for folder in outcome.folders:
        say(folder.name)
    return ended(outcome)


def with_ranges(words: Sequence[str]) -> list[str]:
    """The words of a line, where `--seeds 0..3` is `--seeds 0 1 2 3`.

    >>> with_ranges(["--seeds", "0..2", "7", "--device", "cpu"])
    ['--seeds', '0', '1', '2', '7', '--device', 'cpu']
    """
    written: list[str] = []
    of_seeds = False
    for word in words:
        flag, _, value = word.partition("=")
        if word.startswith("--"):
            of_seeds = flag == SEEDS
        span = value if flag == SEEDS else word
        if not of_seeds or not (".." in span or re.fullmatch(r"\d+-\d+", span)):
            written.append(word)
        else:
            written += [SEEDS] * (flag == SEEDS) + _range(span)
    return written


def _range(text: str) -> list[str]:
    """The numbers that FIRST..LAST stands for, both included."""
    found = re.fullmatch(r"(\d{1,10})\.\.(\d{1,10})", text, re.ASCII)
    first, last = (int(found[1]), int(found[2])) if found else (0, -1)
    if not 0 <= last - first < MOST_SEEDS:
        raise ConfigError(
            f"{SEEDS} is {text!r}; expected FIRST..LAST, such as 0..7, of at most {MOST_SEEDS:,}"
        )
    return [str(seed) for seed in range(first, last + 1)]


def resume(chosen: ResumeArguments) -> int:
    store = Store(chosen.store)
    folder = store.find(chosen.run)
    folder.check_resumable()
    show_run(_train(folder.recipe, store, chosen.device, chosen.threads))
    return 0


def demo(chosen: DemoArguments) -> int:
    recipe = preset("demo").recipe
    experiment = Experiment.model_validate({**recipe.model_dump(), "seeds": (chosen.seed,)})
    path = chosen.out or Path("reports") / f"{experiment.run_name()}.html"
    check_files(path)
    run = _train(experiment, Store(chosen.store), "cpu", None)
    show_run(run)
    from hopscope.cli.circuit_text import print_circuit, print_emergence
    from hopscope.report.page import save_page
    from hopscope.report.story import story_page
    from hopscope.study import RunStudy

    say("", "Taking it apart …")
    examined = RunStudy(run)
    circuit = examined.discover()
    print_circuit(circuit)
    say("", "Watching it emerge …")
    story = examined.emergence()
    print_emergence(story)
    text = story_page(run, circuit, story, examined.attention())
    say("", f"The whole story, with figures: {save_page(text, path)}")
    return 0


def arguments_for(recipe: Recipe) -> Any:
    """The form of `hopscope train` whose flags are the fields of this recipe."""
    return TrainArguments[type(recipe)]  # type: ignore[misc]


def _recipe(name: str) -> Recipe:
    if name.endswith(".json"):
        return read_recipe(read_bytes(Path(name)))
    if name.endswith(".py"):
        raise ConfigError(f"{name} is a script: `hopscope sweep {name}` trains what it lists")
    found: Recipe = preset(name).recipe
    return found


def _train(recipe: Recipe, store: Store, device: str, threads: int | None) -> Any:
    from hopscope.cli.display import display
    from hopscope.runs import train as train_recipe

    return train_recipe(recipe, store, device, display(), threads)
