"""Which rows of attention matter: all others are removed, cheapest first.

Whole heads are tried first, then single rows. The rows that are left keep the model's attention.
"""

from collections.abc import Sequence

import numpy as np

from hopscope.circuits.search import Search
from hopscope.circuits.state import Row, State

Rows = Sequence[Row]


def needed_rows(search: Search, state: State) -> State:
    """The state without the heads, then without the rows, that the task can be solved without."""
    state = pruned(search, state, search.rows())
    return pruned(search, state, [[row] for row in state.live])


def pruned(search: Search, state: State, choices: Sequence[Rows]) -> State:
    """Remove sets of rows, cheapest first, as long as the task stays solved.

    Which are cheap is first judged by a few examples, and exactly once that leads no further.
    """
    total = len(choices)
    for roughly in (True, False):
        left = list(choices)
        while left:
            search.progress.at(total - len(left), total)
            left = _cheap(search, state, left, roughly)
            count = _most(search, state, left)
            if not count:
                break
            state = state.looking_elsewhere(_joined(left[:count]), search.sources)
            left = left[count:]
        removed = set(_joined(choices)) - set(state.live)
        choices = [rows for rows in choices if not removed & set(rows)]
    return state


def _cheap(search: Search, state: State, choices: Sequence[Rows], roughly: bool) -> list[Rows]:
    """The sets of rows without which the task may stay solved, cheapest first."""
    settings = search.settings
    if roughly:
        return _passing(search, state, choices, settings.rough_factor)
    return _passing(search, state, _passing(search, state, choices, settings.hopeless))


def _passing(
    search: Search, state: State, choices: Sequence[Rows], slack: float | None = None
) -> list[Rows]:
    """The sets of rows whose removal keeps the limits, cheapest first.

    With a slack, a few examples say so, and the limits are that many times as high.
    """
    if not choices:
        return []
    trials = [state.looking_elsewhere(rows, search.sources) for rows in choices]
    losses = search.losses(trials, slack is not None)
    kept = search.limits.keep(losses / (slack or 1.0))
    return [choices[n] for n in np.argsort(losses.mean(-1), kind="stable") if kept[n]]


def _most(search: Search, state: State, choices: Sequence[Rows]) -> int:
    """How many of the first sets can be removed together, by halving."""
    counts = [len(choices) >> shift for shift in range(len(choices).bit_length())]
    together = [_joined(choices[:count]) for count in counts]
    trials = [state.looking_elsewhere(rows, search.sources) for rows in together]
    if not trials:
        return 0
    passed = search.limits.keep(search.losses(trials))
    return next((count for count, ok in zip(counts, passed, strict=True) if ok), 0)


def _joined(choices: Sequence[Rows]) -> list[Row]:
    return [row for rows in choices for row in rows]
