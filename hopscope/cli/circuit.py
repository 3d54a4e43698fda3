"""`hopscope circuit show` and `circuit export`: the circuit that `discover` kept."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hopscope.cli.arguments import JsonArguments
from hopscope.cli.output import say, warn
from hopscope.cli.subject import FoundArguments
from hopscope.cli.writable import check_figures
from hopscope.errors import ConfigError
from hopscope.store.files import write_bytes
from hopscope.store.writable import check_files

if TYPE_CHECKING:
    from hopscope.circuits import Circuit
    from hopscope.study import Study

REPORTS = Path("reports")
FIGURES = ("svg", "pdf", "png")


@dataclass(frozen=True)
class CircuitShowArguments(FoundArguments, JsonArguments):
    """Show the circuit that `discover` found: its heads, its paths, what proves them. Instead of a
    run, the name of a circuit's file (ending in .json) will do.
    """


@dataclass(frozen=True)
class CircuitExportArguments(FoundArguments):
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
    found = _of_file(chosen.run) or chosen.study().circuit
    from hopscope.circuits.search import DEFAULT
    from hopscope.cli.findings import print_or_say

    print_or_say(found, json=chosen.json)
    if differs := found.differs_from(DEFAULT):
        warn(differs)
    return 0


def _of_file(name: str) -> "Circuit | None":
    """The circuit in a file, if the name is that of one."""
    path = Path(name)
    if path.suffix != ".json" or not path.is_file():
        return None
    from hopscope.circuits import Circuit

    return Circuit.load(path)


def export(chosen: CircuitExportArguments) -> int:
    if alone := _of_file(chosen.run):
        return _export_alone(alone, chosen)
    examined = chosen.study()
    found = examined.circuit
    suffix = {"edges": "edges.json", "circuitsvis": "circuitsvis.json"}.get(chosen.format)
    suffix = suffix or chosen.format.replace("transformer-lens", "tl") + (
        ".safetensors" if chosen.format.startswith("transformer") else ""
    )
    path = chosen.out or REPORTS / f"{examined.name}-circuit.{suffix}"
    check = check_figures if chosen.format in FIGURES else check_files
    check(path)
    _write(found, chosen.format, path, examined)
    say(f"{chosen.format}: {path}")
    return 0


def _export_alone(found: "Circuit", chosen: CircuitExportArguments) -> int:
    """A circuit without its model."""
    if chosen.format not in (*FIGURES, "json"):
        raise ConfigError(
            f"--format is {chosen.format}, for which the model is needed; name its run, and this "
            f"file as --circuit-file {chosen.run}"
        )
    path = chosen.out or REPORTS / f"{Path(chosen.run).stem}-circuit.{chosen.format}"
    (check_figures if chosen.format in FIGURES else check_files)(path)
    _write(found, chosen.format, path)
    say(f"{chosen.format}: {path}")
    return 0


def _write(found: "Circuit", kind: str, path: Path, examined: "Study | None" = None) -> None:
    """In a format; all but JSON and figures need the model."""
    from hopscope.circuits import exam_of, subject_of
    from hopscope.circuits.export import circuitsvis, edges, transformer_lens_weights
    from hopscope.report.circuit import circuit_figure
    from hopscope.report.curves import save_figure

    if kind in FIGURES:
        save_figure(circuit_figure(found), path)
        return
    if kind == "json":
        found.save(path)
        return
    assert examined is not None
    if kind == "edges":
        write_bytes(path, json.dumps(edges(found, examined.model)).encode())
    elif kind == "circuitsvis":
        shown = circuitsvis(subject_of(examined.model), exam_of(examined.task, 1))
        write_bytes(path, json.dumps(shown).encode())
    else:
        import safetensors.torch

        native = kind == "transformer-lens"
        weights = transformer_lens_weights(examined.model, native)
        contiguous = {name: tensor.contiguous() for name, tensor in weights.items()}
        write_bytes(path, safetensors.torch.save(contiguous))
