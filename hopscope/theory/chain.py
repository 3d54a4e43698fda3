"""The linear chain: closed forms, and a simulation by intervals that checks them.

Number a chain's positions by their distance from the query: s_0 is the query, s_{2k+1} the key
and s_{2k+2} the value of fact k. Number the pieces of information likewise: e_{2k} is the symbol
x_k, e_{2k-1} the code of the pair before it, so that s_i starts with e_{i-1} and e_i. The pieces
that a position has stay contiguous (Lemma 2 of the paper), so an interval describes them.
"""

from dataclasses import dataclass
from typing import SupportsIndex

import numpy as np

from hopscope.errors import ConfigError
from hopscope.shapes import Int


@dataclass(frozen=True)
class Depths:
    """The fewest layers for D hops: the bound of the paper, and two exact numbers."""

    hops: int
    theorem_1: int
    """The paper's lower bound for any attention: the smallest t with 3^t >= 2D."""
    bidirectional: int
    """The exact number for attention in both directions: the smallest t with 3^t >= 4D + 1."""
    causal: int
    """The exact number for causal attention, last hop first: floor(log2 D) + 2."""


def depths(hops: SupportsIndex) -> Depths:
    """The fewest layers for a number of hops, computed with whole numbers.

    >>> depths(5)
    Depths(hops=5, theorem_1=3, bidirectional=3, causal=4)
    """
    hops = _whole("hops", hops)
    return Depths(hops, _log3_up(2 * hops), _log3_up(4 * hops + 1), hops.bit_length() + 1)


def reach(layers: SupportsIndex, causal: bool = True) -> int:
    """The largest number of hops that this many layers can follow.

    >>> [reach(layers) for layers in range(1, 6)]
    [0, 1, 3, 7, 15]
    >>> [reach(layers, causal=False) for layers in range(1, 6)]
    [0, 2, 6, 20, 60]
    """
    layers = _whole("layers", layers)
    # The exact counts, solved for D: floor(log2 D) + 2 <= layers, and 4D + 1 <= 3^layers.
    hops: int = 2 ** (layers - 1) - 1 if causal else (3**layers - 1) // 4
    return hops


def simulated_depth(hops: SupportsIndex, causal: bool = True) -> int:
    """The number of layers after which the query has x_D, found by simulation with intervals."""
    hops = _whole("hops", hops)
    first, last = _start(hops)
    layers = 0
    while last[0] < 2 * hops:
        first, last = _causal(first, last) if causal else _both_ways(first, last)
        layers += 1
    return layers


Ends = Int[np.ndarray, "position"]


def _start(hops: int) -> tuple[Ends, Ends]:
    last = np.arange(2 * hops + 1)
    return last - 1, last


def _both_ways(first: Ends, last: Ends) -> tuple[Ends, Ends]:
    """One layer without a causal mask: every position's interval is joined with all that overlap
    it. Both ends ascend along the chain, so binary search finds them.
    """
    furthest = np.searchsorted(first, last, side="right") - 1
    nearest = np.searchsorted(last, first, side="left")
    return first[nearest], last[furthest]


def _causal(first: Ends, last: Ends) -> tuple[Ends, Ends]:
    """One layer with a causal mask, for facts with the last hop first, each key before its value,
    and the query at the end.

    A key comes after later hops only, with which it shares nothing, so it never receives anything.
    A value, like the query, sees its own key and all positions of later hops.
    """
    first, last = first.copy(), last.copy()
    value_first, value_last = first[::2], last[::2]
    touched = np.searchsorted(value_first, value_last, side="right") - 1
    # The furthest key that has a known piece: s_i with i odd and i - 1 <= last.
    keys = np.minimum(value_last + 1 - value_last % 2, len(last) - 2)
    reached = np.maximum(np.maximum(value_last, value_last[touched]), keys)
    own_key = np.minimum(value_first, first[np.maximum(0, 2 * np.arange(len(value_first)) - 1)])
    first[::2], last[::2] = own_key, reached
    return first, last


def _log3_up(number: int) -> int:
    """The smallest t with 3^t >= number."""
    power = 0
    while 3**power < number:
        power += 1
    return power


def _whole(name: str, number: SupportsIndex) -> int:
    """The number as an int, which has no overflow; raises ConfigError below 1."""
    if not isinstance(number, int | np.integer) or number < 1:
        raise ConfigError(f"{name} is {number!r}; expected a whole number, at least 1")
    return int(number)
