"""`hopscope reproduce`: run what is missing, measure, draw."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from hopscope.cli.arguments import JsonArguments, ResultsArguments, StoreArguments, refuse_unused
from hopscope.cli.output import say, warn
from hopscope.cli.workers import WorkersArguments, carried_out, pool_of, seconds_of
from hopscope.configs import Experiment, Recipe
from hopscope.errors import (
    OF_ONE_RUN,
    CircuitError,
    ConfigError,
    HopscopeError,
    ResultsError,
    StoreError,
)
from hopscope.machine import check_threads
from hopscope.papers.registry import PAPERS, Registry
from hopscope.papers.results_folder import Results
from hopscope.papers.table import Protocol, Table, machine
from hopscope.papers.target import Target
from hopscope.store import RunFolder, Store

if TYPE_CHECKING:
    from hopscope.papers.measuring import Measuring

TRAINS = (*(each.name for each in fields(WorkersArguments)), "time_limit")
"""Flags that say how to train."""


@dataclass(frozen=True)
class ReproduceArguments(StoreArguments, ResultsArguments, JsonArguments, WorkersArguments):
    """Reproduce a figure, a paper, or both papers: run what is missing, measure, draw."""

    target: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TARGET")] = ""
    """A figure such as musat/fig4-ic, the beginning of a name (musat/fig4, chen), or all of them if
    left out; `--list` lists them."""
    protocol: Literal["full", "reduced", "smoke"] = "reduced"
    """full: the paper's, to the letter; reduced: what two cores can do; smoke: two minutes."""
    time_limit: float | None = None
    """Minutes for the runs of each target, after which they stop with a checkpoint, and the command
    ends with exit code 75; the same command goes on."""
    list: bool = False
    """List the targets instead, with the runs that each still needs."""
    draw: bool = False
    """Draw the figures of what is measured already instead; nothing is trained."""


def reproduce(chosen: ReproduceArguments, papers: Registry = PAPERS) -> int:
    _check(chosen)
    store, found = Store(chosen.store), papers.matching(chosen.target)
    results = papers.results(chosen.results)
    if chosen.list:
        list_targets(found, chosen, store, results)
        return 0
    if chosen.draw:
        draw_again(found, results)
        say(f"overview: {write_readme(papers, results)}")
        return 0
    from hopscope.runs.stop import REQUEUE

    failed: list[HopscopeError] = []
    complete = True
    left = still_open(found, chosen.protocol, results)
    if len(left) > 1:
        rows = target_rows(left, chosen.protocol, store, results)
        runs = sum(row["of"] - row["runs_there_are"] for row in rows)
        say(f"{len(left)} targets with {runs} runs to do: --list shows them")
    write_readme(papers, results)  # where it cannot be written, better now than after the training
    for target in left:
        try:
            complete &= reproduced(target, chosen, store, results)
        except (CircuitError, ResultsError, *OF_ONE_RUN) as error:
            # It says nothing about the other targets.
            warn(f"{target.name}: {error}")
            failed.append(error)
    say(f"overview: {write_readme(papers, results)}")
    if not complete:
        return REQUEUE
    return failed[0].exit_code if failed else 0


def _check(chosen: ReproduceArguments) -> None:
    """Refuse what makes no sense, before anything is trained."""
    if chosen.list and chosen.draw:
        raise ConfigError("--list lists targets, and --draw draws them: choose one")
    if chosen.json and not chosen.list:
        raise ConfigError("--json is for --list; what is measured is in the results' files")
    if chosen.list:
        refuse_unused(chosen, TRAINS, "with --list, which trains nothing")
    elif chosen.draw:
        refuse_unused(chosen, (*TRAINS, "protocol"), "with --draw, which draws what is measured")
    else:
        seconds_of(chosen.time_limit)
        check_threads(chosen.threads)
        pool_of(chosen)


def write_readme(papers: Registry, results: Results) -> Path:
    """What is in a folder of results, in words; a page of somebody else's is not written over."""
    from hopscope.report.readme import HEAD, readme
    from hopscope.store.files import read_bytes, write_bytes

    path = results.root / "README.md"
    if path.is_file() and not read_bytes(path).startswith(HEAD.partition(" from")[0].encode()):
        raise ConfigError(
            f"{path} is not a page of hopscope's, and would be written over: choose another folder "
            "with --results"
        )
    write_bytes(path, readme(papers.claims, papers.targets, results).encode())
    return path


def list_targets(
    found: Sequence[Target], chosen: ReproduceArguments, store: Store, results: Results
) -> None:
    from hopscope.cli.tables import print_rows

    rows = target_rows(found, chosen.protocol, store, results)
    if not chosen.json:
        rows = [row | {"measured": row["measured"] or "not yet"} for row in rows]
    print_rows(rows, {}, json=chosen.json)


def target_rows(
    found: Sequence[Target], wanted: Protocol, store: Store, results: Results
) -> list[dict[str, Any]]:
    """Every target, with what there is of it."""
    rows = []
    for target in found:
        protocol, recipes = target.runs(wanted)
        known = _runs_measured(results, target.name, protocol)
        there = sum(r.run_name() in known or _is_trained(store, r) for r in recipes)
        measured = results.readable(target.name)
        rows.append(
            {
                "target": target.name,
                "shows": target.shows,
                "protocol": protocol,
                "runs_there_are": there,
                "of": len(recipes),
                "measured": None if measured is None else measured.protocol,
            }
        )
    return rows


def _runs_measured(results: Results, target: str, protocol: Protocol) -> tuple[str, ...]:
    """The runs of which there are rows. A file that cannot be read is told of when it is needed."""
    try:
        return results.part(target, protocol).runs
    except ResultsError:
        return ()


def _has_begun(store: Store, recipe: Recipe) -> bool:
    """Is there a state of the run that training goes on from?"""
    try:
        found = store.of(recipe)
    except StoreError:  # training tells of it
        return True
    return found is not None and bool(found.files("checkpoints/"))


def _is_trained(store: Store, recipe: Recipe) -> bool:
    """Is the run complete? One that is damaged is told of when it is needed."""
    try:
        return store.has_complete(recipe)
    except StoreError:
        return False


def still_open(found: Sequence[Target], wanted: Protocol, results: Results) -> list[Target]:
    """Without what a better protocol has measured already. Asked for by itself, that is a mistake:
    better to hear it now than after hours of training.
    """
    left = []
    for target in found:
        try:
            results.check(target.name, target.runs(wanted)[0])
        except ResultsError:
            if len(found) == 1:
                raise
            say(f"{target.name}: measured already, by a better protocol")
        else:
            left.append(target)
    return left


def reproduced(target: Target, chosen: ReproduceArguments, store: Store, results: Results) -> bool:
    """Runs, measures and draws one target; False if the time was over before its runs were.

    What is complete is measured and kept, though a run may fail.
    """
    import torch

    from hopscope.papers.measuring import Measuring
    from hopscope.runs import Stop
    from hopscope.runs.computing import processor_of
    from hopscope.training.device import device_of

    protocol, recipes = target.runs(chosen.protocol)
    say(f"{target.name}, {protocol} protocol: {target.shows}")
    before = results.part(target.name, protocol)
    left = [recipe for recipe in recipes if recipe.run_name() not in before.runs]
    if before.runs:
        say(f"{len(recipes) - len(left)} of {len(recipes)} runs are measured already")
    threads = chosen.threads or torch.get_num_threads()
    device = device_of(chosen.device)
    here = machine(threads, processor_of(device) if device.type == "cuda" else "")
    measuring = Measuring(target, protocol, store, results, here, before)
    for recipe in left:
        if _is_trained(store, recipe):
            measuring.measure(RunFolder(store.root / recipe.run_name()))
    go_on_from_shorter(target, left, store)
    # Alone, unless fleets are asked for: a longer protocol goes on with the bits of a shorter one.
    flags = chosen if chosen.pack else replace(chosen, pack=1)
    outcome = carried_out(left, store, flags, Stop(seconds_of(chosen.time_limit)), measuring.look)
    for folder in outcome.folders:
        measuring.measure(folder)
    return kept(measuring, [*outcome.troubles, *filter(None, measuring.troubles.values())])


def kept(measuring: "Measuring", troubles: Sequence[HopscopeError]) -> bool:
    """Keeps and draws what was measured; False if the time was over before all runs were. If none
    is left but those that failed, the first error is raised.
    """
    target, results = measuring.target, measuring.results
    path, found = measuring.save(), measuring.known
    if not found.missing:  # another process may have done what this one could not
        say(f"results: {path}")
        draw(found, results)
        for trouble in troubles:
            warn(f"{target.name}: {trouble}")
        return True
    if path and not results.has(target.name):  # the figures of a complete table stay
        draw(found, results)
    where = f" ({path})" if path else ""
    say(
        f"{len(found.runs)} of {found.wanted} runs are complete and measured{where}; the same "
        "command goes on"
    )
    time_over = len(troubles) < found.missing
    for trouble in troubles[not time_over :]:
        warn(f"{target.name}: {trouble}")
    if time_over:
        return False
    raise troubles[0]


def go_on_from_shorter(target: Target, wanted: Sequence[Recipe], store: Store) -> None:
    """Begin runs with those of the target's other protocols that are the same with fewer steps."""
    from hopscope.training.prolong import goes_on, prolong

    trained = [r for make in target.recipes.values() for r in make() if _is_trained(store, r)]
    known = [each for each in trained if isinstance(each, Experiment)]
    for recipe in [each for each in wanted if isinstance(each, Experiment)]:
        beginnings = [each for each in known if goes_on(recipe, each)]
        if not beginnings or _has_begun(store, recipe):
            continue
        name = max(beginnings, key=lambda each: each.steps).run_name()
        try:
            prolong(RunFolder(store.root / name), recipe, store)
        except OF_ONE_RUN as error:  # another process begins it as well, or the shorter is damaged
            say(f"{recipe.run_name()} does not go on from {name}: {error}")
        else:
            say(f"{recipe.run_name()} goes on from {name}")


def draw_again(found: Sequence[Target], results: Results) -> None:
    """The figures of all that is measured of these targets, complete or not."""
    known = [target.name for target in found if results.so_far(target.name)]
    if not known:
        which = f"none of {len(found)} targets is" if len(found) > 1 else f"{found[0].name} is not"
        raise ResultsError(
            f"nothing to draw: {which} measured in {results.root}: --results names another folder"
        )
    for table in filter(None, map(results.shown, known)):
        draw(table, results)


def draw(found: Table, results: Results) -> None:
    """The figures of a target, beside its results."""
    from hopscope.report.saving import save_figure
    from hopscope.report.table_figures import figures

    for name, figure in figures(found, results.shown):
        path = results.path(found.target)
        say(f"figure: {save_figure(figure, path.with_name(f'{path.stem}-{name}.svg'))}")
