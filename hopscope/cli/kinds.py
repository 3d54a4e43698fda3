"""How each kind of run is shown in the terminal; of a kind that is not listed, the last losses."""

from dataclasses import dataclass
from typing import Any

from hopscope.cli.output import say
from hopscope.configs.kinds import fetched


@dataclass(frozen=True)
class Shown:
    """The functions that show a run of one kind, each as `module:name`."""

    text: str
    """A function that prints what became of the run."""
    rows: str
    """A function that gives what became of the run as rows."""


SHOWN = {
    "facts": Shown(
        "hopscope.cli.tables:print_losses",
        "hopscope.cli.tables:loss_rows",
    ),
    "ngram": Shown(
        "hopscope.cli.ngram:print_ngram",
        "hopscope.cli.ngram:ngram_rows",
    ),
    "llm": Shown(
        "hopscope.cli.llm:print_bench",
        "hopscope.cli.llm:bench_rows",
    ),
    "llm-mechanism": Shown(
        "hopscope.cli.llm_mechanism:print_mechanism",
        "hopscope.cli.llm_mechanism:mechanism_rows",
    ),
}
OTHERS = Shown("hopscope.cli.kinds:print_last_losses", "hopscope.cli.kinds:last_losses")


def show_run(run: Any) -> None:
    """Print what became of a run."""
    fetched(SHOWN.get(run.recipe.kind, OTHERS).text)(run)


def rows_of(run: Any) -> list[dict[str, Any]]:
    """What became of a run, as rows; none of one that is not complete."""
    if not run.folder.manifest.complete:
        return []
    found: list[dict[str, Any]] = fetched(SHOWN.get(run.recipe.kind, OTHERS).rows)(run)
    return found


def print_last_losses(run: Any) -> None:
    """The last loss of each split, the mean over models."""
    from hopscope.cli.tables import print_rows

    manifest, unit = run.folder.manifest, run.recipe.unit
    state = "" if manifest.complete else f" of {run.recipe.steps:,}"
    say(f"{run.name}: {unit} {manifest.step:,}{state}, {manifest.seconds:.1f} s")
    print_rows(last_losses(run), {})


def last_losses(run: Any) -> list[dict[str, Any]]:
    """A row for each loss of each split."""
    from hopscope.store.metrics import SPLITS

    rows = []
    for split in SPLITS:
        steps, losses = run.losses(split)
        if len(steps):
            names = run.recipe.loss_names(losses.shape[2])
            last = losses[-1].mean(axis=0).tolist()
            rows += [
                {"split": split, "of": name, "last_loss": loss}
                for name, loss in zip(names, last, strict=True)
            ]
    return rows
