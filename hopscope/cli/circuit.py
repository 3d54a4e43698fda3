"""`hopscope circuit show` and `circuit export`: the circuit that `discover` kept."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hopscope.cli.arguments import JsonArguments
from hopscope.cli.output import say, warn
from hopscope.cli.subject import ModelArguments
from hopscope.cli.writable import check_figures
from hopscope.store.files import write_bytes
from hopscope.store.writable import check_files

if TYPE_CHECKING:
    from hopscope.circuits import Circuit
    from hopscope.study import Study

REPORTS = Path("reports")


@dataclass(frozen=True)
class CircuitShowArguments(ModelArguments, JsonArguments):
    """Show the circuit that `discover` found: its heads, its paths, what proves them."""


@dataclass(frozen=True)
class CircuitExportArguments(ModelArguments):
    """Write the circuit that `discover` found to a file."""

    format: Literal[
        "json", "svg", "pdf", "png", "edges", "circuitsvis", "transformer-lens",
        "transformer-lens-legacy",
    ] = "json"  # fmt: skip
    """Our own JSON; a figure; edges as in EAP-IG and MIB; attention of one example for CircuitsVis;
    weights for TransformerLens (safetensors), under native or legacy names."""
    out: Path | None = None
    """Where to write; unset: reports/RUN-circuit.FORMAT."""


def show(chosen: CircuitShowArguments) -> int:
    found = chosen.study().circuit
    from hopscope.circuits.search import DEFAULT
    from hopscope.cli.findings import print_or_say

    print_or_say(found, json=chosen.json)
    if differs := found.differs_from(DEFAULT):
        warn(differs)
    return 0


def export(chosen: CircuitExportArguments) -> int:
    examined = chosen.study()
    found = examined.circuit
    suffix = {"edges": "edges.json", "circuitsvis": "circuitsvis.json"}.get(chosen.format)
    suffix = suffix or chosen.format.replace("transformer-lens", "tl") + (
        ".safetensors" if chosen.format.startswith("transformer") else ""
    )
    path = chosen.out or REPORTS / f"{examined.name}-circuit.{suffix}"
    check = check_figures if chosen.format in ("svg", "pdf", "png") else check_files
    check(path)
    _export(examined, found, chosen.format, path)
    say(f"{chosen.format}: {path}")
    return 0


def _export(examined: "Study", found: "Circuit", kind: str, path: Path) -> None:
    from hopscope.circuits import exam_of, subject_of
    from hopscope.circuits.export import circuitsvis, edges, transformer_lens_weights
    from hopscope.report.circuit import circuit_figure
    from hopscope.report.curves import save_figure

    if kind in ("svg", "pdf", "png"):
        save_figure(circuit_figure(found), path)
    elif kind == "json":
        found.save(path)
    elif kind == "edges":
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
