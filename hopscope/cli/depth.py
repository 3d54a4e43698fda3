"""`hopscope depth`: the least number of layers for a question, and a schedule with that many."""

from dataclasses import asdict
from functools import partial

import click

from hopscope.cli import flags
from hopscope.cli.commands import refuse_word
from hopscope.cli.options import command, option, refuse_unused
from hopscope.cli.output import prose, say, say_json
from hopscope.cli.results import Destination, shown_or_drawn
from hopscope.cli.tables import print_rows
from hopscope.configs.tasks import TASK_KINDS
from hopscope.errors import ConfigError
from hopscope.facts import FactGraph, chain_of_facts, parse_facts
from hopscope.theory import Flow, depths, flow

DRAWN = 100
"""Largest number of hops or facts whose schedule is drawn.

At this size it takes one second, or three with attention in both directions and one head.
"""

BY_DISTANCE = (
    "in a sequence of tokens a head can also find a position by its distance: these numbers leave "
    "that out, and trained models may answer with fewer layers (docs/theory.md)"
)


@command(
    click.argument("facts", nargs=-1, metavar="[FACT]…"),
    option("--hops N", "Hops of a linear chain (default: 3)."),
    option("--task", "Take the look-ups of a task with its usual settings.", choices=[*TASK_KINDS],
           default="retrieval"),
    option("--order", "Order of the facts: last hop first (as in the paper), or first hop first.",
           choices=["backward", "forward"], default="backward"),
    option("--bidirectional", "Attention in both directions instead of causal."),
    option("--single-head", "At most one head per layer (default: as many as needed)."),
    option("--table FIRST..LAST", "Print a table for a range of hops, such as 1..64, and nothing "
           "else."),
    shown_or_drawn,
)  # fmt: skip
def depth(
    facts: tuple[str, ...], hops: int | None, task: str, order: str, bidirectional: bool,
    single_head: bool, table: str | None, to: Destination,
) -> None:  # fmt: skip
    """Show the least number of layers that a question needs, and a schedule with that many.

    A question is a chain (--hops), a task, or any acyclic look-ups: each FACT is
    "key[,key…]->value". --figure draws which positions share information before any layer. With
    --single-head some numbers are known only as bounds: from "at_least" to "layers" in --json.
    """
    to.check()
    for number in filter(str.isdecimal, facts):  # a fact has an arrow
        refuse_word(click.get_current_context(), number)
    if table is not None:
        refuse_unused("with --table", "--hops", "--task", "--order", "--bidirectional",
                      "--single-head", "--figure")  # fmt: skip
        print_rows([asdict(depths(each)) for each in _range(table)], {}, json=to.json)
        return
    if to.figure and to.json:
        raise ConfigError("--json prints what --figure would draw: give one of them")
    graph = _graph(facts, hops, task)
    count = hops or len(graph.facts)
    if to.json and count > DRAWN:
        raise ConfigError(
            f"--json prints the layer of every symbol, of up to {DRAWN} facts; "
            "--table 500..500 --json those of the last, for any number of hops"
        )
    numbers = range(len(graph.facts))
    flowing = partial(
        flow, graph, numbers if order == "forward" else numbers[::-1], causal=not bidirectional
    )
    if not to.json:
        _print_bounds(graph, count)
        if TASK_KINDS[task]().interface().tokens:
            prose(BY_DISTANCE)
        attention = "attention in both directions" if bidirectional else "causal attention"
        say(
            "",
            f"{attention}, {order}, {'one head per layer' if single_head else 'heads unlimited'}:",
        )
    if count > DRAWN:  # the bounds are formulas; a schedule is simulated, which takes long
        what = f"{count:,} {'hops' if hops else 'facts'}"
        if to.figure:
            raise ConfigError(f"{what} are too many for a figure; expected up to {DRAWN}")
        say(f"the schedule is drawn for up to {DRAWN} hops, not for {what}")
        return
    _show_schedule(graph, flowing, json=to.json, single_head=single_head)
    if to.figure:
        from hopscope.plots.depth import shared_information

        say()
        to.draw(to.figure, lambda: shared_information(graph))


def _graph(facts: tuple[str, ...], hops: int | None, task: str) -> FactGraph:
    """Return the facts of the question; a chain is cut to one hop more than can be drawn."""
    if sum([hops is not None, bool(facts), task != "retrieval"]) > 1:
        raise ConfigError("give one of --hops, --task and FACT; each says what is asked")
    if facts:
        return parse_facts(facts)
    if hops is not None:
        return chain_of_facts(min(hops, DRAWN + 1))
    graph = TASK_KINDS[task]().graph()
    if graph is None:
        raise ConfigError(f"the task {task} is not made of facts; expected one that is")
    return graph


def _range(text: str) -> range:
    """Parse the range of hops of --table."""
    hops = flags.range_of(text)
    if not hops or hops[0] < 1:
        raise ConfigError(f"--table is {text!r}; expected a range of hops like 1..64")
    return hops


def _print_bounds(graph: FactGraph, hops: int) -> None:
    """Print the bounds of a chain; for other facts, print the facts."""
    if graph != chain_of_facts(len(graph.facts)):
        say(f"facts: {'; '.join(map(str, graph.facts))}")
        return
    row = depths(hops)
    room = max(6, len(str(hops)))
    say(
        f"hops                                {row.hops:>{room}}",
        f"Theorem 1 (a lower bound)           {row.theorem_1:>{room}} layers",
        f"exact, attention in both directions {row.bidirectional:>{room}} layers",
        f"exact, causal, last hop first       {row.causal:>{room}} layers",
    )


def _show_schedule(
    graph: FactGraph, flowing: "partial[Flow]", *, json: bool, single_head: bool
) -> None:
    """Print after how many layers the query holds each symbol; without `json` also a schedule."""
    found = flowing(heads=1 if single_head else None)
    least = (flowing(heads=None) if single_head else found).minimum
    layers = {name: when for name, when in found.minimum.items() if name not in graph.known}
    if json:
        rows = [{"symbol": s, "layers": at, "at_least": least[s]} for s, at in layers.items()]
        say_json(rows)
        return
    from hopscope.plots.depth import grid

    told = [f"{name} {_between(least[name], when)}" for name, when in layers.items()]
    prose(f"layers until the query holds each symbol: {', '.join(told)}")
    if single_head:
        exact = all(least[name] == when for name, when in layers.items())
        bounds = "at least the first of two numbers, at most the second; one number is exact"
        prose(f"with one head, {'exact' if exact else bounds}")
    say("", *grid(found, found.schedule(graph.facts[-1].value)).splitlines())


def _between(least: int | None, most: int | None) -> str:
    """Return the bounds on a symbol's layers as text: one number if both bounds agree."""
    if most is None:
        return "never"
    return f"{most}" if least == most else f"{least} to {most}"
