"""`hopscope discover --all` and `emergence --all`: every member of a fleet, side by side."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hopscope.cli.output import say, say_json
from hopscope.cli.subject import ModelArguments
from hopscope.cli.tables import print_rows, table
from hopscope.errors import NotLearned
from hopscope.report.symbols import short_role
from hopscope.theory import Path

if TYPE_CHECKING:
    from hopscope.circuits.emergence import Emergence
    from hopscope.study import RunStudy

COLUMNS = ("seed", "loss", "circuit", "recovered", "computed", "paths", "not_named")


def discover_all(
    chosen: ModelArguments, watch: Callable[[str], None], *, json: bool, **options: Any
) -> None:
    """Find and keep every member's circuit; a line for each."""
    rows = []
    for examined in chosen.study().members():
        seed = examined.seed
        watch(f"seed {seed}")
        try:
            found = examined.discover(**options)
        except NotLearned as error:
            rows.append(dict.fromkeys(COLUMNS) | {"seed": seed, "paths": str(error)})
            continue
        losses = found.losses
        paths = ", ".join(_short(path.layer, path.head, *_ends(path)) for path in found.paths)
        means = losses.mean("model"), losses.mean("prescribed")
        shares = found.recovered(), found.recovered("computed")
        left = ", ".join(each.name for each in found.unnamed)
        row = (seed, *means, *shares, paths, left)
        rows.append(dict(zip(COLUMNS, row, strict=True)))
    print_rows(
        rows, {"loss": ".4f", "circuit": ".4f", "recovered": ".1%", "computed": ".1%"}, json=json
    )


def emergence_all(
    members: "Sequence[RunStudy]", examples: int, *, json: bool
) -> "list[tuple[RunStudy, Emergence]]":
    """When every step (who reads whom) appeared in each member, and when hops were learned; the
    members that have a circuit with paths, each with its story.
    """
    stories = []
    when: dict[str, dict[int, float | None]] = {}
    hops: dict[str, dict[int, float | None]] = {}
    found_in = [examined for examined in members if examined.has_circuit]
    for examined in found_in or members:  # if there is none, the first says what to do
        if not examined.circuit.paths:
            continue
        seed, story = examined.seed, examined.emergence(examples)
        stories.append((examined, story))
        for path, step in reversed(story.order):
            reader, source = _ends(path)
            when.setdefault(f"{source} → {reader}", {})[seed] = step
        for hop, learned in zip(story.asked, story.learned_at or (), strict=False):
            hops.setdefault(f"hop {hop} is learned", {})[seed] = learned
    ordered = [*sorted(when.items()), *hops.items()]
    if json:
        say_json(
            [
                {"what": step, "seed": seed, "step": at}
                for step, found in ordered
                for seed, at in found.items()
            ]
        )
        return stories
    rows = [[step, *(_moment(found, one.seed) for one in members)] for step, found in ordered]
    table(("step", *(f"seed {one.seed}" for one in members)), rows)
    say("", "the training step at which attention passed 0.5; · where the circuit has no such path")
    return stories


def _ends(path: Path) -> tuple[str, str]:
    return short_role(path.reader), short_role(path.source)


def _short(layer: int, head: int, reader: str, source: str) -> str:
    return f"{layer}.{head} {source}→{reader}"


def _moment(found: dict[int, float | None], seed: int) -> str:
    if seed not in found:
        return "·"
    step = found[seed]
    return "never" if step is None else f"{step:.0f}"
