"""`hopscope probe`: which symbols can be read at each role, by layer or over a training."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hopscope.cli.arguments import JsonArguments, refuse_unused
from hopscope.cli.drawing import FigureArguments, check_figures, draw, figure_path, write_numbers
from hopscope.cli.output import say, say_json, teller
from hopscope.cli.subject import ModelArguments
from hopscope.errors import ConfigError
from hopscope.store.files import check_files

if TYPE_CHECKING:
    from hopscope.report.look import Picture
    from hopscope.study import RunStudy

    Make = Callable[[], Picture]


@dataclass(frozen=True)
class ProbeArguments(ModelArguments, JsonArguments, FigureArguments):
    """Fit linear probes: how much of each symbol can be read at each role after every layer."""

    examples: int | None = None
    """Examples to fit maps on; half as many others score them (default: 1024, over a training
    256)."""
    over_training: bool = False
    """Probe every checkpoint: when did each symbol become decodable?"""
    figure: Path | None = None
    """Where the figure goes (.svg, .pdf or .png; default: reports/RUN-probe.svg)."""
    out: Path | None = None
    """Also write the numbers to this file, as JSON."""
    sample: int = 0
    """Which examples: another number draws others."""


def probe(chosen: ProbeArguments) -> int:
    if chosen.examples is not None and chosen.examples < 2:
        raise ConfigError(f"--examples is {chosen.examples}; maps are fitted on at least 2")
    if chosen.over_training:
        refuse_unused(chosen, ["step"], "with --over-training")
    examined = chosen.study()
    name = f"{examined.name}-probe{'-over-training' * chosen.over_training}"
    path = figure_path(chosen.figure, name, alone=chosen.json)
    check_figures(chosen, path)
    check_files(chosen.out)
    measure = _over_training if chosen.over_training else _by_layer
    make, shown = measure(examined, chosen)
    if chosen.json:
        say_json(shown)
    tell = teller(json_alone=chosen.json)
    if path is not None:
        draw(chosen, path, make, tell)
    write_numbers(shown, chosen.out, tell)
    return 0


def _by_layer(examined: "RunStudy", chosen: ProbeArguments) -> tuple["Make", dict[str, Any]]:
    from hopscope.cli.tables import table
    from hopscope.report.names import model_title
    from hopscope.report.probe import (
        added_rows,
        probe_figure,
        probe_remarks,
        probe_rows,
    )

    found = examined.probe(**_options(chosen))
    if not chosen.json:
        table(*probe_rows(found))
        if added := added_rows(found):
            say("")
            table(["head", "adds to", "symbols"], added)
        say("", *probe_remarks(found))
    title = f"probe: {model_title(examined)}"
    return lambda: probe_figure(found, title), found.to_dict()


def _over_training(examined: "RunStudy", chosen: ProbeArguments) -> tuple["Make", dict[str, Any]]:
    from hopscope.cli.tables import table
    from hopscope.report.names import model_title
    from hopscope.report.probe import history_figure, history_rows

    history = examined.probe_history(**_options(chosen))
    if not chosen.json:
        table(["role", "symbol", "decodable from step"], history_rows(history))
    title = f"probe: {model_title(examined)}"
    return lambda: history_figure(history, title), history.to_dict()


def _options(chosen: ProbeArguments) -> dict[str, int]:
    options = {"seed": chosen.sample}
    return options if chosen.examples is None else options | {"examples": chosen.examples}
