"""The results of circuit analyses as text: a circuit, ablations, emergence, probes, baselines.

This module needs no drawing library.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hopscope.circuits import Circuit
from hopscope.circuits.components import Component, Estimate, Score
from hopscope.circuits.emergence import Emergence
from hopscope.circuits.probe import Probe, ProbeHistory
from hopscope.facts import Role
from hopscope.plots.account import account_table
from hopscope.plots.piece import Piece
from hopscope.plots.symbols import chain_order, short_role
from hopscope.theory import Path

if TYPE_CHECKING:
    from hopscope.circuits.ablator import Ablations
    from hopscope.circuits.ranking import Baselines

AblationRecord = Mapping[str, Any]
"""A row of `Ablations.records`."""
FULL, LITTLE = 0.95, 0.1
"""Shares from which a symbol counts as fully decodable, and up to which it is not printed."""
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


def circuit_pieces(circuit: Circuit) -> list[Piece]:
    """Return the verdict, the components, the scores, remarks, and the account of a circuit."""
    return [
        Piece(lines=(circuit.verdict, circuit.loss_line)),
        component_table(circuit),
        sharing_table(circuit),
        score_table(circuit),
        Piece("remarks", lines=remarks(circuit)),
        account_table(circuit),
    ]


def component_table(circuit: Circuit) -> Piece:
    """Return a row per component: head, target, kind, losses, in how many of its rows the rule
    holds, stability (– if not measured).
    """
    rows = [
        (
            each.name,
            circuit.described(each),
            each.kind or "–",
            _share(each.lost),
            _share(each.lost_computed),
            "–" if each.holds is None else f"{each.holds.mean:.0%}",
            "–" if each.stability is None else f"{each.stability:.0%}",
        )
        for each in circuit.components
    ]
    columns = ("head", "what it does", "", "lost without it", "computed", "holds", "stability")
    return Piece("each component", columns, rows)


def sharing_table(circuit: Circuit) -> Piece:
    """Return a row per head of each component that several heads share."""
    rows = [
        (
            f"{component.layer}.{each.head[1]}",
            circuit.described(component),
            _share(each.lost),
            _share(each.gained),
        )
        for component in circuit.components
        for each in component.sharing
    ]
    columns = ("head", "shares", "lost without it", "gained with it alone")
    return Piece("heads that share a component, in the model", columns, rows)


def _share(estimate: Estimate | None) -> str:
    if estimate is None:
        return "–"
    half = max(estimate.high - estimate.mean, estimate.mean - estimate.low)
    return f"{estimate.mean:z.1%} ± {100 * half:.1f}"


def score_table(circuit: Circuit) -> Piece:
    """Return a row per way to run the circuit, with recovered loss and agreement with the model."""
    rows = [
        (
            score.attention,
            score.rest,
            _share(score.recovered),
            _agreement(score),
            "–" if score.same_answer is None else _share(score.same_answer),
        )
        for score in circuit.scores
    ]
    columns = ("attention", "everything else", "recovered", "agreement", "same answer")
    return Piece("recovered and agreement", columns, rows)


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
    if circuit.losses.prescribed is None:  # in text, a key is rarely just before its value
        previous = {}
    lines += [f"{name} is a previous-token head" for name in previous]
    without = [each for each in circuit.unnamed if each.written != "rule"]
    if without:
        names = ", ".join(dict.fromkeys(f"{each.name} {each.target}" for each in without))
        lines.append(f"no rule describes {names}")
    if circuit.found is None:
        return lines
    if circuit.components and not circuit.sufficient:
        lines.append(f"prescribed attention recovers less than {circuit.enough:.0%}")
    else:
        lines += circuit.lacks
    return [*lines, *circuit.replace_each_other]


def ablation_pieces(found: "Ablations") -> list[Piece]:
    """Return the losses with each change, and with none."""
    return [ablation_table(found.records(), "losses with heads changed")]


def ablation_table(records: Sequence[AblationRecord], title: str) -> Piece:
    """Return a row per record: the losses with heads changed, and how much they rise."""
    losses = [name for name in records[0] if name == "loss" or name.startswith("hop_")]
    columns = ["changed", *(name.replace("_", " ") for name in losses), "rise"]
    rows = [
        [row["changed"], *(f"{row[name]:.4f}" for name in losses), _rise(row)] for row in records
    ]
    return Piece(title, columns, rows)


def _rise(row: AblationRecord) -> str:
    if row["rise"] is None:
        return ""
    return f"{row['rise']:z.4f} ± {(row['rise_high'] - row['rise_low']) / 2:.4f}"


def emergence_pieces(story: Emergence) -> list[Piece]:
    """Return a row per path by emergence, then a row per hop with the step it was learned at.

    Attention is known at checkpoints only, so a path's step lies between two of them.
    """
    paths = [
        (
            f"{path.layer}.{path.head}",
            f"{path.source} → {path.destination}",
            *_moment(story, step),
            _between(story, path),
            f"{story.attention[story.paths.index(path), -1]:.2f}",
        )
        for path, step in story.order
    ]
    hops = [
        ("", f"hop {hop} is learned", *_moment(story, step), "", f"loss {loss:.3f}")
        for (hop, step), loss in zip(learned_hops(story), story.losses[-1], strict=False)
    ]
    columns = ("head", "path", "emerged at step", "epoch", "between", "attention at the end")
    means = () if story.examples is None else (f"means over {story.examples:,} examples",)
    return [Piece("each path and hop", columns, [*paths, *hops], means)]


def learned_hops(story: Emergence) -> list[tuple[int, int | None]]:
    """Return the asked hops with the steps at which they were learned; empty if unknown."""
    when = story.learned_at
    return [] if when is None else list(zip(story.asked, when, strict=True))


def _between(story: Emergence, path: Path) -> str:
    """Return the checkpoints between which a path emerged."""
    if (ends := story.between(path)) is None:
        return ""
    before, after = ends
    return "at or before" if before is None else f"{before:,} … {after:,}"


def _moment(story: Emergence, step: int | float | None) -> tuple[str, str]:
    epoch = story.epoch(step)
    return (
        "never" if step is None else f"{step:,.0f}",
        "" if epoch is None else f"{epoch:.2f}",
    )


def probe_pieces(found: Probe) -> list[Piece]:
    """Return the decodable symbols, those that each head adds, and remarks."""
    return [probe_table(found), added_table(found), Piece(lines=probe_remarks(found))]


def probe_table(found: Probe) -> Piece:
    """Return a row for each layer, last first, with each role's decodable symbols."""
    roles = probed_roles(found)
    names = ["input", *(f"layer {n}" for n in range(found.layers))]
    rows = [
        [names[layer], *(_shares(found, role, layer) for role in roles)]
        for layer in reversed(range(found.layers + 1))
    ]
    legend = (
        f"{found.measure} of the symbols of the position's own chain; from {FULL} on without a "
        f"number, up to {LITTLE} not shown"
    )
    return Piece("by layer and role", ["after", *map(short_role, roles)], rows, (legend,))


def probed_roles(found: Probe | ProbeHistory) -> list[Role]:
    """Return the roles that occur, in the order of a chain."""
    own = found.stream.own if isinstance(found, Probe) else found.own
    return chain_order(r for n, r in enumerate(found.roles) if np.isfinite(own[..., n, :]).any())


def _shares(found: Probe, role: Role, layer: int) -> str:
    """Return the decodable symbols with their shares; a share near 1 is left out."""
    texts = []
    for symbol in found.symbols:
        share = found.share(role, symbol, layer)
        if share >= FULL:
            texts.append(symbol)
        elif share > LITTLE:
            texts.append(f"{symbol}:{share:.2f}".replace("0.", "."))
    return " ".join(texts) or "·"


def added_table(found: Probe) -> Piece:
    """Return a row for each head and role where the head adds symbols that were not decodable."""
    if found.heads is None:
        return Piece()
    rows = []
    for layer, head in np.ndindex(found.heads.own.shape[:2]):
        for role in probed_roles(found):
            shares_here = found.heads.own[layer, head, found.roles.index(role)]
            texts = [
                f"{symbol} {shares_here[found.symbols.index(symbol)]:.2f}"
                for symbol in sorted(found.added((layer, head), role))
            ]
            if texts:
                rows.append((f"{layer}.{head}", str(role), ", ".join(texts)))
    return Piece("symbols that each head adds", ("head", "adds to", "symbols"), rows)


def probe_remarks(found: Probe) -> list[str]:
    """Return remarks on a probe, one line each."""
    lines = []
    if found.at_chance:
        lines.append(
            f"this model answers at chance or worse (loss {found.loss:.3f}, "
            f"chance {found.chance:.3f})"
        )
    others, noise = found.stream.other_chain, found.stream.other_example
    if np.isfinite(others).any():
        lines.append(f"symbols of another chain: at most {np.nanmax(others):.2f} can be read")
    low, high = np.nanmin(noise), np.nanmax(noise)
    lines.append(
        f"symbols of another example (noise): {low:+.3f} … {high:+.3f}; "
        f"intervals: ± {np.nanmax(found.stream.half):.3f} at most"
    )
    never = [str(r) for n, r in enumerate(found.roles) if np.isnan(found.stream.own[:, n]).all()]
    if never:
        lines.append(f"roles that never occur in a chain: {', '.join(never)}")
    return lines


def history_pieces(history: ProbeHistory) -> list[Piece]:
    """Return a row for each role and symbol with the step at which it became decodable."""
    rows = [
        (str(role), symbol, f"{step:,.0f}", f"{history.at_end(role, symbol):.2f}")
        for role, symbol, step in history.learned()
    ]
    columns = ("role", "symbol", "first decodable at step", "at the end")
    return [Piece("when each symbol became decodable", columns, rows)]


def baselines_pieces(found: "Baselines") -> list[Piece]:
    """Return a row for each method.

    It has precision and recall at the best threshold, the faithfulness with as many arrows as the
    circuit has, and the measures of MIB.
    """
    columns = ["method", "rows: precision / recall", "least score", "arrows", "faithfulness", "CPR",
               "CMD", "AUROC"]  # fmt: skip
    mine = found.circuit_kept
    rows = [[f"circuit ({mine.arrows} arrows)", "", "", "", f"{mine.faithfulness:.2f}", "", "", ""]]
    for ranking in found.rankings:
        row, arrow = ranking.best(found.circuit, "row"), ranking.best(found.circuit, "arrow")
        measures = found.measures(ranking)
        rows.append(
            [
                ranking.method,
                f"{row.precision:.2f} / {row.recall:.2f}",
                f"{row.threshold:.3f}",
                f"{arrow.precision:.2f} / {arrow.recall:.2f}" if ranking.by == "arrow" else "·",
                f"{ranking.as_many.faithfulness:.2f}",
                *("·" if each is None else f"{each:.2f}" for each in measures),
            ]
        )
    return [Piece("", columns, rows)]
