"""`hopscope compare`: two runs side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from hopscope.cli.arguments import JsonArguments, StoreArguments
from hopscope.cli.drawing import FigureArguments, check_figures, draw
from hopscope.cli.output import say, say_json, teller
from hopscope.store import Store

if TYPE_CHECKING:
    from hopscope.circuits.pattern import Head
    from hopscope.study.circuits import Circuits
    from hopscope.study.comparison import Comparison, Ended


@dataclass(frozen=True)
class CompareArguments(StoreArguments, JsonArguments, FigureArguments):
    """Two runs side by side: in which settings they differ, how the loss of each hop went, what
    their circuits have in common (those that `discover` kept, of the first model of each).
    """

    first: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """A run: its name, a tag, or enough of the name to be unique; or gallery/NAME."""
    second: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Another run of the same kind."""
    figure: Path | None = None
    """Also draw the losses of both, a panel for each hop (.svg, .pdf or .png)."""


def compare(chosen: CompareArguments) -> int:
    check_figures(chosen, chosen.figure)
    store = Store(chosen.store)
    pair = store.find(chosen.first), store.find(chosen.second)  # asked before torch is loaded
    from hopscope.study import compare as compared

    found = compared(*pair, store)
    if chosen.json:
        say_json(found.to_dict())
    else:
        _print(found)
    if chosen.figure:
        from hopscope.report.comparison import comparison_figure

        tell = teller(json_alone=chosen.json)
        draw(chosen, chosen.figure, lambda: comparison_figure(found), tell)
    return 0


def _print(found: "Comparison") -> None:
    from hopscope.cli.tables import setting, table

    names = found.names
    rows = [(one.field, setting(one.first), setting(one.second)) for one in found.settings]
    if rows:
        table(("setting", *names), rows)
    else:
        say("the settings are the same")
    say()
    losses = [
        (hop, which, *(_told(ended, which) for ended in both))
        for hop, both in found.losses.items()
        for which in ("training", "validation", "learned at")
        if any(_told(ended, which) for ended in both)
    ]
    if losses:
        table(("loss", "", *names), losses)
    else:
        say("neither has losses")
    say()
    if found.circuits is not None:
        _print_circuits(found.circuits, names)
    for line in found.without:
        say(line)


def _told(ended: "Ended | None", which: str) -> str:
    """A cell of the table of losses."""
    from hopscope.cli.tables import told

    if ended is None:
        return ""
    if which == "learned at":
        return told(ended.learned) if ended.learned else ""
    value = ended.train if which == "training" else ended.validation
    return "" if value is None else f"{value:.4f}"


def _print_circuits(circuits: "Circuits", names: tuple[str, str]) -> None:
    """Every step with the heads that take it; then the parts, as numbers and by name."""
    from hopscope.cli.tables import table

    rows = [(str(step), _heads(step.first), _heads(step.second)) for step in circuits.steps]
    table(("step of the circuit", *names), rows)
    say()
    common, first, second = circuits.common, circuits.first, circuits.second
    table(("component of", "heads and what they do"), circuits.components(names))
    say(
        "",
        f"{sum(step.common for step in circuits.steps)} of {len(circuits.steps)} steps are in both "
        f"circuits; components: {len(common)} in both, {len(first)} in {names[0]} alone, "
        f"{len(second)} in {names[1]} alone",
    )


def _heads(heads: "Sequence[Head]") -> str:
    return " ".join(f"{layer}.{head}" for layer, head in heads) or "-"
