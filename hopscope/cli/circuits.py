"""`hopscope maps`, `discover` and `emergence`."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hopscope.cli.arguments import JsonArguments, refuse_unused
from hopscope.cli.drawing import FigureArguments, check_figures, draw, figure_path, write_numbers
from hopscope.cli.output import note, say, say_json, teller
from hopscope.cli.subject import FoundArguments, ModelArguments
from hopscope.errors import ConfigError
from hopscope.store.files import check_files

if TYPE_CHECKING:
    from hopscope.circuits.emergence import Emergence
    from hopscope.report.look import Picture
    from hopscope.study import RunStudy

EXAMPLES = 10_000
"""Examples one of which can be drawn; all before it are made as well."""


@dataclass(frozen=True)
class MapsArguments(FoundArguments, JsonArguments, FigureArguments):
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
class DiscoverArguments(ModelArguments, JsonArguments, FigureArguments):
    """Find the circuit of a model: what its heads attend to, and what is lost without it."""

    examples: int = 128
    """Examples of the search; the circuit is measured on 320 others."""
    sample: int = 0
    """Which examples: another number draws others."""
    force: bool = False
    """Search even if the model has not learned its task."""
    all: bool = False
    """All seeds of the run's recipe, a line for each."""
    repeat: int = 1
    """Number of independent searches, each on other examples: the share that finds a component is
    its stability."""
    figure: Path | None = None
    """Where the figure goes (.svg, .pdf or .png); unset: reports/RUN-circuit.svg."""
    out: Path | None = None
    """Keep the circuit in this file (JSON), and not with the run."""


@dataclass(frozen=True)
class EmergenceArguments(FoundArguments, JsonArguments, FigureArguments):
    """When the paths of the circuit appeared during training."""

    examples: int = 32
    """Sequences to average attention over (§9.1: 32)."""
    all: bool = False
    """All seeds of the run's recipe, side by side (after `discover --all`)."""
    figure: Path | None = None
    """Where the figure goes; unset: reports/RUN-emergence.svg. Beside it lie the order of the
    paths, and the circuit in the colours of their time. With --all: FIGURE-seed-N for each member,
    and none if unset."""
    out: Path | None = None
    """Also write the numbers to this file, as JSON; with --all, a list of all members."""


def maps(chosen: MapsArguments) -> int:
    examined = chosen.study()
    from hopscope.circuits import adapter_of, exam_of
    from hopscope.circuits.export import circuitsvis
    from hopscope.report.maps import example_figure, role_maps_figure
    from hopscope.report.names import model_title

    what = "maps" if chosen.example is None else f"example-{chosen.example}"
    path = figure_path(chosen.figure, f"{examined.name}-{what}", alone=chosen.json)
    check_figures(chosen, path)
    check_files(chosen.out)
    if chosen.example is not None:
        refuse_unused(chosen, ("examples", "circuit_file"), "with --example")
        if not 0 <= chosen.example < EXAMPLES:
            raise ConfigError(
                f"--example is {chosen.example}; expected a number from 0 to {EXAMPLES - 1:,}"
            )
        exam = exam_of(examined.task, chosen.example + 1)
        shown = circuitsvis(adapter_of(examined.model), exam, chosen.example)
        title = f"example {chosen.example}: {model_title(examined)}"

        def make() -> "Picture":
            return example_figure(shown["attention"], shown["tokens"], title)
    else:
        found = examined.attention(chosen.examples)
        shown, used = found.to_dict(), examined.heads_of_circuit()

        def make() -> "Picture":
            return role_maps_figure(found, used, f"role maps: {model_title(examined)}")

    tell = teller(json_alone=chosen.json)
    if chosen.json:
        say_json(shown)
    if path:
        draw(chosen, path, make, tell)
    write_numbers(shown, chosen.out, tell)
    return 0


def discover(chosen: DiscoverArguments) -> int:
    _check_discovery(chosen)
    options: dict[str, int | bool] = {
        "examples": chosen.examples,
        "seed": chosen.sample,
        "force": chosen.force,
    }
    options["searches"] = chosen.repeat
    if chosen.all:
        from hopscope.cli.fleet import discover_all

        discover_all(chosen, _progress(), json=chosen.json, **options)
        return 0
    examined = chosen.study()
    path = figure_path(chosen.figure, f"{examined.name}-circuit", alone=chosen.json)
    check_figures(chosen, path)
    examined.check_keeping(chosen.out)
    examined.check_fits(chosen.examples)
    tell = teller(json_alone=chosen.json)
    _tell_if_unlucky(examined, tell)
    started = time.monotonic()
    circuit = examined.discover(_progress(), chosen.out, **options)
    from hopscope.cli.circuit_text import print_or_say

    print_or_say(circuit, json=chosen.json)
    kept = chosen.out or "with the run, as its circuit"
    tell(f"found in {time.monotonic() - started:.0f} s; kept {kept}")
    if path:
        from hopscope.report.circuit import circuit_figure
        from hopscope.report.names import model_title

        title = f"circuit: {model_title(examined)}"
        draw(chosen, path, lambda: circuit_figure(circuit, of=title), tell)
    return 0


def _check_discovery(chosen: DiscoverArguments) -> None:
    if chosen.repeat < 1:
        raise ConfigError(f"--repeat is {chosen.repeat}; expected at least 1")
    if chosen.all:
        if chosen.out or chosen.figure:
            raise ConfigError(
                "--all keeps every circuit with the run: leave out --out and --figure"
            )
        refuse_unused(chosen, ["seed"], "with --all")
        check_figures(chosen, None)


def emergence(chosen: EmergenceArguments) -> int:
    if chosen.all:
        return _emergence_of_all(chosen)
    examined = chosen.study()
    _ = examined.circuit  # if there is none, nothing else is asked
    path = figure_path(chosen.figure, f"{examined.name}-emergence", alone=chosen.json)
    check_figures(chosen, *(_paths(path) if path else [None]))
    check_files(chosen.out)
    story = examined.emergence(chosen.examples)
    from hopscope.cli.circuit_text import print_emergence

    tell = teller(json_alone=chosen.json)
    if chosen.json:
        say_json(story.to_dict())
    else:
        print_emergence(story)
        say()
    if path:
        _draw_story(chosen, path, examined, story)
    write_numbers(story.to_dict(), chosen.out, tell)
    return 0


def _emergence_of_all(chosen: EmergenceArguments) -> int:
    """Every member's emergence in one table and one file of numbers; figures for each, if asked."""
    refuse_unused(chosen, ("seed", "circuit_file"), "with --all")
    from hopscope.cli.fleet import emergence_all

    members = chosen.study().members()
    places = {}
    if named := chosen.figure:
        places = {each.seed: named.with_stem(f"{named.stem}-seed-{each.seed}") for each in members}
    check_figures(chosen, None, *(path for place in places.values() for path in _paths(place)))
    check_files(chosen.out)
    stories = emergence_all(members, chosen.examples, json=chosen.json)
    for examined, story in stories:
        if place := places.get(examined.seed):
            _draw_story(chosen, place, examined, story)
    told = [{"seed": examined.seed, **story.to_dict()} for examined, story in stories]
    write_numbers(told, chosen.out, teller(json_alone=chosen.json))
    return 0


def _draw_story(
    chosen: EmergenceArguments, path: Path, examined: "RunStudy", story: "Emergence"
) -> None:
    """The figures of a model's emergence, beside each other."""
    from hopscope.report.circuit import circuit_figure
    from hopscope.report.emergence import emergence_figure, order_figure
    from hopscope.report.names import model_title

    title = model_title(examined)
    made: tuple[Callable[[], Picture], ...] = (
        lambda: emergence_figure(story, f"emergence: {title}"),
        lambda: order_figure(story, f"order: {title}"),
        lambda: circuit_figure(examined.circuit, story, f"circuit: {title}"),
    )
    for place, make in zip(_paths(path), made, strict=True):
        draw(chosen, place, make, teller(json_alone=chosen.json))


def _paths(path: Path) -> list[Path]:
    """The figures of an emergence."""
    return [path, _beside(path, "order"), _beside(path, "circuit-emergence")]


def _beside(path: Path, name: str) -> Path:
    """A figure that goes with the one of the emergence; never that of `discover`."""
    return path.with_name(f"{path.stem.removesuffix('-emergence')}-{name}{path.suffix}")


def _tell_if_unlucky(examined: "RunStudy", tell: Callable[[str], None]) -> None:
    """At a constant learning rate the last step may sit on a spike."""
    calm = examined.best_late_checkpoint()
    now, then = examined.validation_loss(), calm.validation_loss()
    if now is not None and then is not None and now > 3 * then:
        tell(
            f"note: the loss at step {examined.step:,} is {now:.3f}, at {calm.step:,} it was "
            f"{then:.3f}: --step {calm.step} examines that checkpoint"
        )


def _progress() -> Callable[[str], None]:
    started = time.monotonic()

    def say(what: str) -> None:
        note(f"[{time.monotonic() - started:5.1f} s] {what}")

    return say
