"""`hopscope papers list|run|claims|report`: the papers' results and our measurements."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from hopscope import __version__
from hopscope.cli import flags
from hopscope.cli.claims_text import show_claims, show_variants
from hopscope.cli.options import command, completing, option, options, refuse_unused
from hopscope.cli.output import say, warn
from hopscope.cli.tables import print_rows
from hopscope.cli.workers import WorkerFlags, carried_out, seconds_of, workers_options
from hopscope.configs import Recipe
from hopscope.errors import OF_ONE_RUN, CircuitError, ConfigError, HopscopeError, ResultsError
from hopscope.machine import check_threads
from hopscope.papers import registry
from hopscope.papers.cost import in_time
from hopscope.papers.registry import Registry
from hopscope.papers.results import Results, ResultsTable, machine, that_came_with_it
from hopscope.papers.running import ExperimentState, run_missing, states
from hopscope.plots.readme import README_HEAD, readme
from hopscope.runs import Stop
from hopscope.runs.stop import REQUEUE
from hopscope.store import Store
from hopscope.store.files import read_bytes, write_bytes
from hopscope.web.bundle import MARKUP, check_target
from hopscope.workers import Outcome
from hopscope.workers.progress import SweepProgress

OWN = Path("results")
experiment_options = options(
    click.argument("experiment", default="", metavar="[EXPERIMENT]",
                   shell_complete=completing(lambda _: registry.PAPERS.experiments)),
    option("--protocol", "full: what the paper ran; reduced: what two cores can do.",
           choices=['full', 'reduced'], default="reduced"),
)  # fmt: skip
results_option = option("--results FOLDER", "Folder of the measured rows.", default=OWN)
measured_option = option(
    "--results FOLDER",
    "Folder of what `papers run` measured (default: ./results if there is anything in it, else "
    "what came with hopscope).",
)


@command(experiment_options, results_option, flags.json, flags.store)
def experiments(experiment: str, protocol: Any, results: Path, json: bool, store: Store) -> None:
    """List the experiments with their complete and missing runs, and the time for the missing ones.

    EXPERIMENT is a name, such as musat/fig4, or the beginning of names, such as chen.
    """
    papers = registry.PAPERS
    rows: list[dict[str, object]] = []
    for state in states(papers.matching(experiment), protocol, store, papers.results(results)):
        about, table = state.experiment, state.table
        row: dict[str, object] = {
            "experiment": about.name, "shows": about.shows, "protocol": table.protocol,
        }  # fmt: skip
        if json:
            row |= {
                "runs": len(table.runs) + len(table.missing),
                "measured": len(table.runs),
                "trained": state.trained,
                "missing": len(state.untrained),
                "seconds_here": state.seconds_here,
                "seconds_gpu": state.seconds_gpu,
            }
        else:
            row["measured"] = table.progress.removesuffix(" runs")
            row["to_train"] = _time(state) if state.untrained else "nothing"
        rows.append(row)
    print_rows(rows, {}, json=json)


@command(
    experiment_options,
    option("--time-limit MINUTES", "Stop each experiment after so many minutes with a checkpoint, "
           "and the command with exit code 75; the same command continues."),
    option("--draw", "Draw the figures of what is measured in --results (if nothing is: of what "
           "came with hopscope); train nothing.", name="draws"),
    workers_options, results_option, flags.store,
)  # fmt: skip
def run(
    experiment: str, protocol: Any, time_limit: float | None, draws: bool, results: Path,
    store: Store, how: WorkerFlags,
) -> int:  # fmt: skip
    """Reproduce a figure, a paper, or both papers: train missing runs, measure, draw.

    The complete and the missing runs are printed first, with the time for the missing ones.
    """
    papers = registry.PAPERS
    found, where = papers.matching(experiment), papers.results(results)
    if draws:
        refuse_unused("with --draw, which trains nothing", "--protocol", "--time-limit",
                      "--workers", "--pack", "--device", "--threads")  # fmt: skip
        source = measured(None, papers) if results == OWN else where
        draw_again([each.name for each in found], source, where)
        if source.root == where.root:
            say(f"overview: {write_readme(papers, where)}")
        return 0
    seconds_of(time_limit)
    known = states(found, protocol, store, where)
    for state in known:
        say(_what_there_is(state))
    left = [state for state in known if state.table.missing]
    if not left:
        return 0
    check_threads(how.threads)
    how.pool()
    write_readme(papers, where)  # an unwritable folder fails before the training
    code = _run_all(left, how, time_limit, store, where)
    say(f"overview: {write_readme(papers, where)}")
    return code


@command(
    click.argument("words", nargs=-1, metavar="[CLAIM]",
                   shell_complete=completing(lambda _: registry.PAPERS.claims)),
    option("--variants", "Show the variants of what the paper leaves open: how each ends, and "
           "which claims hold under it. Words then say what a variant has, such as fan-in pair."),
    measured_option, flags.json,
)  # fmt: skip
def claims(words: tuple[str, ...], variants: bool, results: Path | None, json: bool) -> int:
    """Show the claims of both papers with our verdicts; for a single claim also the evidence.

    CLAIM is a claim's name, or how names begin, such as musat or abc.
    """
    papers = registry.PAPERS
    found = measured(results, papers)
    if variants:
        show_variants(words, found, json=json)
        return 0
    if len(words) > 1:
        raise ConfigError(f"got {' '.join(words)}; expected one claim, or --variants")
    return show_claims("".join(words), papers, found, json=json)


@command(
    option("--save FILE.html", "The page.", default=Path("reports/papers.html")),
    measured_option,
)  # fmt: skip
def report(save: Path, results: Path | None) -> None:
    """Write the claims, their verdicts and every figure as one self-contained page."""
    from hopscope.plots import table_figures
    from hopscope.plots.paper import paper_page

    check_target(save, folders=False)
    papers = registry.PAPERS
    text = paper_page(papers, measured(results, papers), table_figures.figures)
    write_bytes(save, MARKUP + text.encode())
    say(f"page: {save}")


def measured(asked: Path | None, papers: Registry) -> Results:
    """Return the results in `asked` or ./results; without these, those shipped with hopscope.

    A warning says so if shipped results are used, or if there are none.
    """
    here = papers.results(asked or OWN)
    if asked is None and not here.any() and (kept := that_came_with_it()) is not None:
        warn(f"these results came with version {__version__}; --results names a folder of yours")
        return papers.results(kept)
    if not here.root.is_dir():
        if asked is not None:
            raise ConfigError(f"no folder {asked}; --results is what `hopscope papers run` wrote")
        warn(
            f"no folder {here.root}, so nothing is measured: what comes with the repository "
            "is in its results/; --results names another folder"
        )
    return here


def _what_there_is(state: ExperimentState) -> str:
    """Return a line on an experiment's measured and missing runs, and the time for the latter."""
    name, of = state.experiment.name, f"{state.table.protocol} protocol"
    if not state.table.missing:
        return f"{name}, {of}: all {len(state.table.runs)} runs are measured; nothing to train"
    if not state.experiment.recipes:
        return f"{name}: computed, without any training"
    trained = f", {state.trained} trained and not measured" if state.trained else ""
    said = f"{name}, {of}: {state.table.progress} measured{trained}"
    if not state.untrained:
        return said
    return f"{said}, {len(state.untrained)} to train: {_time(state)}"


def _time(state: ExperimentState) -> str:
    """Return the time to train the missing runs as text, estimated from similar runs."""
    here, gpu = state.seconds_here, state.seconds_gpu
    told = [f"about {in_time(here)} on a processor core" if here is not None else ""]
    told += [f"{in_time(gpu)} on an H200" if gpu is not None else ""]
    return ", ".join(filter(None, told)) or "nothing like them was timed yet"


def _run_all(
    left: Sequence[ExperimentState],
    how: WorkerFlags,
    minutes: float | None,
    store: Store,
    results: Results,
) -> int:
    """Run what each experiment lacks, continue after failures, and return the exit code."""
    # No fleets unless --pack is given: then a longer protocol continues a shorter one bit by bit.
    here, alone = _here(how), how if how.pack else replace(how, pack=1)

    def carry(recipes: Sequence[Recipe], look: Callable[[SweepProgress], None]) -> Outcome:
        return carried_out(recipes, store, alone, Stop(seconds_of(minutes)), look)

    failed: list[HopscopeError] = []
    over = False
    for state in left:
        name = state.experiment.name
        say(f"{name}: {state.experiment.shows}")
        try:
            troubles = run_missing(state, store, results, here, carry, say)
        except (CircuitError, ResultsError, *OF_ONE_RUN) as error:
            warn(f"{name}: {error}")
            failed.append(error)
            continue
        table = results.table(name, state.table.protocol)
        # Another process may have done what this one could not.
        over |= len(troubles) < len(table.missing)
        failed += troubles if table.missing else []
        for trouble in troubles:
            warn(f"{name}: {trouble}")
        if table.missing:
            say(f"{name}: {table.progress} are measured; the same command continues")
        else:
            say(f"results: {results.path(name)}")
        if table.runs and (shown := results.shown(name)) is not None:
            write_figures(shown, results, results)
    return REQUEUE if over else failed[0].exit_code if failed else 0


def _here(how: WorkerFlags) -> str:
    import torch

    from hopscope.runs.computing import processor_of
    from hopscope.training.device import device_of

    device = device_of(how.device)
    gpu = processor_of(device) if device.type == "cuda" else ""
    return machine(how.threads or torch.get_num_threads(), gpu)


def write_readme(papers: Registry, results: Results) -> Path:
    """Write README.md of a folder of results; raises if there is one not made by hopscope."""
    path = results.root / "README.md"
    if path.is_file() and not read_bytes(path).startswith(
        README_HEAD.partition(" from")[0].encode()
    ):
        raise ConfigError(
            f"{path} was not written by hopscope and would be overwritten: choose another folder "
            "with --results"
        )
    write_bytes(path, readme(papers, results).encode())
    return path


def draw_again(names: Sequence[str], results: Results, to: Results) -> None:
    """Draw the figures of all measured rows of these experiments, complete or not."""
    for name in names:
        results.measured(name)  # raises if it cannot be read
    tables = [*filter(None, map(results.shown, names))]
    if not tables:
        which = f"none of {len(names)} experiments is" if len(names) > 1 else f"{names[0]} is not"
        raise ResultsError(
            f"nothing to draw: {which} measured in {results.root}: --results names another folder"
        )
    for table in tables:
        write_figures(table, results, to)


def write_figures(found: ResultsTable, results: Results, to: Results) -> None:
    """Draw the figures of an experiment into the folder for its results in `to`."""
    from hopscope.plots.saving import save_figure
    from hopscope.plots.table_figures import figures

    for name, figure in figures(found, results.shown):
        path = to.path(found.experiment)
        say(f"figure: {save_figure(figure, path.with_name(f'{path.stem}-{name}.svg'))}")
