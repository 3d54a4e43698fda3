"""`hopscope contents`: what every position holds, by layer, or in the course of a training."""

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
    from hopscope.study import Study

    Make = Callable[[], Picture]


@dataclass(frozen=True)
class ContentsArguments(ModelArguments, JsonArguments, FigureArguments):
    """What every role holds of each symbol, layer by layer: read off by linear maps."""

    examples: int | None = None
    """Examples to fit maps on; half as many others mark them. Unset: 1024, over a training 256."""
    over_training: bool = False
    """At every checkpoint: when did each role come to hold what?"""
    figure: Path | None = None
    """Where the figure goes (.svg, .pdf or .png); unset: reports/RUN-contents.svg."""
    out: Path | None = None
    """Also write the numbers to this file, as JSON."""
    sample: int = 0
    """Which examples: another number draws others."""


def contents(chosen: ContentsArguments) -> int:
    if chosen.examples is not None and chosen.examples < 2:
        raise ConfigError(f"--examples is {chosen.examples}; maps are fitted on at least 2")
    if chosen.over_training:
        refuse_unused(chosen, ["step"], "with --over-training")
    examined = chosen.study()
    name = f"{examined.name}-contents{'-over-training' * chosen.over_training}"
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


def _by_layer(examined: "Study", chosen: ContentsArguments) -> tuple["Make", dict[str, Any]]:
    from hopscope.cli.tables import table
    from hopscope.report.contents import (
        brought_rows,
        contents_figure,
        contents_remarks,
        contents_rows,
    )
    from hopscope.report.names import model_title

    found = examined.contents(**_options(chosen))
    if not chosen.json:
        table(*contents_rows(found))
        if brought := brought_rows(found):
            say("")
            table(["head", "brings to", "symbols"], brought)
        say("", *contents_remarks(found))
    title = f"contents: {model_title(examined)}"
    return lambda: contents_figure(found, title), found.to_dict()


def _over_training(examined: "Study", chosen: ContentsArguments) -> tuple["Make", dict[str, Any]]:
    from hopscope.cli.tables import table
    from hopscope.report.contents import story_figure, story_rows
    from hopscope.report.names import model_title

    story = examined.contents_story(**_options(chosen))
    if not chosen.json:
        table(["role", "comes to hold", "at step"], story_rows(story))
    title = f"contents: {model_title(examined)}"
    return lambda: story_figure(story, title), story.to_dict()


def _options(chosen: ContentsArguments) -> dict[str, int]:
    options = {"seed": chosen.sample}
    return options if chosen.examples is None else options | {"examples": chosen.examples}
