"""`hopscope markov train|figures|transfer|theory`: the n-gram experiment."""

import math
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from hopscope.cli.arguments import RunArguments, StoreArguments, ThreadArguments
from hopscope.cli.output import say
from hopscope.configs import Descent, InductionModel, MarkovExperiment, MarkovProcess
from hopscope.errors import ConfigError, RunDamaged
from hopscope.store import Store
from hopscope.store.writable import check_folder

if TYPE_CHECKING:
    from hopscope.markov.run import MarkovRun

REPORTS = Path("reports")


@dataclass(frozen=True)
class MarkovTrainArguments(StoreArguments, ThreadArguments):
    """Train the n-gram experiment; without flags, as in the paper."""

    process: tyro.conf.OmitArgPrefixes[MarkovProcess] = field(default_factory=MarkovProcess)
    model: tyro.conf.OmitArgPrefixes[InductionModel] = field(default_factory=InductionModel)
    descent: tyro.conf.OmitArgPrefixes[Descent] = field(default_factory=Descent)
    seeds: tuple[int, ...] = (0,)
    """One model per seed; the seed fixes its chains."""


@dataclass(frozen=True)
class MarkovFiguresArguments(RunArguments):
    """Draw a run: its stages, its heads, its way to the induction head, other chains."""

    out: Path = REPORTS
    """The folder for RUN-stages, RUN-heads, RUN-approach and RUN-transfer."""
    format: Annotated[str, tyro.conf.arg(metavar="svg|pdf|png")] = "svg"
    """How they are written."""


@dataclass(frozen=True)
class MarkovTransferArguments(RunArguments):
    """Hold the trained model against others on chains of other lengths and priors."""

    lengths: tuple[int, ...] = (10, 20, 50, 100, 200, 400)
    """Lengths of the chains."""
    alphas: tuple[float, ...] = (0.05, 0.1, 0.2, 0.5, 1.0)
    """Concentrations of the prior."""
    chains: int = 1_000
    """Fresh chains for each."""


@dataclass(frozen=True)
class MarkovTheoryArguments:
    """The modified χ² mutual information of every set of lags, and the winner of stage I."""

    process: tyro.conf.OmitArgPrefixes[MarkovProcess] = field(default_factory=MarkovProcess)
    model: tyro.conf.OmitArgPrefixes[InductionModel] = field(default_factory=InductionModel)
    tables: int = 1_000
    """Tables drawn from the prior."""
    estimate: bool = False
    """Estimate from one sampled chain of each table instead of its exact distributions."""
    sample: int = 0
    """Which tables: another number draws others."""


def train(chosen: MarkovTrainArguments) -> int:
    experiment = MarkovExperiment(
        process=chosen.process, model=chosen.model, descent=chosen.descent, seeds=chosen.seeds
    )
    from hopscope.cli.display import display
    from hopscope.runs import train

    print_markov(train(experiment, Store(chosen.store), watcher=display(), threads=chosen.threads))
    return 0


def print_markov(run: "MarkovRun") -> None:
    """What each seed's model has become."""
    from hopscope.cli.tables import table

    if not run.folder.manifest.complete:
        state = "in training," if run.folder.in_training() else "stopped at"
        say(f"{run.name}: {state} epoch {run.folder.manifest.step:,}")
        return
    columns = [
        "seed",
        "heads",
        "share",
        "lags",
        "attention",
        "a",
        "loss",
        "GIH",
        "Bayes",
        "distance",
    ]
    seconds = run.folder.manifest.seconds
    rows = [_became(run, seed) for seed in run.experiment.seeds]
    table(columns, rows, title=f"{run.name}: validation, trained in {seconds:.1f} s")
    say("share: of Σ c²; attention: of each head to its lag; distance: total variation to GIH")


def _became(run: "MarkovRun", seed: int) -> tuple[object, ...]:
    """A row of the table: one seed's model on its validation chains."""
    from hopscope.markov.evaluation import choice, compare, said
    from hopscope.markov.learner import drawn
    from hopscope.markov.parameters import Parameters, set_name

    state, chains = run.state(seed), drawn(run.experiment, seed, "validation")
    picked = choice(run.experiment.model, Parameters.of(state))
    found = compare(run.experiment, said(run.experiment, state, chains), chains)
    losses = (found.seen.model, found.seen.gih, found.seen.bayes)
    return (
        seed,
        set_name(picked.heads),
        f"{picked.share:.3f}",
        ",".join(map(str, picked.lags)),
        " ".join(f"{weight:.3f}" for weight in picked.weights),
        f"{float(state['a']):.2f}",
        *(f"{loss:.4f}" for loss in losses),
        _or_dash(found.distance),
    )


def _or_dash(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.4f}"


def figures(chosen: MarkovFiguresArguments) -> int:
    if chosen.format not in ("svg", "pdf", "png"):
        raise ConfigError(f"--format is {chosen.format!r}; expected svg, pdf or png")
    from hopscope.markov.evaluation import LENGTHS, approach, transfer
    from hopscope.report import markov as draw
    from hopscope.report.curves import save_figure

    run = _trained(chosen)
    check_folder((chosen.out / run.name).parent)
    seeds, window = run.experiment.seeds, run.experiment.model.window
    figures = {"stages": draw.stages_figure(run), "heads": draw.heads_figure(run)}
    if "a" in run.experiment.descent.plan()[-1][0]:
        moments = [approach(run, seed) for seed in seeds]
        figures["approach"] = draw.approach_figure(run, moments, _gap(run))
    lengths = [length for length in LENGTHS if length > window]
    others = [transfer(run, seed, lengths) for seed in seeds]
    figures["transfer"] = draw.transfer_figure(run, others)
    for name, figure in figures.items():
        path = chosen.out / f"{run.name}-{name}.{chosen.format}"
        say(f"{name}: {save_figure(figure, path)}")
    return 0


def _gap(run: "MarkovRun") -> float:
    """What the growth of a is predicted from; 0 where nothing is: see `gap`."""
    from hopscope.markov.evaluation import gap
    from hopscope.markov.learner import drawn
    from hopscope.markov.parameters import Parameters

    if run.experiment.model.first == "full":
        return 0.0
    seed = run.experiment.seeds[0]
    chains = drawn(run.experiment, seed, "validation")
    found = gap(run.experiment, Parameters.of(run.state(seed)), chains)
    return found if found > 0 else 0.0


def transfer(chosen: MarkovTransferArguments) -> int:
    from hopscope.cli.tables import table
    from hopscope.markov.evaluation import transfer

    run = _trained(chosen)
    rows = []
    for seed in run.experiment.seeds:
        for process, found in transfer(run, seed, chosen.lengths, chosen.alphas, chosen.chains):
            losses = [f"{loss:.4f}" for loss in astuple(found.expected)]
            rows.append((seed, process.length, f"{process.alpha:g}", *losses,
                         _or_dash(found.distance), f"{found.matched:.3f}"))  # fmt: skip
    columns = ["seed", "length", "alpha", "model", "GIH", "Bayes", "truth", "distance", "matched"]
    table(columns, rows, title=f"{run.name}: expected loss on fresh chains")
    return 0


def theory(chosen: MarkovTheoryArguments) -> int:
    from hopscope.cli.tables import table
    from hopscope.markov import information
    from hopscope.markov.process import sample_chains

    if chosen.tables < 2 or chosen.sample < 0:
        raise ConfigError(
            f"tables is {chosen.tables} and sample {chosen.sample}; expected at least 2 and 0"
        )
    process, model = chosen.process, chosen.model
    MarkovExperiment(process=process, model=model)  # do they fit?
    if chosen.estimate:
        chains = sample_chains(process, chosen.tables, chosen.sample)
        found = {"of one lag each": information.estimated(chains, model)}
    else:
        tables = (process, model, chosen.tables, chosen.sample)
        found = {"of one lag each": information.exact(*tables)}
        try:
            found["as they begin"] = information.through_heads(*tables)
        except ConfigError as error:
            say(f"Seen through heads as they begin: {error}", "")
    for heads, values in found.items():
        ordered = sorted(values, key=lambda each: -each.value)
        rows = [
            (",".join(map(str, each.lags)), f"{each.value:.4f}", f"{each.error:.4f}")
            for each in ordered
        ]
        table(["lags", "information", "± error"], rows, title=f"Seen through heads {heads}")
        lags = ", ".join(map(str, ordered[0].lags))
        say(f"Stage I is predicted to choose the heads at lags {lags}.", "")
    return 0


def _trained(chosen: RunArguments) -> "MarkovRun":
    """The run, which must be complete."""
    from hopscope.markov.run import MarkovRun

    run = MarkovRun(Store(chosen.store).find(chosen.run))
    manifest, steps = run.folder.manifest, run.experiment.steps
    if not manifest.complete:
        raise RunDamaged(
            f"{run.name} has come to epoch {manifest.step:,} of {steps:,}: "
            f"`hopscope resume {run.name}` finishes it"
        )
    return run
