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
    before: Sequence[Table],
    machine: str,
) -> Table:
    """The rows of these runs, measured on this machine, and of those measured before, in the order
    of the target's recipes; of a run in several tables, those of the last.
    """
    _, recipes = target.runs(protocol)
    rows: dict[str, list[Row]] = {}
    for table in before:
        rows |= {name: [] for name in table.runs}
        for row in table.rows:
            if row.run is not None:
                rows[row.run].append(row)
    rows |= {name: list(own) for name, own in new.items()}
    names = [recipe.run_name() for recipe in recipes]
    known = [table for table in before if table.runs]
    here = bool(new) or not known
    return Table(
        target=target.name,
        protocol=protocol,
        rows=(
            *target.compute(protocol),
            *(row for name in names for row in rows.get(name, [])),
        ),
        remark=target.remarks.get(protocol, ""),
        wanted=len(recipes),
        hopscope=_all([table.hopscope for table in known], __version__ if here else ""),
        machine=_all([table.machine for table in known], machine if here else ""),
        without_rows=tuple(name for name in names if rows.get(name) == []),
    )


def _all(before: Sequence[str], here: str) -> str:
    """Where rows come from that were not all made in one place."""
    places = [place for told in before for place in told.split("; ")]
    return "; ".join(dict.fromkeys(filter(None, [*places, here])))
