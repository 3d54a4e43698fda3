"""`hopscope depth`: how many layers a question needs, and a schedule that needs no more."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from hopscope.cli.arguments import parse
from hopscope.cli.output import say
from hopscope.errors import ConfigError
from hopscope.facts import FactGraph, chain_of_facts, parse_facts
from hopscope.theory import depths, flow


@dataclass(frozen=True)
class DepthArguments:
    """How many layers a question needs at least, and a schedule of readings that needs no more."""

    hops: int | None = None
    """Hops of a linear chain; unset: 3."""
    facts: tuple[str, ...] = ()
    """Instead of a chain, any acyclic look-ups, each "key[,key…]->value"."""
    task: Literal["retrieval", "induction", "conditional"] = "retrieval"
    """induction: one hop; conditional: a->x, a->y, (x,y)->z."""
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


def depth(arguments: Sequence[str]) -> int:
    chosen = parse(DepthArguments, "depth", arguments)
    if chosen.table is not None:
        _print_table(chosen.table)
        return 0
    graph = _graph(chosen)
    _print_bounds(graph, chosen)
    _print_schedule(graph, chosen)
    if chosen.figure:
        from hopscope.report.curves import save_figure
        from hopscope.report.depth import shared_information

        say("", f"figure: {save_figure(shared_information(graph), chosen.figure)}")
    return 0


def _graph(chosen: DepthArguments) -> FactGraph:
    named = [chosen.hops is not None, bool(chosen.facts), chosen.task != "retrieval"]
    if sum(named) > 1:
        raise ConfigError("give one of --hops, --facts and --task; each says what is asked")
    if chosen.facts:
        return parse_facts(chosen.facts)
    if chosen.task == "conditional":
        return parse_facts(("a->x", "a->y", "x,y->z"))
    return chain_of_facts(1 if chosen.task == "induction" else _or_three(chosen.hops))


def _or_three(hops: int | None) -> int:
    return 3 if hops is None else hops


def _print_table(text: str) -> None:
    match = re.fullmatch(r"(\d+)\.\.(\d+)", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise ConfigError(f"--table is {text!r}; expected a range of hops like 1..64")
    say("hops  theorem 1  both directions  causal")
    for hops in range(int(match[1]), int(match[2]) + 1):
        row = depths(hops)
        say(f"{hops:>4}  {row.theorem_1:>9}  {row.bidirectional:>15}  {row.causal:>6}")


def _print_bounds(graph: FactGraph, chosen: DepthArguments) -> None:
    if graph == chain_of_facts(len(graph.facts)):
        row = depths(len(graph.facts))
        say(f"hops                                {row.hops:>6}")
        say(f"Theorem 1 (a lower bound)           {row.theorem_1:>6} layers")
        say(f"exact, attention in both directions {row.bidirectional:>6} layers")
        say(f"exact, causal, last hop first       {row.causal:>6} layers")
    else:
        say(f"facts: {'; '.join(map(str, graph.facts))}")
    attention = "attention in both directions" if chosen.bidirectional else "causal attention"
    heads = "one head per layer" if chosen.heads == 1 else "heads unlimited"
    say("", f"{attention}, {chosen.order}, {heads}:")


def _print_schedule(graph: FactGraph, chosen: DepthArguments) -> None:
    from hopscope.report.depth import grid

    numbers = range(len(graph.facts))
    order = numbers if chosen.order == "forward" else numbers[::-1]
    found = flow(graph, order, causal=not chosen.bidirectional, heads=chosen.heads)
    target = graph.facts[-1].value
    layers = ", ".join(
        f"{name} {'never' if when is None else when}"
        for name, when in found.minimum.items()
        if name not in graph.known
    )
    say(f"layers until the query holds each symbol: {layers}")
    if chosen.heads == 1:
        unlimited = flow(graph, order, causal=not chosen.bidirectional).minimum[target]
        exact = unlimited == found.minimum[target]
        say(f"with one head, {'exact' if exact else f'at most this; at least {unlimited}'}")
    say("", f"{grid(found, found.schedule(target))}")
