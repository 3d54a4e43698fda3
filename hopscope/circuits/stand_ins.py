"""Rows that were left out of a circuit, and that could stand in for one of its paths.

The field calls their heads backup heads.
"""

from dataclasses import replace

from hopscope.circuits.ablation import Head
from hopscope.circuits.draft import Draft, Unit
from hopscope.circuits.mechanism import AS_IS, aim
from hopscope.circuits.parts import Alternative
from hopscope.circuits.search import Search
from hopscope.theory import Path


def alternatives(search: Search, draft: Draft) -> tuple[Alternative, ...]:
    """Rows left out that do the same step as a path, and can stand in for it."""
    found = []
    for unit in draft.units:
        for path in unit.paths:
            heads = _same_step(search, draft, path)
            if heads:
                found += _standing_in(search, draft, unit, path, heads)
    return tuple(found)


def _same_step(search: Search, draft: Draft, path: Path) -> list[Head]:
    """Heads whose row for this reader is left out, though it looks where the path does."""
    return [
        head
        for head in search.heads
        if path.reader in search.readers_of(head[0])
        and path.reader not in draft.states.ideal[head].readers
        and search.sources.get((head, path.reader)) == path.source
    ]


def _standing_in(
    search: Search, draft: Draft, unit: Unit, path: Path, heads: list[Head]
) -> list[Alternative]:
    """The heads with which the task stays solved, both by their aim and by their own attention."""
    less = draft.states.without(unit, search.sources)
    rows = [[(head, path.reader)] for head in heads]
    losses = search.losses([less.ideal.looking_at(row, aim("own", path.source)) for row in rows])
    free = search.losses([less.own.looking_at(row, AS_IS) for row in rows])
    passed = search.limits.keep(losses) & search.limits.keep(free)
    return [
        Alternative(
            path=replace(path, layer=head[0], head=head[1]),
            instead_of=path,
            loss=float(loss.mean()),
        )
        for head, loss, ok in zip(heads, losses, passed, strict=True)
        if ok
    ]
