"""`hopscope maps`, `discover`, `emergence` and `circuit`."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hopscope.cli.arguments import JsonArguments
from hopscope.cli.output import note, say, say_json, warn
from hopscope.cli.subject import ModelArguments
from hopscope.cli.writable import check_figures
from hopscope.errors import ConfigError
from hopscope.store.files import write_bytes
from hopscope.store.writable import check_files

if TYPE_CHECKING:
    from hopscope.circuits import Circuit
    from hopscope.study import Study

REPORTS = Path("reports")
EXAMPLES = 10_000
"""Examples one of which can be drawn; all before it are made as well."""


@dataclass(frozen=True)
class MapsArguments(ModelArguments, JsonArguments):
    """Draw the attention of every head between roles, or of one example position by position."""

    examples: int = 256
    """Examples to average over."""
    example: int | None = None
    """Draw this single example instead, by number."""
    figure: Path | None = None
    """Where the figure goes (.svg, .pdf or .png); unset: reports/RUN-maps.svg."""
    out: Path | None = None
    """Also write the numbers to this file, as JSON."""


@dataclass(frozen=True)
class DiscoverArguments(ModelArguments, JsonArguments):
    """Find the circuit of a model: what every head does, proved by ablation."""

    examples: int = 128
    """Examples of the search; it is measured on two and a half times as many others."""
    sample: int = 0
    """Which examples: another number draws others."""
    force: bool = False
    """Search a model that has not learned its task, too."""
    all: bool = False
    """Of a fleet, every member, a line for each."""
    repeat: int = 1
    """Search this many samples, and say how often each path is found."""
    figure: Path | None = None
    """Where the figure goes (.svg, .pdf or .png); unset: reports/RUN-circuit.svg."""
    out: Path | None = None
    """Keep the circuit in this file (JSON), and not with the run."""


@dataclass(frozen=True)
class EmergenceArguments(ModelArguments, JsonArguments):
    """When the paths of the circuit appeared during training."""

    examples: int = 32
    """Sequences to average attention over (§9.1: 32)."""
    all: bool = False
    """Of a fleet, every member, side by side (after `discover --all`)."""
    figure: Path | None = None
    """Where the figure goes; unset: reports/RUN-emergence.svg. Beside it lie the order of the
    paths, and the circuit in the colours of their time."""
    out: Path | None = None
    """Also write the numbers to this file, as JSON."""


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


def maps(chosen: MapsArguments) -> int:
    examined = chosen.study()
    from hopscope.circuits import exam_of, subject_of
    from hopscope.circuits.export import circuitsvis
    from hopscope.report.curves import save_figure
    from hopscope.report.maps import example_figure, role_maps_figure

    what = "maps" if chosen.example is None else f"example-{chosen.example}"
    path = chosen.figure or REPORTS / f"{examined.name}-{what}.svg"
    check_figures(path)
    check_files(*filter(None, [chosen.out]))
    if chosen.example is not None:
        if not 0 <= chosen.example < EXAMPLES:
            raise ConfigError(
                f"--example is {chosen.example}; expected a number from 0 to {EXAMPLES - 1:,}"
            )
        exam = exam_of(examined.task, chosen.example + 1)
        shown = circuitsvis(subject_of(examined.model), exam, chosen.example)
        figure = example_figure(shown["attention"], shown["tokens"])
    else:
        found = examined.maps(chosen.examples)
        figure, shown = role_maps_figure(found, examined.heads_of_circuit()), found.to_dict()
    tell = note if chosen.json else say
    tell(f"{what} of {examined.name} at step {examined.step:,}: {save_figure(figure, path)}")
    if chosen.json:
        say_json(shown)
    _write_numbers(shown, chosen.out, tell)
    return 0


def _write_numbers(content: object, path: Path | None, tell: Callable[[object], None]) -> None:
    """Keep in a file what a figure shows."""
    if path:
        write_bytes(path, json.dumps(content).encode())
        tell(f"numbers: {path}")


def discover(chosen: DiscoverArguments) -> int:
    if chosen.repeat < 1:
        raise ConfigError(f"--repeat is {chosen.repeat}; expected at least 1")
    if chosen.repeat > 1 and (chosen.json or chosen.all):
        raise ConfigError("--repeat prints a table of its own: leave out --json and --all")
    options = {"examples": chosen.examples, "seed": chosen.sample, "force": chosen.force}
    if chosen.all:
        from hopscope.cli.fleet import discover_all

        if chosen.out or chosen.figure:
            raise ConfigError(
                "--all keeps every circuit with the run: leave out --out and --figure"
            )
        discover_all(chosen, _progress(), json=chosen.json, **options)
        return 0
    examined = chosen.study()
    path = chosen.figure or REPORTS / f"{examined.name}-circuit.svg"
    check_figures(path)
    examined.check_keeping(chosen.out)
    examined.check_fits(chosen.examples)
    _say_if_unlucky(examined)
    started = time.monotonic()
    circuit = examined.discover(_progress(), chosen.out, **options)
    tell = note if chosen.json else say
    _print_or_say(circuit, chosen.json)
    kept = chosen.out or "with the run, as its circuit"
    tell(f"found in {time.monotonic() - started:.0f} s; kept {kept}")
    from hopscope.report.circuit import circuit_figure
    from hopscope.report.curves import save_figure

    tell(f"figure: {save_figure(circuit_figure(circuit), path)}")
    if chosen.repeat > 1:
        _print_stability(examined, circuit, chosen)
    return 0


def _print_or_say(circuit: "Circuit", json: bool) -> None:
    """In words, or as JSON."""
    from hopscope.cli.findings import print_circuit

    if json:
        say_json(circuit.to_dict())
    else:
        print_circuit(circuit)
        say()


def emergence(chosen: EmergenceArguments) -> int:
    if chosen.all:
        from hopscope.cli.fleet import emergence_all

        emergence_all(chosen, chosen.examples, json=chosen.json)
        return 0
    examined = chosen.study()
    found = examined.circuit
    path = chosen.figure or REPORTS / f"{examined.name}-emergence.svg"
    order, coloured = _beside(path, "order"), _beside(path, "circuit-emergence")
    check_figures(path, order, coloured)
    check_files(*filter(None, [chosen.out]))
    story = examined.emergence(chosen.examples)
    from hopscope.cli.findings import print_emergence
    from hopscope.report.circuit import circuit_figure
    from hopscope.report.curves import save_figure
    from hopscope.report.emergence import emergence_figure, order_figure

    tell = note if chosen.json else say
    if chosen.json:
        say_json(story.to_dict())
    else:
        print_emergence(story)
        say()
    tell(f"figures: {save_figure(emergence_figure(story), path)}")
    tell(f"         {save_figure(order_figure(story), order)}")
    tell(f"         {save_figure(circuit_figure(found, story), coloured)}")
    _write_numbers(story.to_dict(), chosen.out, tell)
    return 0


def _beside(path: Path, name: str) -> Path:
    """A figure that goes with the one of the emergence; never that of `discover`."""
    return path.with_name(f"{path.stem.removesuffix('-emergence')}-{name}{path.suffix}")


def show(chosen: CircuitShowArguments) -> int:
    found = chosen.study().circuit
    from hopscope.circuits.search import DEFAULT

    _print_or_say(found, chosen.json)
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


def _print_stability(examined: "Study", first: "Circuit", chosen: DiscoverArguments) -> None:
    """How often each path is found on other samples."""
    from collections import Counter

    from hopscope.circuits import discover as search
    from hopscope.cli.tables import table

    seen = Counter(first.paths)
    model = examined.model
    for sample in range(chosen.sample + 1, chosen.sample + chosen.repeat):
        found = search(
            model, examined.task, examples=chosen.examples, seed=sample, force=chosen.force
        )
        seen.update(found.paths)
    rows = [(str(path), f"{count} of {chosen.repeat}") for path, count in sorted(seen.items())]
    table(["path", "found"], rows, title=f"\nin {chosen.repeat} searches, each on its own sample")


def _say_if_unlucky(examined: "Study") -> None:
    """At a constant learning rate the last step may sit on a spike."""
    calm = examined.calmest()
    now, then = examined.validation_loss(), calm.validation_loss()
    if now is not None and then is not None and now > 3 * then:
        say(
            f"note: the loss at step {examined.step:,} is {now:.3f}, at {calm.step:,} it was "
            f"{then:.3f}: --step {calm.step} examines that checkpoint"
        )


def _progress() -> Callable[[str], None]:
    started = time.monotonic()

    def say(what: str) -> None:
        note(f"[{time.monotonic() - started:5.1f} s] {what}")

    return say
