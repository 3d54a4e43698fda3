"""How each kind of run is shown in the terminal; of a kind that is not listed, the last losses."""

from dataclasses import dataclass
from typing import Any

from hopscope.cli.output import say
from hopscope.configs.kinds import fetched
from hopscope.errors import ConfigError


@dataclass(frozen=True)
class Shown:
    """Two functions of a run, as `module:name`."""

    text: str
    """Prints what became of it."""
    figure: str | None = None
    """Draws it."""


SHOWN = {
    "facts": Shown("hopscope.cli.tables:print_losses", "hopscope.report.curves:loss_curves"),
    "ngram": Shown("hopscope.cli.markov:print_markov", "hopscope.report.markov:stages_figure"),
    "llm": Shown("hopscope.cli.llm:print_bench", "hopscope.cli.llm:bench_figure"),
}


def show_run(run: Any) -> None:
    """Print what became of a run."""
    fetched(SHOWN.get(run.experiment.kind, Shown("hopscope.cli.kinds:print_last_losses")).text)(run)


def figure_of(run: Any) -> Any:
    """The figure of a run."""
    shown = SHOWN.get(run.experiment.kind)
    if shown is None or shown.figure is None:
        raise ConfigError(f"there is no figure of a run of kind {run.experiment.kind}")
    return fetched(shown.figure)(run)


def print_last_losses(run: Any) -> None:
    """The last loss of each split, the mean over models."""
    from hopscope.cli.tables import table
    from hopscope.store.metrics import SPLITS

    rows = []
    for split in SPLITS:
        steps, losses = run.losses(split)
        if len(steps):
            names = run.experiment.losses_named(losses.shape[2])
            last = losses[-1].mean(axis=0).tolist()
            rows += [(split, name, loss) for name, loss in zip(names, last, strict=True)]
    manifest, unit = run.folder.manifest, run.experiment.unit
    state = "" if manifest.complete else f" of {run.experiment.steps:,}"
    say(f"{run.name}: {unit} {manifest.step:,}{state}, {manifest.seconds:.1f} s")
    table(["split", "of", "last loss"], rows)
