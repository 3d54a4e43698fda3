"""`hopscope ngram train|theory|transfer`: the n-gram experiment."""

from collections.abc import Callable
from dataclasses import astuple, replace
from typing import TYPE_CHECKING, Any

import click

from hopscope.cli import flags
from hopscope.cli.changes import changed
from hopscope.cli.options import command, option
from hopscope.cli.output import note, say, say_json
from hopscope.cli.tables import Part, piece_of, print_rows, unfinished
from hopscope.configs import NgramExperiment
from hopscope.configs.recipe import of_seeds
from hopscope.errors import ConfigError, RunDamaged
from hopscope.store import Store

if TYPE_CHECKING:
    from hopscope.ngram.run import NgramRun
    from hopscope.plots.look import Picture

changes_argument = click.argument("changes", nargs=-1, metavar="[KEY=VALUE]…")
ALPHAS = "0.05,0.1,0.2,0.5,1.0"


def _experiment(changes: tuple[str, ...]) -> NgramExperiment:
    return changed(NgramExperiment(), changes, "the n-gram experiment")


@command(changes_argument, flags.seeds, flags.threads, flags.store)
def train(
    changes: tuple[str, ...], seeds: tuple[int, ...] | None, threads: int | None,
    store: Store,
) -> None:  # fmt: skip
    """Train the n-gram experiment, without changes as in the paper. `hopscope train` does the same
    with the paper's presets.

    KEY=VALUE changes a field, such as process.alphabet=4, model.window=5 or
    descent.epochs=600,800,600; docs/fields.md lists all of process, model and descent.
    """
    from hopscope.cli.training import show_trained, with_seeds

    for recipe in of_seeds(with_seeds(_experiment(changes), changes, seeds)):
        show_trained(recipe, store, "auto", threads)


def ngram_parts(run: "NgramRun") -> list[Part]:
    """Return a table of `ngram_rows`; for an incomplete run, its progress."""
    if not run.folder.manifest.complete:
        return [unfinished(run)]
    title = f"{run.name}: validation, trained in {run.folder.manifest.seconds:.1f} s"
    remark = "share: of Σ c²; attention: of each head to its lag; distance: total variation to GIH"
    return [replace(piece_of(ngram_rows(run), COLUMN_FORMATS, title), lines=(remark,))]


COLUMN_FORMATS = {
    "share": ".3f", "attention": ".3f", "a": ".2f", "loss": ".4f", "GIH": ".4f", "Bayes": ".4f",
    "distance": ".4f", "model": ".4f", "truth": ".4f", "matched": ".3f", "alpha": "g",
    "information": "z.4f", "error": ".4f",
}  # fmt: skip


def ngram_rows(run: "NgramRun") -> list[dict[str, Any]]:
    """Return a row for each seed's trained model: heads, attention and validation losses."""
    from hopscope.ngram.evaluation import choice, validated
    from hopscope.ngram.parameters import set_name

    rows = []
    for seed in run.recipe.seeds:
        parameters, found = validated(run, seed)
        picked = choice(run.recipe.model, parameters)
        rows.append(
            {
                "seed": seed,
                "heads": set_name(picked.heads),
                "share": picked.share,
                "lags": list(picked.lags),
                "attention": list(picked.weights),
                "a": float(parameters.a),
                "loss": found.seen.model,
                "GIH": found.seen.gih,
                "Bayes": found.seen.bayes,
                "distance": found.distance,
            }
        )
    return rows


def ngram_figures(run: "NgramRun") -> "dict[str, Callable[[], Picture]]":
    """Return functions that draw a run's heads, its approach to GIH (if `a` is trained last), and
    its transfer to other chains.
    """
    from hopscope.ngram.evaluation import approach, transfer
    from hopscope.plots import ngram as shown

    _check_trained(run)
    seeds = run.recipe.seeds
    made: dict[str, Callable[[], Picture]] = {"heads": lambda: shown.lags_figure(run)}
    if "a" in run.recipe.descent.plan()[-1][0]:
        made["approach"] = lambda: shown.approach_figure(
            run, [approach(run, seed) for seed in seeds], _gap(run)
        )
    made["transfer"] = lambda: shown.transfer_figure(run, [transfer(run, seed) for seed in seeds])
    return made


def _gap(run: "NgramRun") -> float:
    """Return the gap that predicts the growth of `a`, 0 if there is no prediction: see `gap`."""
    from hopscope.ngram.growth import gap
    from hopscope.ngram.parameters import Parameters
    from hopscope.ngram.trainer import chains_of

    if run.recipe.model.first == "full":
        return 0.0
    seed = run.recipe.seeds[0]
    chains = chains_of(run.recipe, seed, "validation")
    found = gap(run.recipe, Parameters.of(run.state(seed)), chains)
    return found if found > 0 else 0.0


@command(
    flags.run,
    option("--lengths N,N,…", "Lengths of the chains (default: those of 10,20,50,100,200,400 that "
           "are longer than the model's window)."),
    option("--alphas X,X,…", "Concentrations of the prior.", default=ALPHAS),
    option("--chains N", "Fresh chains of each.", default=1_000),
    flags.json, flags.store,
)  # fmt: skip
def transfer(
    run: str, lengths: str | None, alphas: str, chains: int, json: bool, store: Store
) -> None:
    """Compare the trained model with others on chains of other lengths and priors."""
    from hopscope.ngram.evaluation import transfer as measure
    from hopscope.ngram.run import NgramRun

    sizes = None if lengths is None else _numbers("--lengths", lengths, int)
    priors = _numbers("--alphas", alphas, float)
    opened = NgramRun(store.find(run))
    _check_trained(opened)
    rows = []
    for seed in opened.recipe.seeds:
        for process, found in measure(opened, seed, sizes, priors, chains):
            losses = zip(("model", "GIH", "Bayes", "truth"), astuple(found.expected), strict=True)
            row = {"seed": seed, "length": process.length, "alpha": process.alpha, **dict(losses)}
            rows.append(row | {"distance": found.distance, "matched": found.matched})
    print_rows(rows, COLUMN_FORMATS, f"{opened.name}: expected loss on fresh chains", json=json)


def _numbers(flag: str, text: str, kind: Callable[[Any], Any]) -> Any:
    try:
        return tuple(kind(part) for part in text.split(","))
    except ValueError:
        raise ConfigError(f"{flag} is {text!r}; expected numbers such as 10,20,50") from None


@command(
    changes_argument,
    option("--tables N", "Tables drawn from the prior.", type=click.IntRange(2), default=1_000),
    option("--estimate", "Estimate from one chain of each table, not from its exact "
           "distributions."),
    flags.sample("tables"),
    flags.json,
)  # fmt: skip
def theory(changes: tuple[str, ...], tables: int, estimate: bool, sample: int, json: bool) -> None:
    """Show the modified χ² mutual information of every set of lags, and the winner of stage I.

    KEY=VALUE changes the experiment, as in `hopscope ngram train`: process.alphabet=4.
    """
    from hopscope.ngram import information
    from hopscope.ngram.process import sample_chains

    experiment = _experiment(changes)
    process, model = experiment.process, experiment.model
    if estimate:
        found = {
            "of one lag each": information.estimated(sample_chains(process, tables, sample), model)
        }
    else:
        found = {"of one lag each": information.exact(process, model, tables, sample)}
        try:
            found["as they begin"] = information.through_heads(process, model, tables, sample)
        except ConfigError as error:
            (note if json else say)(f"Seen through heads as they begin: {error}")
    tabled = {
        heads: [
            {"lags": _named(each.lags), "information": each.value, "error": each.error}
            for each in sorted(values, key=lambda each: -each.value)
        ]
        for heads, values in found.items()
    }
    if json:
        say_json([{"seen_through": heads, **row} for heads, rows in tabled.items() for row in rows])
        return
    for heads, rows in tabled.items():
        print_rows(rows, COLUMN_FORMATS, f"Seen through heads {heads}")
        lags = [", ".join(map(str, _named(each))) for each in information.rivals(found[heads])]
        says = (
            f"is predicted to choose the heads at lags {lags[0]}"
            if len(lags) == 1
            else f"has no sure favourite (95 %, paired by table): lags {'; '.join(lags)}"
        )
        say(f"Stage I {says}.", "")


def _named(lags: tuple[int, ...]) -> list[int | str]:
    """Return the lags of a set of heads; "mixed" is a head with its largest weight at several."""
    return [lag or "mixed" for lag in lags]


def _check_trained(run: "NgramRun") -> None:
    """Refuse a run that is not complete."""
    manifest, steps = run.folder.manifest, run.recipe.steps
    if not manifest.complete:
        raise RunDamaged(
            f"{run.name} is at epoch {manifest.step:,} of {steps:,}: "
            f"`{run.folder.command('resume')}` finishes it"
        )
