"""The rows of runs that were just measured, merged with those that were measured before.

A sweep may take longer than one machine is there for. The rows of each run are all that is needed
of it; so runs that were measured, here or elsewhere, are not trained again to measure the others.
"""

from collections.abc import Mapping, Sequence

from hopscope import __version__
from hopscope.papers.row import Row
from hopscope.papers.table import Protocol, Table
from hopscope.papers.target import Target
from hopscope.store import RunFolder


def measured(target: Target, protocol: Protocol, folder: RunFolder) -> list[Row]:
    """The rows of a run, which say whose they are."""
    return [row.model_copy(update={"run": folder.name}) for row in target.measure(folder, protocol)]


def merged(
    target: Target,
    protocol: Protocol,
    new: Mapping[str, Sequence[Row]],
    before: Table,
    machine: str,
) -> Table:
    """The rows of these runs, measured on this machine, and of those measured before, in the order
    of the target's recipes.
    """
    _, recipes = target.runs(protocol)
    rows: dict[str, list[Row]] = {name: [] for name in before.runs}
    for row in before.rows:
        rows[str(row.run)].append(row)
    rows |= {name: list(own) for name, own in new.items()}
    here = bool(new) or not before.rows
    return Table(
        target=target.name,
        protocol=protocol,
        rows=(
            *target.compute(protocol),
            *(row for recipe in recipes for row in rows.get(recipe.run_name(), [])),
        ),
        remark=target.remarks.get(protocol, ""),
        wanted=len(recipes),
        hopscope=_both(before.hopscope if before.rows else "", __version__ if here else ""),
        machine=_both(before.machine, machine if here else ""),
    )


def _both(before: str, here: str) -> str:
    """Where rows come from that were not all made in one place."""
    return "; ".join(dict.fromkeys(filter(None, [*before.split("; "), here])))
