"""`hopscope show`, `sql`, `verify` and `rm`."""

import csv
import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from hopscope.cli.arguments import (
    JsonArguments,
    RunArguments,
    RunNames,
    StoreArguments,
    refuse_unused,
)
from hopscope.cli.drawing import FigureArguments, check_figures, draw
from hopscope.cli.output import emit, say, say_json, teller, warn
from hopscope.configs import Recipe
from hopscope.errors import ConfigError, StoreError
from hopscope.store import Answer, Listed, RunFolder, Store
from hopscope.store.gallery import about
from hopscope.store.listing import listed

FEW, FEW_STEPS = 5, 8
"""Names that a line lists at most."""


@dataclass(frozen=True)
class ShowArguments(RunArguments, JsonArguments, FigureArguments):
    """Show one run: its losses, its settings, its files."""

    figure: Path | None = None
    """Also draw the loss curves to this file (.svg, .pdf or .png)."""
    config: bool = False
    """Print its recipe alone, as the JSON that `hopscope train FILE.json` takes."""


@dataclass(frozen=True)
class VerifyArguments(RunArguments):
    """Check a run's files against its manifest."""


@dataclass(frozen=True)
class SqlArguments(StoreArguments, JsonArguments):
    """Ask a question in SQL over the tables `runs` and `metrics`."""

    query: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="QUERY")]
    """E.g. "select run, hop, min(loss) from metrics group by all"."""
    csv: bool = False
    """Print comma-separated values instead of a table."""


@dataclass(frozen=True)
class RmArguments(StoreArguments):
    """Remove runs, with everything in their folders."""

    runs: RunNames
    """The runs' whole names, or the hashes that these end in."""
    dry_run: bool = False
    """Say what would be removed, and remove nothing."""


def show(chosen: ShowArguments) -> int:
    check_figures(chosen, chosen.figure)
    folder = Store(chosen.store).find(chosen.run)
    if chosen.config:
        refuse_unused(chosen, ["figure"], "with --config")
        say(*folder.recipe.to_file().splitlines())
        return 0
    known = about(folder)
    trained = known is None or known.trained
    if chosen.figure and not trained:
        raise ConfigError(f"{folder.name} was not trained: it has no loss curves to draw")
    from hopscope.cli.kinds import rows_of, show_run
    from hopscope.cli.tables import table
    from hopscope.runs import opened
    from hopscope.store.checkpoints import checkpoint_steps

    run = opened(folder)
    settings = _settings(run.recipe, () if trained else ("training", "seeds"))
    kept = checkpoint_steps(folder)
    if chosen.json:
        results = rows_of(run) if trained else []
        say_json(_known(folder) | {"checkpoints": kept, "results": results, "settings": settings})
    else:
        if known:
            say(f"{folder.name}: {known.what}", known.origin, "")
        if trained:
            show_run(run)
        table(["setting", "value"], settings.items())
        _print_files(folder, kept)
    if chosen.figure:
        from hopscope.report.kinds import figure_of

        tell = teller(json_alone=chosen.json)
        draw(chosen, chosen.figure, lambda: figure_of(run), tell)
    return 0


def _listed(folder: RunFolder) -> Listed:
    """Its state, when it was last committed, and its tags; a line on what is wrong with them."""
    try:
        tags = () if folder.gallery else Store(folder.path.parent).tags().get(folder.name, ())
    except StoreError as error:
        warn(error)
        tags = ()
    found = listed(folder.path, tags)
    if found.problem:
        warn(found.problem)
    return found


def _settings(recipe: Recipe, hidden: tuple[str, ...]) -> dict[str, Any]:
    """Every field but those of the hidden groups."""
    named = recipe.named().items()
    return {name: value for name, value in named if name.split(".")[0] not in hidden}


def _told_steps(kept: Sequence[int]) -> str:
    """At which steps there are checkpoints: each, if they are few."""
    if len(kept) > FEW_STEPS:
        return f"{len(kept)} checkpoints from step {kept[0]:,} to {kept[-1]:,}"
    return f"checkpoints at steps {', '.join(map(str, kept)) or 'none'}"


def _print_files(folder: RunFolder, kept: Sequence[int]) -> None:
    files = folder.manifest.files
    size = sum(entry.size for entry in files.values()) / 2**20
    say("", f"{folder.path}: {len(files)} files, {size:.1f} MiB, {_told_steps(kept)}")
    found = _listed(folder)
    date = "" if found.date is None else f", last commit {found.date:%Y-%m-%d %H:%M} UTC"
    tags = f", tags: {', '.join(found.tags)}" if found.tags else ""
    say(f"{found.status}{date}{tags}")


def _known(folder: RunFolder) -> dict[str, Any]:
    """How far a run has come, for programs."""
    manifest = folder.manifest
    return {
        **_listed(folder).to_dict(),
        "name": folder.name,
        "kind": folder.recipe.kind,
        "complete": manifest.complete,
        "step": manifest.step,
        "steps": folder.recipe.steps,
        "seconds": manifest.seconds,
    }


def sql(chosen: SqlArguments) -> int:
    if chosen.csv and chosen.json:
        raise ConfigError("--csv and --json were both given; expected one of them")
    answer = Store(chosen.store).sql(chosen.query).answer()
    if chosen.csv:
        _print_csv(answer)
    elif chosen.json:
        _check_names(answer.columns)
        say_json([dict(zip(answer.columns, row, strict=True)) for row in answer.rows])
    else:
        from hopscope.cli.tables import table

        table(answer.columns, answer.rows)
    for problem in answer.problems:
        warn(problem)
    return 1 if answer.problems else 0


def _check_names(columns: Sequence[str]) -> None:
    """Refuse to lose a column: an object of JSON has each name once."""
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        raise ConfigError(
            f"several columns are called {', '.join(twice)}: name them with `as`, e.g. "
            f"runs.{twice[0]} as run_{twice[0]}"
        )


def _print_csv(answer: Answer) -> None:
    """For programs, values go out as they are; a terminal is shown what would steer it."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows((answer.columns, *answer.rows))
    if sys.stdout is not None and sys.stdout.isatty():
        say(*text.getvalue().splitlines())
    else:
        emit([text.getvalue()], end="")


def verify(chosen: VerifyArguments) -> int:
    folder = Store(chosen.store).find(chosen.run)
    problems = folder.verify()
    for problem in problems:
        warn(problem)
    if not problems:
        say(f"{folder.name}: all {len(folder.manifest.files)} files are as committed")
    others = folder.untracked()
    if others:
        say(f"beside them lie {len(others)} that are not hopscope's: {_few(others)}")
    return 1 if problems else 0


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(names[:FEW])
    return f"{shown} and {len(names) - FEW} more" if len(names) > FEW else shown


def rm(chosen: RmArguments) -> int:
    if not chosen.runs:
        raise ConfigError("rm needs the name of a run; `hopscope runs` lists them")
    store = Store(chosen.store)
    for name in dict.fromkeys([store.removable(each) for each in chosen.runs]):  # all, or none
        if chosen.dry_run:
            say(f"would remove {store.root / name}")
        else:
            say(f"removed {store.remove(name)}")
    return 0
