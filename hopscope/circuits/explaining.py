"""What the needed rows do: each is replaced by the simplest aim that does as well.

A first pass takes simple aims even where they cost a little. If they add up to too much, a second
pass takes exact ones alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

import numpy as np

from hopscope.circuits.hypotheses import hypotheses
from hopscope.circuits.mechanism import AS_IS, Aim
from hopscope.circuits.search import HopLosses, Search
from hopscope.circuits.state import Row, State


@dataclass(frozen=True)
class Slack:
    """An aim does as well if it costs at most this factor, or this share of a low loss."""

    factor: float
    share: float
    abandon: float = inf
    """The pass ends where the loss is more than this many times a low one."""

    def __call__(self, low: float, base: float) -> float:
        """The highest loss that is good enough."""
        return max(self.factor * base, base + self.share * low)


def explained(search: Search, state: State) -> State:
    """Replace each row by the simplest aim that does as well; others keep the model's attention."""
    settings = search.settings
    loose = Slack(settings.loose_factor, settings.loose_share, settings.abandon)
    tight = Slack(settings.tight_factor, settings.tight_share)
    start = state.only(state.live)
    found, losses = _each_row(search, start, loose)
    if search.limits.keep(losses):
        return found
    found, losses = _each_row(search, start, tight)
    # What the tight pass left as it is may cost a little after all.
    last, its = _each_row(search, found, loose)
    return last if search.limits.keep(its) or not search.limits.keep(losses) else found


def _each_row(search: Search, state: State, slack: Slack) -> tuple[State, HopLosses]:
    """Explain the rows that are as the model has them, one after the other."""
    losses: HopLosses = search.losses([state])[0]
    rows = state.live
    for number, (head, role) in enumerate(rows):
        search.progress.at(number, len(rows))
        if state[head].of(role) == AS_IS:
            state, losses = _explain(search, state, losses, (head, role), slack)
        if losses.mean() > slack.abandon * search.limits.mean:
            break
    return state, losses


def _explain(
    search: Search, state: State, losses: HopLosses, row: Row, slack: Slack
) -> tuple[State, HopLosses]:
    """The state with the first aim for the row that is good enough, and its losses."""
    enough = slack(search.limits.mean, float(losses.mean()))
    for aims in _waves(search, row):
        trials = [state.looking_at([row], proposed) for proposed in aims]
        trials = _promising(search, state, trials, enough, slack)
        found = search.losses(trials) if trials else np.empty((0, 1))
        for trial, its in zip(trials, found, strict=True):
            if its.mean() <= enough:
                return trial, its
    return state, losses


def _waves(search: Search, row: Row) -> Iterator[list[Aim]]:
    """Hypotheses for a row, as many at a time as are measured together: the first may do."""
    size = max(2, search.ablator.at_once)
    waves = hypotheses(search.maps, row, search.settings)
    if search.ablator.exam.relations:
        waves = [search.glances.get(row, []), *waves]
    for wave in waves:
        yield from (wave[start : start + size] for start in range(0, len(wave), size))


def _promising(
    search: Search, state: State, trials: list[State], enough: float, slack: Slack
) -> list[State]:
    """Those that a few examples do not rule out, on which the state may be better or worse."""
    if search.sketch is search.ablator or not trials:
        return trials
    now, *rough = search.losses([state, *trials], roughly=True).mean(-1)
    most = search.settings.rough_factor * max(slack(search.limits.mean, now), enough)
    return [trial for trial, its in zip(trials, rough, strict=True) if its <= most]
