"""`hopscope patch`: which symbol each path of a circuit moves, and what its positions hold."""

from dataclasses import dataclass
from pathlib import Path

from hopscope.cli.arguments import JsonArguments
from hopscope.cli.drawing import FigureArguments, check_figures, draw, figure_path
from hopscope.cli.output import say, say_json, teller
from hopscope.cli.subject import ModelArguments
from hopscope.errors import ConfigError


@dataclass(frozen=True)
class PatchArguments(ModelArguments, JsonArguments, FigureArguments):
    """What moves in the circuit that `discover` found: patched arrow by arrow, symbol by symbol."""

    examples: int = 64
    """Pairs of examples to patch."""
    sample: int = 0
    """Which examples: another number draws others."""
    figure: Path | None = None
    """Where the figure goes (.svg, .pdf or .png); unset: reports/RUN-circuit.svg."""
    out: Path | None = None
    """Keep the circuit with its account in this file (JSON), and not with the run."""


def patch(chosen: PatchArguments) -> int:
    if chosen.examples < 2:
        raise ConfigError(f"--examples is {chosen.examples}; expected at least 2")
    examined = chosen.study()
    path = figure_path(chosen.figure, f"{examined.name}-circuit", alone=chosen.json)
    check_figures(chosen, path)
    examined.check_fits(chosen.examples)
    found = examined.patch(chosen.examples, chosen.sample, chosen.out)
    if chosen.json:
        say_json(found.to_dict())
    else:
        from hopscope.cli.circuit_text import print_account

        print_account(found)
        say("", _kept(chosen.out, examined.run.folder.gallery))
    if path is not None:
        from hopscope.report.circuit import circuit_figure
        from hopscope.report.names import model_title

        draw(
            chosen,
            path,
            lambda: circuit_figure(found, of=f"circuit: {model_title(examined)}"),
            teller(json_alone=chosen.json),
        )
    return 0


def _kept(out: Path | None, gallery: bool) -> str:
    if out is None and gallery:
        return "not kept, as the gallery is only read: --out FILE keeps it in a file"
    return f"kept {out or 'with the run, as its circuit'}"
