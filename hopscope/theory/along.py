"""Information followed along given readings alone: does a circuit bring the answer to the query?

The two rules of the depth theory, with who reads whom given and nothing else allowed.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from hopscope.facts import FactGraph, Role
from hopscope.theory.flow import Pieces, Reading, positions


@dataclass(frozen=True)
class Followed:
    """What every role holds in the end, and the readings that came from nowhere."""

    holdings: dict[Role, Pieces]
    jumps: tuple[Reading, ...]
    """Reader and source had nothing in common by which the one could find the other."""


def follow(graph: FactGraph, readings: Iterable[Reading]) -> Followed:
    """Let information flow along the readings, layer by layer."""
    roles, pieces = positions(graph)
    holding = dict(zip(roles, pieces, strict=True))
    jumps: list[Reading] = []
    by_layer: dict[int, list[Reading]] = {}
    for reading in sorted(set(readings)):
        by_layer.setdefault(reading.layer, []).append(reading)
    for layer in sorted(by_layer):
        before = dict(holding)
        for reading in by_layer[layer]:
            found, source = before[reading.reader], before[reading.source]
            if not found & source:
                jumps.append(reading)
            holding[reading.reader] |= source
    return Followed(holding, tuple(jumps))
