"""`hopscope depth`: how many layers a question needs, and a schedule that needs no more."""

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from hopscope.cli.arguments import JsonArguments, refuse_unused
from hopscope.cli.drawing import FigureArguments, check_figures, draw
from hopscope.cli.output import say, say_json
from hopscope.configs.tasks import KINDS
from hopscope.errors import ConfigError
from hopscope.facts import FactGraph, chain_of_facts, parse_facts
from hopscope.theory import Flow, depths, flow

if TYPE_CHECKING:
    Kind = str
else:
    Kind = Literal[tuple(KINDS)]

DRAWN = 100
"""Most hops or facts whose schedule is drawn: a second, or three (both directions, one head)."""


@dataclass(frozen=True)
class DepthArguments(JsonArguments, FigureArguments):
    """How many layers a question needs at least, and a schedule of readings that needs no more."""

    hops: int | None = None
    """Hops of a linear chain; unset: 3."""
    facts: tuple[str, ...] = ()
    """Instead of a chain, any acyclic look-ups, each "key[,key…]->value"."""
    task: Kind = "retrieval"
    """The look-ups of a task with its usual settings; conditional: a->x, a->y, (x,y)->z."""
    order: Literal["backward", "forward"] = "backward"
    """Order of the facts in the sequence: last hop first (the paper), or first hop first."""
    bidirectional: bool = False
    """Attention in both directions instead of causal."""
    heads: Annotated[int | None, tyro.conf.arg(metavar="1")] = None
    """1: at most one head per layer; unset: as many as it takes."""
    table: str | None = None
    """Print a table for a range of hops, e.g. 1..64, and nothing else."""
    figure: Path | None = None
    """Also draw which positions share information before any layer (figures 3 and 8)."""


def depth(chosen: DepthArguments) -> int:
    check_figures(chosen, chosen.figure)
    if chosen.table is not None:
        asked = ("hops", "facts", "task", "order", "bidirectional", "heads", "figure")
        refuse_unused(chosen, asked, "with --table")
        from hopscope.cli.tables import print_rows

        print_rows([asdict(depths(hops)) for hops in _range(chosen.table)], {}, json=chosen.json)
        return 0
    _check_asked_once(chosen)
    if chosen.figure and chosen.json:
        raise ConfigError("--json tells what --figure would draw: give one of them")
    if chosen.json:
        return _say_layers(chosen)
    if chosen.hops is not None and chosen.hops > DRAWN:
        _print_depths(chosen.hops)
        _print_how(chosen)
        _refuse_to_draw(f"{chosen.hops:,} hops", chosen)
        return 0
    graph = _graph(chosen)
    _print_bounds(graph, chosen)
    if len(graph.facts) > DRAWN:
        _refuse_to_draw(f"{len(graph.facts):,} facts", chosen)
        return 0
    _print_schedule(graph, chosen)
    if chosen.figure:
        from hopscope.report.depth import shared_information

        say()
        draw(chosen, chosen.figure, lambda: shared_information(graph))
    return 0


def _check_asked_once(chosen: DepthArguments) -> None:
    named = [chosen.hops is not None, bool(chosen.facts), chosen.task != "retrieval"]
    if sum(named) > 1:
        raise ConfigError("give one of --hops, --facts and --task; each says what is asked")


def _say_layers(chosen: DepthArguments) -> int:
    """After how many layers the query holds each symbol, as JSON."""
    graph = chain_of_facts(min(chosen.hops, DRAWN + 1)) if chosen.hops else _graph(chosen)
    if len(graph.facts) > DRAWN:
        raise ConfigError(
            f"--json tells the layer of every symbol, of up to {DRAWN} facts; "
            "--table 500..500 --json those of the last, for any number of hops"
        )
    found = _flow(graph, chosen, chosen.heads).minimum
    say_json([{"symbol": name, "layers": found[name]} for name in found if name not in graph.known])
    return 0


def _flow(graph: FactGraph, chosen: DepthArguments, heads: int | None) -> Flow:
    numbers = range(len(graph.facts))
    order = numbers if chosen.order == "forward" else numbers[::-1]
    return flow(graph, order, causal=not chosen.bidirectional, heads=heads)


def _graph(chosen: DepthArguments) -> FactGraph:
    """The look-ups that are asked about."""
    if chosen.facts:
        return parse_facts(chosen.facts)
    if chosen.hops is not None:
        return chain_of_facts(chosen.hops)
    graph = KINDS[chosen.task]().graph()
    if graph is None:
        raise ConfigError(f"the task {chosen.task} is not made of facts; expected one that is")
    return graph


def _refuse_to_draw(what: str, chosen: DepthArguments) -> None:
    """The bounds are formulas; a schedule is simulated, which takes long."""
    if chosen.figure:
        raise ConfigError(f"{what} are too many for a figure; expected up to {DRAWN}")
    say(f"the schedule is drawn for up to {DRAWN} hops, not for {what}")


def _range(text: str) -> range:
    """The hops of a table."""
    match = re.fullmatch(r"(\d{1,9})\.\.(\d{1,9})", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise ConfigError(f"--table is {text!r}; expected a range of hops like 1..64")
    return range(int(match[1]), int(match[2]) + 1)


def _print_bounds(graph: FactGraph, chosen: DepthArguments) -> None:
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


def _print_how(chosen: DepthArguments) -> None:
    attention = "attention in both directions" if chosen.bidirectional else "causal attention"
    heads = "one head per layer" if chosen.heads == 1 else "heads unlimited"
    say("", f"{attention}, {chosen.order}, {heads}:")


def _print_schedule(graph: FactGraph, chosen: DepthArguments) -> None:
    from hopscope.report.depth import grid

    found = _flow(graph, chosen, chosen.heads)
    target = graph.facts[-1].value
    layers = ", ".join(
        f"{name} {'never' if when is None else when}"
        for name, when in found.minimum.items()
        if name not in graph.known
    )
    say(f"layers until the query holds each symbol: {layers}")
    if chosen.heads == 1:
        unlimited = _flow(graph, chosen, None).minimum[target]
        exact = unlimited == found.minimum[target]
        say(f"with one head, {'exact' if exact else f'at most this; at least {unlimited}'}")
    say("", *grid(found, found.schedule(target)).splitlines())
