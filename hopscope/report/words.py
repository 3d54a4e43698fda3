"""A circuit in words: a grid of text, a row per part, and remarks."""

from hopscope.circuits import Circuit
from hopscope.circuits.parts import Losses, Part, Which
from hopscope.facts import Role
from hopscope.report.symbols import chain_order, short_role

PART_COLUMNS = ("head", "what it does", "", "without it", "in the model", "agreed")
WITHOUT_PATH = {"position": "pos", "itself": "self"}
"""Short words for where a row looks that forms no path."""


def circuit_grid(circuit: Circuit) -> str:
    """The circuit as text: a column per role, a row per layer, in each cell what is read; `pos`
    and the like where a row does something and forms no path.
    """
    roles = ordered_roles(circuit)
    cells: dict[tuple[int, Role], str] = {}
    for part in circuit.parts:
        for path in part.paths:
            head = f"·{path.head}" if many_heads(circuit) else ""
            read, place = f"{short_role(path.source)}{head}", (path.layer, path.reader)
            cells[place] = "+".join(filter(None, (cells.get(place), read)))
    for part in pathless(circuit):
        head = f"·{part.head}" if many_heads(circuit) else ""
        for role in part.readers:
            where = circuit.mechanism(*part.at).of(role).targets[0].where
            place, read = (part.layer, role), f"{WITHOUT_PATH.get(where, where)}{head}"
            cells[place] = "+".join(filter(None, (cells.get(place), read)))
    names = [short_role(role) for role in roles]
    width = max((len(text) for text in (*names, *cells.values())), default=1) + 2
    rows = ["layer " + "".join(f"{name:>{width}}" for name in names)]
    for layer in sorted({layer for layer, _ in cells}, reverse=True):
        line = "".join(f"{cells.get((layer, role), '·'):>{width}}" for role in roles)
        rows.append(f"{layer:>5} {line}")
    return "\n".join(rows)


def ordered_roles(circuit: Circuit) -> list[Role]:
    """The roles in the order of a chain: query, then key and value of each hop."""
    used = {role for path in circuit.paths for role in (path.reader, path.source)}
    used |= {role for part in pathless(circuit) for role in part.readers}
    return chain_order(role for role in circuit.roles if role in used)


def pathless(circuit: Circuit) -> list[Part]:
    """The parts of some roles that do something and form no path, as rows that attend by position.
    What every role does alike is none of them, nor is background.
    """
    every = len(circuit.roles)
    return [
        part
        for part in circuit.parts
        if not part.paths and part.kind != "background" and len(part.readers) < every
    ]


def many_heads(circuit: Circuit) -> bool:
    """True if the circuit's layers have more than one head, so that heads need a number."""
    return any(report.head for report in circuit.heads)


def part_rows(circuit: Circuit) -> list[tuple[str, ...]]:
    """A row per part: head, what it does, kind, losses without it, votes; – if not measured."""
    return [
        (
            part.name,
            circuit.described(part),
            part.kind or "–",
            f"{part.cost.mean:.3f} ± {part.cost.mean - part.cost.low:.3f}" if part.cost else "–",
            f"{part.alone_cost.mean:.3f}" if part.alone_cost else "–",
            "–" if part.votes is None else f"{part.votes:.0%}",
        )
        for part in circuit.parts
    ]


def loss_line(circuit: Circuit) -> str:
    """A line with the four losses: of the model, of the circuit, without attention, of guessing."""
    losses, (alone, none) = circuit.losses, circuit.left_in
    return (
        f"loss: {losses.mean('clean'):.4f} as it is · {losses.mean('ideal'):.4f} {alone} · "
        f"{losses.mean('ablated'):.3f} {none} · {losses.guess:.3f} guessing"
    )


def headline(circuit: Circuit) -> list[str]:
    """Is the task solved by the circuit's attention, and do its rows find by themselves where to
    look?
    """
    losses, (alone, none) = circuit.losses, circuit.left_in
    ideal = losses.mean("ideal")
    solved = "solved" if circuit.solved else "not all is explained"
    clean = losses.mean("clean")
    way = f"{circuit.explained:.0%} of the way from guessing to the model"
    if circuit.explained > 1.01:
        way = f"less than the model's own {clean:.3f}"
    if circuit.explained < 0:
        way = f"more than guessing, {losses.guess:.3f}"
    first = f"{solved}: {ideal:.3f} {alone}, where {losses.limit:.3f} would count as solved; {way}"
    if not circuit.knows_more:
        first = (
            f"there is nothing to explain: the model has {clean:.3f}, guessing "
            f"{losses.guess:.3f}; {ideal:.3f} {alone}"
        )
    lines = [first, *_failing_hops(losses, "ideal")]
    if losses.own is not None:
        own = losses.mean("own")
        within = "not more than" if own <= losses.limit else "above"
        finds = "nothing else tells them where to look"
        if not circuit.finds_its_way:
            finds = "they need other attention to find where to look"
        lines.append(
            "if its heads compute their attention from what the circuit alone provides, the loss "
            f"is {own:.3f}, {within} {losses.limit:.3f}: {finds}"
        )
        lines += _failing_hops(losses, "own")
    if ideal >= min(losses.mean("ablated"), losses.guess):
        lines.append(
            f"warning: this circuit is no better than none: {ideal:.3f} with it, "
            f"{losses.mean('ablated'):.3f} {none}, {losses.guess:.3f} guessing"
        )
    return lines


def _failing_hops(losses: Losses, which: Which) -> list[str]:
    """A line for each hop whose loss is too high though the mean is low."""
    if losses.mean(which) > losses.limit:
        return []
    hops = zip(getattr(losses, which), losses.hop_limits, strict=True)
    return [
        f"hop {number} fails: {loss:.3f}, where {limit:.3f} would count as solved"
        for number, (loss, limit) in enumerate(hops, 1)
        if loss > limit
    ]


def remarks(found: Circuit) -> list[str]:
    """What else there is to say about a circuit, one line each."""
    lines = headline(found)
    lines += [
        f"{report.layer}.{report.head} is a head of the previous position"
        for report in found.heads
        if report.name == "previous position"
    ]
    lines += [f"unexplained: {part.name} {found.described(part)}" for part in found.unexplained]
    lines += [
        f"shared: {', '.join(f'{layer}.{head}' for layer, head in step.heads)} all do "
        f"{step.reader} ← {step.source}; {step.cost.mean:.3f} without all of them"
        for step in found.shared
    ]
    lines += [
        f"could stand in: {other.path}, for {other.instead_of.layer}.{other.instead_of.head}"
        for other in found.alternatives
    ]
    if found.flow is not None:
        lines.append(
            f"along these paths the query learns {', '.join(found.flow.reached)}"
            + (f", but not {', '.join(found.flow.missed)}" if found.flow.missed else "")
            if found.flow.reached
            else f"along these paths the query learns nothing of {', '.join(found.flow.missed)}"
        )
        lines += [f"found by no key that is known: {path}" for path in found.flow.jumps]
    return lines
