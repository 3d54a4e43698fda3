"""`hopscope export`: a run in the trackers and the model formats that others use."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from hopscope.cli.arguments import refuse_unused
from hopscope.cli.output import note, say
from hopscope.cli.subject import ModelArguments
from hopscope.errors import ConfigError
from hopscope.sharing.tracked import Tracked, tracked
from hopscope.sharing.tracker import Place, follow, send, tracker
from hopscope.store import Store
from hopscope.store.files import check_folder

TrackerName = Literal["tensorboard", "wandb", "trackio", "mlflow"]
EXPORTS = Path("exports")
PAUSE = 5.0
"""Seconds between two looks at a run that is followed."""


@dataclass(frozen=True)
class ExportArguments(ModelArguments):
    """Send a run to a tracker, or write its model as one that transformers loads."""

    format: Literal[TrackerName, "transformers"] = "tensorboard"
    """A tracker, which gets losses, settings and attention of every model of the run; or the model
    as a GPT-2."""
    out: Path | None = None
    """The folder for what is written; unset: exports/tensorboard, exports/RUN-transformers, or
    where the tracker keeps its files."""
    project: str = "hopscope"
    """What the runs are listed under in wandb, trackio and mlflow."""
    follow: bool = False
    """Go on sending while the run trains, until it is complete."""


def export(chosen: ExportArguments) -> int:
    to_tracker = chosen.format in get_args(TrackerName)
    if chosen.follow and not to_tracker:
        raise ConfigError("--follow is for trackers; a model is exported at one step")
    if chosen.step is not None and to_tracker:
        raise ConfigError("--step is for --format transformers; trackers get every step")
    if chosen.format in ("tensorboard", "transformers"):
        refuse_unused(chosen, ["project"], f"with --format {chosen.format}")
    return _to_tracker(chosen) if to_tracker else _to_transformers(chosen)


def _to_tracker(chosen: ExportArguments) -> int:
    folder = Store(chosen.store).find(chosen.run)
    runs = [run for run in tracked(folder) if chosen.seed in (None, run.seed)]
    if not runs:
        known = ", ".join(map(str, folder.recipe.seeds))
        raise ConfigError(f"--seed is {chosen.seed}; {folder.name} has the seeds {known}")
    to = tracker(chosen.format, Place(chosen.project, chosen.out))
    if chosen.follow:
        sending = follow(runs, to, lambda: time.sleep(PAUSE))
        _say_if_nobody_trains(runs)
    else:
        sending = send(runs, to)
    for sent in sending:
        new = f"new numbers at {sent.steps:,} steps" if sent.steps else "nothing new"
        say(f"{chosen.format}: {sent.name}: {new}, {sent.where}")
    return 0


def _say_if_nobody_trains(runs: Sequence[Tracked]) -> None:
    folder = runs[0].folder
    if not folder.manifest.complete and not folder.in_training():
        note(f"{folder.name} is not being trained at this moment: waiting (Ctrl-C ends it)")


def _to_transformers(chosen: ExportArguments) -> int:
    examined = chosen.study()
    from hopscope.sharing import gpt2

    to = chosen.out or EXPORTS / f"{examined.name}-transformers"
    check_folder(to)
    if to.exists() and any(to.iterdir()):
        raise ConfigError(f"{to} is not empty: choose another folder, or remove it")
    about = {"run": examined.run.name, "seed": str(examined.seed), "step": str(examined.step)}
    gpt2.save(examined.model, examined.task, to, about)
    say(f"transformers: {examined.name} after step {examined.step:,}: {to}")
    return 0
