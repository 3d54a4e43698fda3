"""`hopscope ngram train|figures|transfer|theory`: the n-gram experiment."""

from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from hopscope.cli.arguments import JsonArguments, RunArguments, StoreArguments, ThreadArguments
from hopscope.cli.drawing import REPORTS, FigureArguments, check_figures, draw
from hopscope.cli.output import say, say_json, teller
from hopscope.configs import Descent, InductionModel, NgramExperiment, NgramProcess
from hopscope.configs.recipe import of_seeds
from hopscope.errors import ConfigError, RunDamaged
from hopscope.store import Store
from hopscope.store.files import check_folder

if TYPE_CHECKING:
    from hopscope.ngram.run import NgramRun


@dataclass(frozen=True)
class NgramTrainArguments(StoreArguments, ThreadArguments):
    """Train the n-gram experiment; without flags, as in the paper."""

    process: tyro.conf.OmitArgPrefixes[NgramProcess] = field(default_factory=NgramProcess)
    model: tyro.conf.OmitArgPrefixes[InductionModel] = field(default_factory=InductionModel)
    descent: tyro.conf.OmitArgPrefixes[Descent] = field(default_factory=Descent)
    seeds: tuple[int, ...] = (0,)
    """A run for each seed; the seed fixes its chains."""


@dataclass(frozen=True)
class NgramFiguresArguments(RunArguments, FigureArguments):
    """Draw a run: its stages, its heads, its way to the induction head, other chains."""

    out: Path = REPORTS
    """The folder for RUN-stages, RUN-heads, RUN-approach and RUN-transfer."""
    format: Annotated[str, tyro.conf.arg(metavar="svg|pdf|png")] = "svg"
    """How they are written."""


@dataclass(frozen=True)
class NgramTransferArguments(RunArguments, JsonArguments):
    """Hold the trained model against others on chains of other lengths and priors."""

    lengths: tuple[int, ...] = (10, 20, 50, 100, 200, 400)
    """Lengths of the chains."""
    alphas: tuple[float, ...] = (0.05, 0.1, 0.2, 0.5, 1.0)
    """Concentrations of the prior."""
    chains: int = 1_000
    """Fresh chains for each."""


@dataclass(frozen=True)
class NgramTheoryArguments(JsonArguments):
    """The modified χ² mutual information of every set of lags, and the winner of stage I."""

    process: tyro.conf.OmitArgPrefixes[NgramProcess] = field(default_factory=NgramProcess)
    model: tyro.conf.OmitArgPrefixes[InductionModel] = field(default_factory=InductionModel)
    tables: int = 1_000
    """Tables drawn from the prior."""
    estimate: bool = False
    """Estimate from one sampled chain of each table instead of its exact distributions."""
    sample: int = 0
    """Which tables: another number draws others."""


def train(chosen: NgramTrainArguments) -> int:
    experiment = NgramExperiment(
        process=chosen.process, model=chosen.model, descent=chosen.descent, seeds=chosen.seeds
    )
    from hopscope.cli.display import display
    from hopscope.runs import train

    store = Store(chosen.store)
    for recipe in of_seeds(experiment):
        print_ngram(train(recipe, store, watcher=display(), threads=chosen.threads))
    return 0


def print_ngram(run: "NgramRun") -> None:
    """What each seed's model has become."""
    from hopscope.cli.tables import print_rows

    if not run.folder.manifest.complete:
        state = "in training," if run.folder.in_training() else "stopped at"
        say(f"{run.name}: {state} epoch {run.folder.manifest.step:,}")
        return
    seconds = run.folder.manifest.seconds
    title = f"{run.name}: validation, trained in {seconds:.1f} s"
    print_rows(ngram_rows(run), FORMATS, title)
    say("share: of Σ c²; attention: of each head to its lag; distance: total variation to GIH")


FORMATS = {
    "share": ".3f", "attention": ".3f", "a": ".2f", "loss": ".4f", "GIH": ".4f", "Bayes": ".4f",
    "distance": ".4f", "model": ".4f", "truth": ".4f", "matched": ".3f", "alpha": "g",
    "information": ".4f", "error": ".4f",
}  # fmt: skip


def ngram_rows(run: "NgramRun") -> list[dict[str, Any]]:
    """What each seed's model has become, on its validation chains."""
    return [_became(run, seed) for seed in run.recipe.seeds]


def _became(run: "NgramRun", seed: int) -> dict[str, Any]:
    from hopscope.ngram.evaluation import choice, compare, model_answers
    from hopscope.ngram.parameters import Parameters, set_name
    from hopscope.ngram.trainer import drawn

    state, chains = run.state(seed), drawn(run.recipe, seed, "validation")
    picked = choice(run.recipe.model, Parameters.of(state))
    found = compare(run.recipe, model_answers(run.recipe, state, chains), chains)
    return {
        "seed": seed,
        "heads": set_name(picked.heads),
        "share": picked.share,
        "lags": list(picked.lags),
        "attention": list(picked.weights),
        "a": float(state["a"]),
        "loss": found.seen.model,
        "GIH": found.seen.gih,
        "Bayes": found.seen.bayes,
        "distance": found.distance,
    }


def figures(chosen: NgramFiguresArguments) -> int:
    if chosen.format not in ("svg", "pdf", "png"):
        raise ConfigError(f"--format is {chosen.format!r}; expected svg, pdf or png")
    from hopscope.ngram.evaluation import LENGTHS, approach, transfer
    from hopscope.report import ngram as shown

    run = _trained(chosen)
    check_folder((chosen.out / run.name).parent)
    check_figures(chosen, chosen.out / f"{run.name}-stages.{chosen.format}")
    seeds, window = run.recipe.seeds, run.recipe.model.window
    make = {"stages": lambda: shown.stages_figure(run), "heads": lambda: shown.heads_figure(run)}
    if "a" in run.recipe.descent.plan()[-1][0]:
        moments = [approach(run, seed) for seed in seeds]
        gap = _gap(run)
        make["approach"] = lambda: shown.approach_figure(run, moments, gap)
    lengths = [length for length in LENGTHS if length > window]
    others = [transfer(run, seed, lengths) for seed in seeds]
    make["transfer"] = lambda: shown.transfer_figure(run, others)
    for name, figure in make.items():
        draw(chosen, chosen.out / f"{run.name}-{name}.{chosen.format}", figure)
    return 0


def _gap(run: "NgramRun") -> float:
    """What the growth of a is predicted from; 0 where nothing is: see `gap`."""
    from hopscope.ngram.growth import gap
    from hopscope.ngram.parameters import Parameters
    from hopscope.ngram.trainer import drawn

    if run.recipe.model.first == "full":
        return 0.0
    seed = run.recipe.seeds[0]
    chains = drawn(run.recipe, seed, "validation")
    found = gap(run.recipe, Parameters.of(run.state(seed)), chains)
    return found if found > 0 else 0.0


def transfer(chosen: NgramTransferArguments) -> int:
    from hopscope.cli.tables import print_rows
    from hopscope.ngram.evaluation import transfer

    run = _trained(chosen)
    rows = []
    for seed in run.recipe.seeds:
        for process, found in transfer(run, seed, chosen.lengths, chosen.alphas, chosen.chains):
            losses = zip(("model", "GIH", "Bayes", "truth"), astuple(found.expected), strict=True)
            row = {"seed": seed, "length": process.length, "alpha": process.alpha, **dict(losses)}
            rows.append(row | {"distance": found.distance, "matched": found.matched})
    print_rows(rows, FORMATS, f"{run.name}: expected loss on fresh chains", json=chosen.json)
    return 0


def theory(chosen: NgramTheoryArguments) -> int:
    from hopscope.cli.tables import print_rows
    from hopscope.ngram import information
    from hopscope.ngram.process import sample_chains

    if chosen.tables < 2 or chosen.sample < 0:
        raise ConfigError(
            f"tables is {chosen.tables} and sample {chosen.sample}; expected at least 2 and 0"
        )
    process, model = chosen.process, chosen.model
    NgramExperiment(process=process, model=model)  # do they fit?
    if chosen.estimate:
        chains = sample_chains(process, chosen.tables, chosen.sample)
        found = {"of one lag each": information.estimated(chains, model)}
    else:
        drawn = (process, model, chosen.tables, chosen.sample)
        found = {"of one lag each": information.exact(*drawn)}
        try:
            found["as they begin"] = information.through_heads(*drawn)
        except ConfigError as error:
            teller(json_alone=chosen.json)(f"Seen through heads as they begin: {error}")
    tables = {
        heads: [
            {"lags": list(each.lags), "information": each.value, "error": each.error}
            for each in sorted(values, key=lambda each: -each.value)
        ]
        for heads, values in found.items()
    }
    if chosen.json:
        say_json([{"seen_through": heads, **row} for heads, rows in tables.items() for row in rows])
        return 0
    for heads, rows in tables.items():
        print_rows(rows, FORMATS, f"Seen through heads {heads}")
        lags = str(rows[0]["lags"]).strip("[]")
        say(f"Stage I is predicted to choose the heads at lags {lags}.", "")
    return 0


def _trained(chosen: RunArguments) -> "NgramRun":
    """The run, which must be complete."""
    from hopscope.ngram.run import NgramRun

    run = NgramRun(Store(chosen.store).find(chosen.run))
    manifest, steps = run.folder.manifest, run.recipe.steps
    if not manifest.complete:
        raise RunDamaged(
            f"{run.name} has come to epoch {manifest.step:,} of {steps:,}: "
            f"`hopscope resume {run.name}` finishes it"
        )
    return run
