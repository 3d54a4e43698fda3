"""A circuit as text: a grid, a row per component, the table of scores, remarks, and emergence.

This module needs no drawing library.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from hopscope.circuits import Circuit
from hopscope.circuits.components import Component, Estimate, Score
from hopscope.circuits.emergence import Emergence
from hopscope.facts import Role
from hopscope.plots.piece import Rows
from hopscope.plots.symbols import chain_order, short_role

Record = Mapping[str, Any]
"""A row of `Ablations.records`."""
COMPONENT_COLUMNS = ("head", "what it does", "", "lost without it", "computed", "stability")
EMERGENCE_COLUMNS = ("head", "path", "emerged at step", "epoch", "attention at the end")
SCORE_COLUMNS = ("attention", "everything else", "recovered", "agreement", "same answer")
SHORT = {
    "position": "pos",
    "token": "tok",
    "itself": "self",
    "previous": "prev",
    "uniform": "even",
    "model": "own",
}
"""Short names of targets of rows without a path."""


def circuit_grid(circuit: Circuit) -> str:
    """Return the circuit as text: a column per role, a row per layer, targets in the cells."""
    cells: dict[tuple[int, Role], str] = {}
    for component in drawn_components(circuit):
        for (layer, head), role in component.rows:
            number = f"·{head}" if circuit.heads > 1 else ""
            place, said = (layer, role), f"{short_target(component)}{number}"
            cells[place] = "+".join(filter(None, (cells.get(place), said)))
    roles = ordered_roles(circuit)
    layers = sorted({layer for layer, _ in cells}, reverse=True)
    columns = [
        [short_role(role), *(cells.get((layer, role), "·") for layer in layers)] for role in roles
    ]
    widths = [max(map(len, column)) + 2 for column in columns]
    rows = []
    for at, name in enumerate(("layer", *map(str, layers))):
        line = "".join(
            f"{column[at]:>{room}}" for column, room in zip(columns, widths, strict=True)
        )
        rows.append(f"{name:>5} {line}")
    return "\n".join(rows)


def short_target(component: Component) -> str:
    """Return a component's target in a few letters."""
    source = component.sources[0]
    if source.role is not None:
        return short_role(source.role)
    return SHORT.get(source.where, str(source))


def ordered_roles(circuit: Circuit) -> list[Role]:
    """Return the roles of the drawn components in the order of a chain."""
    used = {role for path in circuit.paths for role in (path.destination, path.source)}
    used |= {role for each in drawn_components(circuit) for role in each.destinations}
    return chain_order(role for role in circuit.roles if role in used)


def drawn_components(circuit: Circuit) -> list[Component]:
    """Return the components to draw: all but those at every role (if there are several roles)."""
    many = len(circuit.roles) if len(circuit.roles) > 2 else 3
    return [each for each in circuit.components if each.paths or len(each.destinations) < many]


def pathless(circuit: Circuit) -> list[Component]:
    """Return the drawn components without paths, such as rows that attend by position."""
    return [each for each in drawn_components(circuit) if not each.paths]


def component_rows(circuit: Circuit) -> list[tuple[str, ...]]:
    """Return a row per component: head, target, kind, losses, stability (– if not measured)."""
    return [
        (
            each.name,
            circuit.described(each),
            each.kind or "–",
            _share(each.lost),
            _share(each.lost_computed),
            "–" if each.stability is None else f"{each.stability:.0%}",
        )
        for each in circuit.components
    ]


def _share(estimate: Estimate | None) -> str:
    if estimate is None:
        return "–"
    half = max(estimate.high - estimate.mean, estimate.mean - estimate.low)
    return f"{estimate.mean:z.1%} ± {100 * half:.1f}"


def score_rows(circuit: Circuit) -> list[tuple[str, ...]]:
    """Return a row per way to run the circuit, with recovered loss and agreement with the model."""
    return [
        (
            score.attention,
            score.rest,
            _share(score.recovered),
            _agreement(score),
            "–" if score.same_answer is None else _share(score.same_answer),
        )
        for score in circuit.scores
    ]


def _agreement(score: Score) -> str:
    name = "R²" if score.same_answer is None else "KL"
    its = score.agreement
    if its is None:
        return "–"
    return f"{name} {its.mean:.3f} ± {its.high - its.mean:.3f}"


def remarks(circuit: Circuit) -> list[str]:
    """Return remarks on a circuit, one line each."""
    lines = [f"warning: {line}" for line in circuit.warnings]
    previous = dict.fromkeys(each.name for each in circuit.components if each.is_previous)
    lines += [f"{name} is a previous-token head" for name in previous]
    if circuit.unnamed:
        names = ", ".join(dict.fromkeys(f"{each.name} {each.target}" for each in circuit.unnamed))
        lines.append(f"no rule describes {names}")
    if circuit.found is None:
        return lines
    if circuit.components and not circuit.sufficient:
        lines.append(f"prescribed attention recovers less than {circuit.enough:.0%}")
    elif not circuit.self_contained:
        lines.append(
            f"computed attention recovers less than {circuit.enough:.0%}: the heads need other "
            "attention to find where to look"
        )
    return lines


def ablation_rows(records: Sequence[Record]) -> tuple[list[str], Rows]:
    """The columns and rows of a table of losses with heads changed."""
    losses = [name for name in records[0] if name == "loss" or name.startswith("hop_")]
    columns = ["changed", *(name.replace("_", " ") for name in losses), "rise"]
    return columns, [
        [row["changed"], *(f"{row[name]:.4f}" for name in losses), _rise(row)] for row in records
    ]


def _rise(row: Record) -> str:
    if row["rise"] is None:
        return ""
    return f"{row['rise']:.4f} ± {(row['rise_high'] - row['rise_low']) / 2:.4f}"


def emergence_table(story: Emergence) -> list[tuple[str, ...]]:
    """Return a row per path by emergence, then a row per hop with the step it was learned at."""
    rows: list[tuple[str, ...]] = [
        (
            f"{path.layer}.{path.head}",
            f"{path.source} → {path.destination}",
            *_moment(story, step),
            f"{story.attention[story.paths.index(path), -1]:.2f}",
        )
        for path, step in story.order
    ]
    return rows + [
        ("", f"hop {hop} is learned", *_moment(story, step), "")
        for hop, step in learned_hops(story)
    ]


def learned_hops(story: Emergence) -> list[tuple[int, int | None]]:
    """Return the asked hops with the steps at which they were learned; empty if unknown."""
    when = story.learned_at
    return [] if when is None else list(zip(story.asked, when, strict=True))


def _moment(story: Emergence, step: int | float | None) -> tuple[str, str]:
    epoch = story.epoch(step)
    return (
        "never" if step is None else f"{step:,.0f}",
        "" if epoch is None else f"{epoch:.2f}",
    )
