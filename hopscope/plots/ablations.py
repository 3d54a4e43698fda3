"""Losses with heads changed, as a picture."""

from collections.abc import Sequence
from textwrap import fill

from hopscope.circuits.ablator import Ablations
from hopscope.plots.look import COLOURS, DIM, INK, LINES, Picture, drawn, picture
from hopscope.plots.words import AblationRecord

ROW = 0.15
"""Inches of a row of one line."""
LETTERS = 40
"""Letters in a line of a row's name: several heads changed together have a long one."""
MOST = 40
"""The most rows of changes that are drawn."""
APART = 0.22
"""Distance in rows between the marks of two ways to change the same head."""
WAYS = 4
"""The most ways to change a head whose marks share its row."""


def ablations_figure(found: Ablations) -> Picture:
    """The loss of the model (or circuit), and with each change."""
    return losses_figure(found.records(), {found.chance}, found.examples)


@drawn
def losses_figure(records: Sequence[AblationRecord], chances: set[float], examples: int) -> Picture:
    """A row for each head, with a mark for each way to change it; above, a row for each record in
    which nothing is changed. Orders of the facts may differ in their loss at chance.
    """
    unchanged = [row for row in records if row["rise"] is None]
    changed = _by_head([row for row in records if row["rise"] is not None])
    ways = list(dict.fromkeys(way for _, way, _ in changed))
    largest: dict[str, float] = {}
    for head, _, row in changed:
        largest[head] = max(row["rise"], largest.get(head, row["rise"]))
    kept = sorted(largest, key=lambda head: -largest[head])[:MOST]
    heads = [head for head in largest if head in kept]
    caption = (
        f"Mean loss over hops on {examples:,} fresh examples. Diamonds and dashed lines: nothing "
        f"changed; dotted: chance{' in each order' * (len(chances) > 1)}."
    )
    if changed:
        since = f" from the loss of {unchanged[-1]['changed']}" if len(unchanged) > 1 else ""
        caption += (
            " Dots: with a head (layer.head) changed; bars: the 95 % interval of the rise"
            f"{since}, paired over examples."
        )
    if len(largest) > MOST:
        caption += f" Only the {MOST} of {len(largest):,} rows that rise most."
    # With one way there is no legend, so that the row's name says it.
    names = heads if len(ways) > 1 else [row["changed"] for head, _, row in changed if head in kept]
    labels = [fill(name, LETTERS) for name in (*(row["changed"] for row in unchanged), *names)]
    height = ROW * len(labels) * max(1 + label.count("\n") for label in labels) + 0.7
    figure = picture("losses with heads changed", caption, height, columns=2)
    axes = figure.subplots()
    for at, row in enumerate(unchanged):
        axes.plot(row["loss"], at, "D", color=INK)
        axes.axvline(row["loss"], color=DIM, linestyle="--", linewidth=0.6)
    for number, way in enumerate(ways):
        rows = {heads.index(head): row for head, its, row in changed if its == way and head in kept}
        axes.errorbar(
            [row["loss"] for row in rows.values()],
            [len(unchanged) + at + APART * (number - (len(ways) - 1) / 2) for at in rows],
            xerr=[
                [row["rise"] - row["rise_low"] for row in rows.values()],
                [row["rise_high"] - row["rise"] for row in rows.values()],
            ],
            fmt="o",
            color=COLOURS[number % LINES],
            elinewidth=0.8,
            label=way,
        )
    for chance in chances:
        axes.axvline(chance, color=DIM, linestyle=":")
    axes.set_yticks(range(len(labels)), labels)
    axes.set(xlabel="loss", ylim=(len(labels) - 0.5, -0.5))
    if min(row["loss"] for row in records) >= 0:
        axes.set_xlim(left=0)
    if len(ways) > 1:
        figure.legend(loc="outside right upper")
    return figure


def _by_head(records: Sequence[AblationRecord]) -> list[tuple[str, str, AblationRecord]]:
    """Each record with its head and way; if there are too many ways, with its whole name."""
    found = [(*_head_and_way(row["changed"]), row) for row in records]
    if len({way for _, way, _ in found}) <= WAYS:
        return found
    return [(row["changed"], "", row) for row in records]


def _head_and_way(changed: str) -> tuple[str, str]:
    """What a change names, and how it is changed; several heads changed together are one name."""
    head, _, way = changed.partition("=")
    return (changed, "") if " " in changed else (head, way)
