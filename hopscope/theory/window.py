"""k-hop induction with a first layer that reads a window: how many hops can be known.

`reach` is exact if a position can find another only by information that both have. With position
embeddings, a head can also find the letters just before it, which share nothing with it: the first
layer then reads a *window*. A hop that stays within the window needs no look-up.
"""

import numpy as np

from hopscope.errors import ConfigError
from hopscope.shapes import Int

NOWHERE = -1
"""The place that means that a hop found nothing."""
Letters = Int[np.ndarray, "example seq"]


def known_hops(letters: Letters, layers: int, window: int, hops: int) -> Letters:
    """How many of the first `hops` hops each position can know after `layers` layers, if the first
    layer reads the letters up to `window` places back.

    In every later layer, a position looks at the place to which one of its known hops leads, or the
    next hop after these, and receives what is known there.

    >>> letters = np.array([[2, 0, 1, 0, 2, 1, 0, 3, 2, 3]])  # 3 → 2 → 1 → 0
    >>> [int(known_hops(letters, 2, window, 3)[0, -1]) for window in (1, 2, 3)]
    [1, 2, 3]
    """
    if layers < 1 or window < 1 or hops < 1:
        raise ConfigError(
            f"layers is {layers}, window {window} and hops {hops}; expected at least 1 of each"
        )
    whole = np.issubdtype(letters.dtype, np.integer)
    if not whole or letters.ndim != 2 or not letters.size or letters.min() < 0:
        raise ConfigError(
            f"letters is an array {letters.shape} of {letters.dtype}; expected [example, position] "
            "of whole numbers from 0"
        )
    places = _landings(letters, hops)
    start, reached = places[0], places[1:]
    inside = (reached != NOWHERE) & (reached - 1 >= start - window)
    known: Letters = np.cumprod(inside, axis=0).sum(0)
    for _ in range(layers - 1):
        found = [known]
        for number, place in enumerate(reached, 1):
            seen = (place != NOWHERE) & (number <= known + 1)
            found.append(np.where(seen, number + _at(known, place), 0))
        known = np.minimum(np.max(found, axis=0), hops)
    return known


def _landings(letters: Letters, hops: int) -> Int[np.ndarray, "hop example seq"]:
    """The places to which 0, 1, … hops lead from each position. A hop leads to the position after
    the previous occurrence of the same letter.
    """
    last = np.full((len(letters), int(letters.max()) + 1), NOWHERE - 1)
    rows, hop = np.arange(len(letters)), np.empty_like(letters)
    for at, letter in enumerate(letters.T):
        hop[:, at] = np.maximum(last[rows, letter] + 1, NOWHERE)
        last[rows, letter] = at
    found = [np.broadcast_to(np.arange(letters.shape[1]), letters.shape)]
    for _ in range(hops):
        found.append(np.where(found[-1] < 0, NOWHERE, _at(hop, found[-1])))
    return np.stack(found)


def _at(numbers: Letters, places: Letters) -> Letters:
    """The numbers at these places (undefined where the place is NOWHERE)."""
    found: Letters = np.take_along_axis(numbers, np.maximum(places, 0), 1)
    return found
