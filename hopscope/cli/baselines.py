"""`hopscope baselines`: what EAP-IG, activation patching and direct attribution say of a model."""

from dataclasses import dataclass
from pathlib import Path

from hopscope.cli.arguments import JsonArguments
from hopscope.cli.drawing import FigureArguments, check_figures, draw, figure_path, write_numbers
from hopscope.cli.output import say_json, teller
from hopscope.cli.subject import FoundArguments
from hopscope.errors import ConfigError
from hopscope.store.files import check_files


@dataclass(frozen=True)
class BaselinesArguments(FoundArguments, JsonArguments, FigureArguments):
    """Methods that people use, on the minimal pairs on which the circuit is explained."""

    examples: int = 64
    """Minimal pairs of examples."""
    steps: int = 5
    """EAP-IG: interpolations between own and donor inputs."""
    exact: bool = False
    """Also patch every single arrow, one by one (slow)."""
    sample: int = 0
    """Which examples: another number draws others."""
    figure: Path | None = None
    """Where the figure goes (.svg, .pdf or .png); unset: reports/RUN-baselines.svg."""
    out: Path | None = None
    """Also write all scores to this file, as JSON."""


def baselines(chosen: BaselinesArguments) -> int:
    if chosen.examples < 2 or chosen.steps < 1:
        raise ConfigError(
            f"--examples is {chosen.examples} and --steps is {chosen.steps}; expected at least 2 "
            "and 1"
        )
    examined = chosen.study()
    path = figure_path(chosen.figure, f"{examined.name}-baselines", alone=chosen.json)
    check_figures(chosen, path)
    check_files(chosen.out)
    examined.check_fits(chosen.examples)
    found = examined.baselines(
        chosen.examples, chosen.sample, steps=chosen.steps, exact=chosen.exact
    )
    shown = found.model_dump(mode="json")
    if chosen.json:
        say_json(shown)
    else:
        from hopscope.cli.tables import table
        from hopscope.report.baselines import baselines_rows

        table(*baselines_rows(found))
    tell = teller(json_alone=chosen.json)
    if path is not None:
        from hopscope.report.baselines import baselines_figure

        draw(chosen, path, lambda: baselines_figure(found), tell)
    write_numbers(shown, chosen.out, tell)
    return 0
