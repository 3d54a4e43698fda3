"""`hopscope depth`: how many layers a question needs, and a schedule that needs no more."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from hopscope.cli.options import command, json_option, option, options, range_of, refuse_unused
from hopscope.cli.output import prose, say, say_json
from hopscope.cli.results import check_figure, draw, figure_options
from hopscope.cli.tables import print_rows
from hopscope.configs.tasks import KINDS
from hopscope.errors import ConfigError
from hopscope.facts import FactGraph, chain_of_facts, parse_facts
from hopscope.theory import Flow, depths, flow

TABLED = ("hops", "task", "order", "bidirectional", "heads", "figure")
DRAWN = 100
"""Most hops or facts whose schedule is drawn: a second, or three (both directions, one head)."""


@dataclass(frozen=True)
class Asked:
    """What is asked, and how attention goes."""

    facts: tuple[str, ...]
    hops: int | None
    task: str
    order: str
    bidirectional: bool
    heads: int | None


@command
@click.argument("facts", nargs=-1, metavar="[FACT]…")
@option("--hops N", "Hops of a linear chain (default: 3).")
@option(
    "--task",
    "Take the look-ups of a task with its usual settings.",
    choices=[*KINDS],
    default="retrieval",
)
@option(
    "--order",
    "Order of the facts: last hop first (as in the paper), or first hop first.",
    choices=["backward", "forward"],
    default="backward",
)
@option("--bidirectional", "Attention in both directions instead of causal.")
@option(
    "--heads 1",
    "At most one head per layer (default: as many as needed).",
    type=click.IntRange(1, 1),
)
@option(
    "--table FIRST..LAST",
    "Print a table for a range of hops, such as 1..64, and nothing else.",
)
@options(json_option, figure_options)
def depth(table: str | None, json: bool, figure: Path | None, **asked: Any) -> None:
    """Show how many layers a question needs at least, and a schedule that needs no more.

    A question is a chain (--hops), a task, or any acyclic look-ups: each FACT is
    "key[,key…]->value". --figure draws which positions share information before any layer.
    """
    chosen = Asked(**asked)
    check_figure(figure)
    if table is not None:
        refuse_unused("with --table", *(f"--{name}" for name in TABLED))
        print_rows([asdict(depths(hops)) for hops in _range(table)], {}, json=json)
        return
    _check_asked_once(chosen)
    if figure and json:
        raise ConfigError("--json prints what --figure would draw: give one of them")
    if json:
        _say_layers(chosen)
        return
    if chosen.hops is not None and chosen.hops > DRAWN:
        _print_depths(chosen.hops)
        _print_how(chosen)
        _refuse_to_draw(f"{chosen.hops:,} hops", figure)
        return
    graph = _graph(chosen)
    _print_bounds(graph, chosen)
    if len(graph.facts) > DRAWN:
        _refuse_to_draw(f"{len(graph.facts):,} facts", figure)
        return
    _print_schedule(graph, chosen)
    if figure:
        from hopscope.plots.depth import shared_information

        say()
        draw(figure, lambda: shared_information(graph))


def _check_asked_once(chosen: Asked) -> None:
    named = [chosen.hops is not None, bool(chosen.facts), chosen.task != "retrieval"]
    if sum(named) > 1:
        raise ConfigError("give one of --hops, --task and FACT; each says what is asked")


def _say_layers(chosen: Asked) -> None:
    """After how many layers the query holds each symbol, as JSON."""
    graph = chain_of_facts(min(chosen.hops, DRAWN + 1)) if chosen.hops else _graph(chosen)
    if len(graph.facts) > DRAWN:
        raise ConfigError(
            f"--json prints the layer of every symbol, of up to {DRAWN} facts; "
            "--table 500..500 --json those of the last, for any number of hops"
        )
    found = _flow(graph, chosen, chosen.heads).minimum
    say_json([{"symbol": name, "layers": found[name]} for name in found if name not in graph.known])


def _flow(graph: FactGraph, chosen: Asked, heads: int | None) -> Flow:
    numbers = range(len(graph.facts))
    order = numbers if chosen.order == "forward" else numbers[::-1]
    return flow(graph, order, causal=not chosen.bidirectional, heads=heads)


def _graph(chosen: Asked) -> FactGraph:
    """The look-ups that are asked about."""
    if chosen.facts:
        return parse_facts(chosen.facts)
    if chosen.hops is not None:
        return chain_of_facts(chosen.hops)
    graph = KINDS[chosen.task]().graph()
    if graph is None:
        raise ConfigError(f"the task {chosen.task} is not made of facts; expected one that is")
    return graph


def _refuse_to_draw(what: str, figure: Path | None) -> None:
    """The bounds are formulas; a schedule is simulated, which takes long."""
    if figure:
        raise ConfigError(f"{what} are too many for a figure; expected up to {DRAWN}")
    say(f"the schedule is drawn for up to {DRAWN} hops, not for {what}")


def _range(text: str) -> range:
    """The hops of a table."""
    hops = range_of(text)
    if not hops or hops[0] < 1:
        raise ConfigError(f"--table is {text!r}; expected a range of hops like 1..64")
    return hops


def _print_bounds(graph: FactGraph, chosen: Asked) -> None:
    if graph == chain_of_facts(len(graph.facts)):
        _print_depths(len(graph.facts))
    else:
        say(f"facts: {'; '.join(map(str, graph.facts))}")
    _print_how(chosen)


def _print_depths(hops: int) -> None:
    row = depths(hops)
    room = max(6, len(str(hops)))
    say(
        f"hops                                {row.hops:>{room}}",
        f"Theorem 1 (a lower bound)           {row.theorem_1:>{room}} layers",
        f"exact, attention in both directions {row.bidirectional:>{room}} layers",
        f"exact, causal, last hop first       {row.causal:>{room}} layers",
    )


def _print_how(chosen: Asked) -> None:
    attention = "attention in both directions" if chosen.bidirectional else "causal attention"
    heads = "one head per layer" if chosen.heads == 1 else "heads unlimited"
    say("", f"{attention}, {chosen.order}, {heads}:")


def _print_schedule(graph: FactGraph, chosen: Asked) -> None:
    from hopscope.plots.depth import grid

    found = _flow(graph, chosen, chosen.heads)
    target = graph.facts[-1].value
    layers = ", ".join(
        f"{name} {'never' if when is None else when}"
        for name, when in found.minimum.items()
        if name not in graph.known
    )
    prose(f"layers until the query holds each symbol: {layers}")
    if chosen.heads == 1:
        unlimited = _flow(graph, chosen, None).minimum[target]
        exact = unlimited == found.minimum[target]
        say(f"with one head, {'exact' if exact else f'at most this; at least {unlimited}'}")
    say("", *grid(found, found.schedule(target)).splitlines())
