"""`hopscope show`, `sql`, `tag`, `verify`, `rm` and `gallery`."""

import csv
import io
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from json import dumps
from typing import Any

import click

from hopscope import study as studies
from hopscope.cli import flags
from hopscope.cli.ngram import ngram_figures
from hopscope.cli.options import command, completing, option, refuse_unused
from hopscope.cli.output import emit, prose, say, say_json, warn
from hopscope.cli.results import Destination, Output, reporting, shown_or_drawn
from hopscope.cli.tables import Part, print_rows, run_parts, run_rows, table, text_of
from hopscope.errors import ConfigError, StoreError
from hopscope.lm import results as lm_results
from hopscope.plots.piece import Piece, of_plots
from hopscope.plots.symbols import counted
from hopscope.runs import opened
from hopscope.store import Answer, Listed, RunFolder, Store
from hopscope.store import gallery as shipped
from hopscope.store.checkpoints import checkpoint_steps
from hopscope.store.gallery import about
from hopscope.store.listing import listed

FEW, FEW_STEPS = 5, 8
"""Largest number of names, and of steps, listed in a line."""
AGES = {"d": 1.0, "h": 1 / 24, "w": 7.0}
"""Units of an age, in days."""


@command(
    click.argument("runs", nargs=-1, required=True, metavar="RUN…", shell_complete=flags.RUNS),
    shown_or_drawn,
    option("--config", "Print the recipe alone, as the JSON that `hopscope train FILE.json` "
           "takes."),
    option("--answers", "Print every answer of a language model as a line of JSON."),
    flags.store,
)  # fmt: skip
def show(
    runs: tuple[str, ...], to: Destination, config: bool, answers: bool, store: Store
) -> None:  # fmt: skip
    """Show a run: its losses, circuit or answers, its settings, its files.

    --figure draws the losses; for a complete n-gram run also FILE-heads, FILE-approach and
    FILE-transfer; for several benchmarks of language models one figure of all, side by side.
    """
    to.check()
    folders = [flags.find_run(name, store) for name in runs]
    for folder in folders:
        if config:
            refuse_unused("with --config", "--figure", "--answers")
            say(*folder.recipe.to_file().splitlines())
        elif answers:
            refuse_unused("with --answers", "--figure")
            for each in lm_results.answers(folder):
                say(dumps(each))
    if config or answers:
        return
    figures = _figures(folders) if to.figure else {}
    if to.json:
        known = [_known(folder) for folder in folders]
        output = Output(known if len(known) > 1 else known[0], [], **figures)
    else:
        output = Output(None, [part for folder in folders for part in _parts(folder)], **figures)
    to.put(output)


def _figures(folders: Sequence[RunFolder]) -> dict[str, Any]:
    """Return the functions that draw the runs.

    Raises ConfigError for a model that was not trained, and for several runs unless all are
    benchmarks of language models.
    """
    for folder in folders:
        if (known := about(folder)) and not known.trained:
            raise ConfigError(f"{folder.name} was not trained: it has no loss curves to draw")
    if len(folders) > 1:
        if any(folder.recipe.kind != "lm" for folder in folders):
            raise ConfigError(
                "several runs are drawn together if all are benchmarks of language models"
            )
        return {"draw": lambda: of_plots("lm:accuracy_figure")(folders)}
    run = opened(folders[0])
    beside = {}
    if run.recipe.kind == "ngram" and run.folder.manifest.complete:
        beside = ngram_figures(run)
    return {"draw": run.picture, "beside": beside}


def _parts(folder: RunFolder) -> list[Part]:
    """Return the text of a run: its results, its settings and its files."""
    known, files, found = about(folder), folder.manifest.files, _listed(folder)
    size = sum(entry.size for entry in files.values()) / 2**20
    kept = _steps(checkpoint_steps(folder))
    unknown = found.date is None or folder.gallery  # gallery files have the installation's times
    date = "" if unknown else f", last commit {found.date:%Y-%m-%d %H:%M} UTC"
    tags = f", tags: {', '.join(found.tags)}" if found.tags else ""
    lines = (
        f"{folder.path}: {counted(len(files), 'file')}, {size:.1f} MiB, {kept}",
        f"{found.status}{date}{tags}",
    )
    settings = [
        (name, "default" if value is None else text_of(value))
        for name, value in _settings(folder).items()
    ]
    return [
        *([Piece(lines=(f"{folder.name}: {known.what}", known.origin))] if known else []),
        *(run_parts(opened(folder)) if _trained(folder) else []),
        Piece("", ("setting", "value"), settings, lines),
    ]


def _known(folder: RunFolder) -> dict[str, Any]:
    """Return the data of a run for --json."""
    manifest = folder.manifest
    return {
        **_listed(folder).to_dict(),
        "name": folder.name,
        "kind": folder.recipe.kind,
        "complete": manifest.complete,
        "step": manifest.step,
        "steps": folder.recipe.steps,
        "seconds": manifest.seconds,
        "checkpoints": checkpoint_steps(folder),
        "results": run_rows(opened(folder)) if _trained(folder) else [],
        "settings": _settings(folder),
    }


def _trained(folder: RunFolder) -> bool:
    known = about(folder)
    return known is None or known.trained


def _settings(folder: RunFolder) -> dict[str, Any]:
    """Return every field of the recipe; without the training fields for a planted model."""
    hidden = () if _trained(folder) else ("training", "seeds")
    named = folder.recipe.named().items()
    return {name: value for name, value in named if name.split(".")[0] not in hidden}


def _listed(folder: RunFolder) -> Listed:
    """Return the state, last commit and tags of a run; print a warning if any is unreadable."""
    try:
        tags = () if folder.gallery else Store(folder.path.parent).tags().get(folder.name, ())
    except StoreError as error:
        warn(error)
        tags = ()
    found = listed(folder.path, tags)
    if found.problem:
        warn(found.problem)
    return found


def _steps(kept: Sequence[int]) -> str:
    """Return the checkpoints as text: every step, or number and range if there are many."""
    if len(kept) > FEW_STEPS:
        return f"{len(kept)} checkpoints from step {kept[0]:,} to {kept[-1]:,}"
    steps = "step" if len(kept) == 1 else "steps"
    return f"checkpoints at {steps} {', '.join(map(str, kept)) or 'none'}"


@reporting(
    click.argument("first", metavar="RUN", shell_complete=flags.RUNS),
    click.argument("second", metavar="RUN", shell_complete=flags.RUNS),
    flags.store,
)
def compare(_: Destination, first: str, second: str, store: Store) -> Output:
    """Show two runs of one kind side by side: the settings in which they differ, the losses of each
    hop, and what their circuits share (kept circuits of the first model of each run). Tables (.csv,
    .parquet) hold the losses.
    """
    return Output.of(
        studies.compare(flags.find_run(first, store), flags.find_run(second, store), store)
    )


@command(
    click.argument("query"),
    option("--csv", "Print comma-separated values instead of a table.", name="as_csv"),
    flags.json, flags.store,
)  # fmt: skip
def sql(query: str, as_csv: bool, json: bool, store: Store) -> int:
    """Ask a question in SQL over the tables `runs`, `metrics` and `parameters`, such as

    "select run, hop, min(loss) from metrics group by all".
    """
    if as_csv and json:
        raise ConfigError("--csv and --json were both given; expected one of them")
    answer = store.sql(query).answer()
    if as_csv:
        _print_csv(answer)
    elif json:
        twice = sorted({name for name in answer.columns if answer.columns.count(name) > 1})
        if twice:  # names in a JSON object are unique
            raise ConfigError(
                f"several columns are called {', '.join(twice)}: name them with `as`, e.g. "
                f"runs.{twice[0]} as run_{twice[0]}"
            )
        say_json([dict(zip(answer.columns, row, strict=True)) for row in answer.rows])
    else:
        table(answer.columns, answer.rows)
    for problem in answer.problems:
        warn(problem)
    return 1 if answer.problems else 0


def _print_csv(answer: Answer) -> None:
    """Print CSV; control characters are escaped only if stdout is a terminal."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows((answer.columns, *answer.rows))
    if sys.stdout is not None and sys.stdout.isatty():
        say(*text.getvalue().splitlines())
    else:
        emit([text.getvalue()], end="")


@command(
    flags.run,
    click.argument("tags", nargs=-1, metavar="[TAG]…"),
    option("--remove", "Take these tags away."),
    flags.store,
)  # fmt: skip
def tag(run: str, tags: tuple[str, ...], remove: bool, store: Store) -> None:
    """Give a run tags: names that stand for RUN in every command. With no TAG, list its tags.

    A tag has letters, digits, dots, hyphens and underscores.
    """
    folder = flags.find_run(run, store)
    name, store = folder.name, Store(folder.path.parent)
    if remove:
        if not tags:
            raise ConfigError("--remove needs at least one tag")
        now = store.untag(name, *tags)
    else:
        now = store.tag(name, *tags) if tags else store.tags().get(name, ())
    say(f"{name}: {', '.join(now) or 'no tags'}")
    for each in now:
        count = sum(each in own for own in store.tags().values())
        if count > 1:
            say(f"{count} runs have the tag {each}, so it cannot stand for one run")


@command(flags.run, flags.store)
def verify(run: str, store: Store) -> int:
    """Check a run's files against its manifest; exit code 1 if something is wrong."""
    folder = flags.find_run(run, store)
    problems = folder.verify()
    for problem in problems:
        warn(problem)
    if not problems:
        say(f"{folder.name}: all {len(folder.manifest.files)} files are as committed")
    others = folder.untracked()
    if others:
        more = f" and {len(others) - FEW} more" if len(others) > FEW else ""
        files = counted(len(others), "file")
        say(f"{files} not written by hopscope: {', '.join(others[:FEW])}{more}")
    return 1 if problems else 0


@command(
    click.argument("runs", nargs=-1, metavar="[RUN]…", shell_complete=flags.RUNS),
    option("--tag TAG", "Also all runs with this tag."),
    option("--older-than AGE", "Only runs whose last commit is older: 30d, 12h or 2w. Alone: of "
           "all runs."),
    option("--dry-run", "Show what would be removed, and remove nothing."),
    option("--yes", "Do not ask."),
    flags.store,
)  # fmt: skip
def rm(
    runs: tuple[str, ...], tag: str | None, older_than: str | None, dry_run: bool, yes: bool,
    store: Store,
) -> None:  # fmt: skip
    """Remove runs, with everything in their folders. It asks first.

    RUN is a whole name, the hash that it ends in, or a tag of one run.
    """
    if not (runs or tag or older_than):
        raise ConfigError("rm needs the name of a run, --tag or --older-than")
    chosen = [store.removable(each) for each in runs]  # raises before anything is removed
    if tag is not None:
        tagged = [name for name, own in store.tags().items() if tag in own]
        if not tagged:
            raise ConfigError(f"no run has the tag {tag!r}")
        chosen += tagged
    if older_than is not None:
        old = _older(store, older_than)
        chosen = [name for name in chosen if name in old] if runs or tag else old
    chosen = [*dict.fromkeys(chosen)]
    if not chosen:
        say("no run matches")
        return
    if dry_run:
        say(*(f"would remove {store.root / name}" for name in chosen))
        return
    if not yes:
        if sys.stdin is None or not sys.stdin.isatty():
            what = counted(len(chosen), "run")
            raise ConfigError(f"rm asks before it removes {what}: --yes answers")
        say(*(str(store.root / name) for name in chosen))
        click.confirm(f"Remove {'these runs' if len(chosen) > 1 else 'this run'}?", abort=True)
    for name in chosen:
        say(f"removed {store.remove(name)}")


def _older(store: Store, age: str) -> list[str]:
    """Return the runs whose last commit is older than `age`, such as 30d."""
    match = re.fullmatch(r"(\d{1,6})([dhw])", age)
    if match is None:
        raise ConfigError(f"--older-than is {age!r}; expected an age such as 30d, 12h or 2w")
    least, now = timedelta(days=int(match[1]) * AGES[match[2]]), datetime.now(UTC)
    return [run.name for run in store.listed()[0] if run.date and now - run.date > least]


@command(
    option("--copy NAME", "Copy this model into the store: an ordinary run, gallery-NAME.",
           shell_complete=completing(lambda _: shipped.names())),
    flags.json, flags.store,
)  # fmt: skip
def gallery(copy: str | None, json: bool, store: Store) -> None:
    """List the models that come with hopscope; commands that only read a RUN take these names."""
    if copy is not None:
        refuse_unused("with --copy", "--json")
        source = shipped.find(copy)
        made = store.copy(source, source.name.replace("/", "-"))
        say(f"{made.name}: a copy of {source.name}, in {made.path}")
        return
    refuse_unused("without --copy", "--store")
    folders = [shipped.find(name) for name in shipped.names()]
    print_rows([_row(folder) for folder in folders], {"MB": ".2f"}, json=json)
    if json:
        return
    for folder in folders:
        if known := about(folder):
            say()
            prose(f"{folder.name}: {known.what}", known.origin)
    for name, absent in shipped.index().items():
        if name not in shipped.names():
            say()
            fetches = f"not here: `hopscope pull gallery/{name}` fetches {absent.size / 1e6:.1f} MB"
            prose(f"gallery/{name}: {absent.what}", fetches)
    say()
    prose("Each stands where a RUN is taken: `hopscope attention gallery/demo`")


def _row(folder: RunFolder) -> dict[str, Any]:
    shape, files = folder.recipe.shape(), folder.manifest.files
    return {
        "model": folder.name,
        "task": folder.recipe.task_kind,
        **{name: shape[name] for name in ("hops", "layers", "heads", "d_model")},
        "checkpoints": len(folder.files("checkpoints/")),
        "MB": sum(entry.size for entry in files.values()) / 1e6,
    }
