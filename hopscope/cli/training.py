"""`hopscope train`, `resume` and `demo`."""

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
from hopscope.cli.output import say
from hopscope.configs import Experiment, Recipe, read_recipe
from hopscope.errors import ConfigError
from hopscope.papers import preset
from hopscope.store import Store
from hopscope.store.files import read_bytes
from hopscope.store.writable import check_files

R = TypeVar("R", bound=Recipe)


@dataclass(frozen=True, kw_only=True)
class TrainOptions(StoreArguments, DeviceArguments):
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
    """Which of the seeds shown in docs/log.md, or any other."""
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
    chosen: Any = parse(form, f"train {words[0]}", words[1:], default=form(recipe))
    store = Store(chosen.store)
    if chosen.prolong is not None:
        from hopscope.training import prolong

        shorter = store.find(chosen.prolong, beside=chosen.recipe.run_name())
        prolong(shorter, chosen.recipe, store)
    show_run(_train(chosen.recipe, store, chosen.device, chosen.threads))
    return 0


def resume(chosen: ResumeArguments) -> int:
    store = Store(chosen.store)
    folder = store.find(chosen.run)
    folder.check_resumable()
    show_run(_train(folder.experiment, store, chosen.device, chosen.threads))
    return 0


def demo(chosen: DemoArguments) -> int:
    recipe = preset("demo").experiment
    experiment = Experiment.model_validate({**recipe.model_dump(), "seeds": (chosen.seed,)})
    path = chosen.out or Path("reports") / f"{experiment.run_name()}.html"
    check_files(path)
    run = _train(experiment, Store(chosen.store), "cpu", None)
    show_run(run)
    from hopscope.cli.findings import print_circuit, print_emergence
    from hopscope.report.page import save_page
    from hopscope.report.story import story_page
    from hopscope.study import Study

    say("", "Taking it apart …")
    examined = Study(run)
    circuit = examined.discover()
    print_circuit(circuit)
    say("", "Watching it emerge …")
    story = examined.emergence()
    print_emergence(story)
    text = story_page(run, circuit, story, examined.maps())
    say("", f"The whole story, with figures: {save_page(text, path)}")
    return 0


def arguments_for(recipe: Recipe) -> Any:
    """The form of `hopscope train` whose flags are the fields of this recipe."""
    return TrainArguments[type(recipe)]  # type: ignore[misc]


def _recipe(name: str) -> Recipe:
    if name.endswith(".json"):
        return read_recipe(read_bytes(Path(name)))
    found: Recipe = preset(name).experiment
    return found


def _train(recipe: Recipe, store: Store, device: str, threads: int | None) -> Any:
    from hopscope.cli.display import display
    from hopscope.runs import train as train_recipe

    return train_recipe(recipe, store, device, display(), threads)
