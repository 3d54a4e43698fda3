"""`hopscope export`, `push` and `pull`: share runs by trackers, transformers and hubs."""

import time
from collections.abc import Sequence
from pathlib import Path

import click

from hopscope.cli import flags
from hopscope.cli.options import command, option, refuse_unused
from hopscope.cli.output import note, say
from hopscope.cli.subject import Subject
from hopscope.errors import ConfigError
from hopscope.export import released, tracker
from hopscope.export.hub import Hub, check_place
from hopscope.export.tracked import Tracked, tracked
from hopscope.plots.symbols import counted
from hopscope.store import Store
from hopscope.store.files import check_folder
from hopscope.store.folder import GALLERY

EXPORTS = Path("exports")
PAUSE = 5.0
"""Seconds between two checks for new steps with --follow."""


@command(
    flags.run,
    option("--to", "A tracker, which gets losses, settings and attention of every model of the "
           "run; or transformers: the model as a GPT-2.",
           choices=[*tracker.TRACKERS, "transformers"], required=True),
    option("--save FOLDER", "Folder to write to (default: exports/tensorboard, "
           "exports/RUN-transformers, or where the tracker keeps its files)."),
    option("--seed N", "Only the fleet member with this seed."),
    option("--step N", "With transformers: the checkpoint to take."),
    option("--project NAME", "Project that the runs are listed under in wandb, trackio and mlflow.",
           default="hopscope"),
    option("--follow", "Go on sending until the run is complete."),
    flags.store,
)  # fmt: skip
def export(
    run: str, to: str, save: Path | None, seed: int | None, step: int | None, project: str,
    follow: bool, store: Store,
) -> None:  # fmt: skip
    """Send a run to a tracker, or write its model for transformers."""
    if to == "transformers":
        refuse_unused("with --to transformers", "--project", "--follow")
        _to_transformers(Subject(run, store, seed, step), save)
        return
    refuse_unused(f"with --to {to}, which gets every step", "--step")
    if to == "tensorboard":
        refuse_unused("with --to tensorboard", "--project")
    folder = flags.find_run(run, store)
    runs = tracked(folder) if seed is None else [tracked(folder)[folder.member(seed)]]
    place = tracker.tracker(to, tracker.Place(project, save))
    if follow:
        sent = tracker.send_while_training(runs, place, lambda: time.sleep(PAUSE))
        _note_if_idle(runs)
    else:
        sent = tracker.send(runs, place)
    for each in sent:
        new = f"new numbers at {counted(each.steps, 'step')}" if each.steps else "nothing new"
        say(f"{to}: {each.name}: {new}, {each.where}")


def _note_if_idle(runs: Sequence[Tracked]) -> None:
    folder = runs[0].folder
    if not folder.manifest.complete and not folder.in_training():
        note(f"{folder.name} is not being trained at this moment: waiting (Ctrl-C ends it)")


def _to_transformers(subject: Subject, save: Path | None) -> None:
    study = subject.run_study("--to transformers")
    from hopscope.export import gpt2

    to = save or EXPORTS / f"{study.name}-transformers"
    check_folder(to)
    if to.exists() and any(to.iterdir()):
        raise ConfigError(f"{to} is not empty: choose another folder, or remove it")
    about = {"run": study.run.name, "seed": str(study.seed), "step": str(study.step)}
    gpt2.save(study.model, study.task, to, about)
    say(f"transformers: {study.name} after step {study.step:,}: {to}")


@command(
    flags.run,
    click.argument("place", metavar="OWNER/NAME"),
    option("--license NAME", "Licence that the card names, as the hub calls it.",
           default="apache-2.0"),
    option("--private", "A new place is seen by its owner alone."),
    flags.store,
)  # fmt: skip
def push(run: str, place: str, license: str, private: bool, store: Store) -> None:
    """Put a run on a hub: its files unchanged, and a model card. An existing run is replaced."""
    check_place(place)
    folder = flags.find_run(run, store)
    url = Hub().push(folder, place, license, private)
    say(f"{folder.name}: {counted(len(folder.manifest.files), 'file')} and a card, at {url}")


@command(
    click.argument("place", metavar="OWNER/NAME|gallery/NAME"),
    option("--from FOLDER|URL", "With gallery/NAME: a clone of hopscope, or the folder or address "
           "of the files of a release (default: the release of this version).", name="source",
           type=str),
    flags.store,
)  # fmt: skip
def pull(place: str, source: str | None, store: Store) -> None:
    """Fetch a run from a hub into the store, or a gallery model that is not in the package."""
    if place.startswith(GALLERY):
        refuse_unused("with gallery/NAME, which goes into the cache", "--store")
        model = released.pull(place, source or "")
        say(f"{model.name}: in {model.path}")
        return
    refuse_unused("with OWNER/NAME, which comes from the hub", "--from")
    check_place(place.partition("@")[0])
    run = Hub().pull(place, store)
    say(f"{run.name}: from {place}, in {run.path}")
