"""`hopscope circuit show` and `circuit export`: the circuit that `discover` kept."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hopscope.cli.arguments import JsonArguments, refuse_unused
from hopscope.cli.drawing import REPORTS, FigureArguments, check_figures, draw
from hopscope.cli.output import say, warn
from hopscope.cli.subject import FoundArguments
from hopscope.errors import ConfigError
from hopscope.store.files import check_files, write_bytes

if TYPE_CHECKING:
    from hopscope.circuits import Circuit
    from hopscope.study import RunStudy

FIGURES = ("svg", "pdf", "png")


@dataclass(frozen=True)
class CircuitShowArguments(FoundArguments, JsonArguments):
    """Show the circuit that `discover` found: the verdict, its components, how faithful it is.
    Instead of a run, the name of a circuit's file (ending in .json) will do.
    """

    diagnose: bool = False
    """Also compute flow along its paths, backup heads, and what restoring single heads gains."""


@dataclass(frozen=True)
class CircuitExportArguments(FoundArguments, FigureArguments):
    """Write the circuit that `discover` found to a file. Instead of a run, the name of a circuit's
    file (ending in .json) will do for JSON and figures.
    """

    format: Literal[
        "json", "svg", "pdf", "png", "edges", "circuitsvis", "transformer-lens",
        "transformer-lens-legacy",
    ] = "json"  # fmt: skip
    """Our own JSON; a figure; edges as in EAP-IG and MIB; attention of one example for CircuitsVis;
    weights for TransformerLens (safetensors), under native or legacy names."""
    out: Path | None = None
    """Where to write; unset: reports/RUN-circuit.FORMAT."""


def show(chosen: CircuitShowArguments) -> int:
    found = _of_file(chosen) or chosen.study().circuit
    from hopscope.circuits.discovery import DEFAULT
    from hopscope.cli.circuit_text import print_or_say

    print_or_say(found, json=chosen.json)
    if chosen.diagnose:
        refuse_unused(chosen, ("json",), "with --diagnose")
        say(str(chosen.study().diagnose()))
    if differs := found.differs_from(DEFAULT):
        warn(differs)
    return 0


def _of_file(chosen: FoundArguments) -> "Circuit | None":
    """The circuit in a file, if the run's name is that of one."""
    path = Path(chosen.run)
    if path.suffix != ".json" or not path.is_file():
        return None
    refuse_unused(chosen, ("seed", "step", "circuit_file", "store"), "beside a circuit's file")
    from hopscope.circuits import Circuit

    return Circuit.load(path)


def export(chosen: CircuitExportArguments) -> int:
    if chosen.format not in FIGURES:
        check_figures(chosen, None)
    if alone := _of_file(chosen):
        return _export_alone(alone, chosen)
    examined = chosen.study()
    found = examined.circuit
    suffix = {"edges": "edges.json", "circuitsvis": "circuitsvis.json"}.get(chosen.format)
    suffix = suffix or chosen.format.replace("transformer-lens", "tl") + (
        ".safetensors" if chosen.format.startswith("transformer") else ""
    )
    path = chosen.out or REPORTS / f"{examined.name}-circuit.{suffix}"
    _write(found, chosen, path, examined)
    return 0


def _export_alone(found: "Circuit", chosen: CircuitExportArguments) -> int:
    """A circuit without its model."""
    if chosen.format not in (*FIGURES, "json"):
        raise ConfigError(
            f"--format is {chosen.format}, for which the model is needed; name its run, and this "
            f"file as --circuit-file {chosen.run}"
        )
    path = chosen.out or REPORTS / f"{Path(chosen.run).stem}-circuit.{chosen.format}"
    _write(found, chosen, path)
    return 0


def _write(
    found: "Circuit", chosen: CircuitExportArguments, path: Path, examined: "RunStudy | None" = None
) -> None:
    """In a format; all but JSON and figures need the model."""
    kind = chosen.format
    if kind in FIGURES:
        check_figures(chosen, path)
        from hopscope.report.circuit import circuit_figure
        from hopscope.report.names import model_title

        title = f"circuit: {model_title(examined)}" if examined else ""
        draw(chosen, path, lambda: circuit_figure(found, of=title))
        return
    check_files(path)
    from hopscope.circuits import adapter_of, exam_of
    from hopscope.circuits.export import circuitsvis, edges, transformer_lens_weights

    if kind == "json":
        found.save(path)
    elif kind == "edges":
        assert examined is not None
        write_bytes(path, json.dumps(edges(found, examined.model)).encode())
    elif kind == "circuitsvis":
        assert examined is not None
        shown = circuitsvis(adapter_of(examined.model), exam_of(examined.task, 1))
        write_bytes(path, json.dumps(shown).encode())
    else:
        import safetensors.torch

        assert examined is not None
        native = kind == "transformer-lens"
        weights = transformer_lens_weights(examined.model, native)
        contiguous = {name: tensor.contiguous() for name, tensor in weights.items()}
        write_bytes(path, safetensors.torch.save(contiguous))
    say(f"{kind}: {path}")
