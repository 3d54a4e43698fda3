"""A first answer: ideal heads read off the maps and the task's relations, tested at once.

1. Every row that looks at something gets the aim that says what; all others are given up.
2. Row by row the aim is taken that lowers the loss most.
3. Rows are added by which those that matter find their places when they attend on their own.
4. Steps (rows of one layer that do the same) are given up, cheapest first, while the loss hardly
   rises: both with all attention written down, and with the rows that are left attending on their
   own. The second keeps heads that only tell others where to look.

There is no search among subsets of the model's own heads, so this takes seconds.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from hopscope.circuits.draft import Conditions, Draft, Unit
from hopscope.circuits.mechanism import BY_POSITION, Aim
from hopscope.circuits.parts import paths_of
from hopscope.circuits.search import Search
from hopscope.circuits.state import Row, State

ROUNDS = 3
"""How often all rows are gone through."""
WORTH = 0.98
"""Another aim is taken if it lowers the loss to this share, or below."""
WORTH_A_TABLE = 0.8
"""Attention by position, which is a table and says little, is taken if it lowers the loss to this
share, or below."""
SPENT = 0.01
"""Steps are given up until the loss has risen by this share of guessing."""

Choices = dict[Row, list[Aim]]


@dataclass(frozen=True)
class First:
    """The first answer: what is written down, and what it costs."""

    draft: Draft
    loss: float
    solved: bool
    """Does the task count as solved with it?"""


def first_answer(search: Search, untouched: State) -> First:
    """Ideal heads read off maps and relations, without those that are not needed."""
    choices = search.glances
    rows = [row for row in untouched.live if row in choices]
    state = untouched.only([])
    for row in rows:
        state = state.looking_at([row], choices[row][0])
    told = f"{len(rows)} of {len(untouched.live)} rows look at something we can name"
    search.progress.step(f"first answer: {told}; {_loss(search, state):.4f} by these alone")
    state = _improved(search, untouched, state, choices)
    state = _completed(search, untouched, state, choices)
    state = _lightened(search, state)
    losses = search.losses([state])[0]
    draft = Draft(Conditions(state, untouched), steps_of(state, search.settings.path_share))
    return First(draft, float(losses.mean()), bool(search.limits.keep(losses)))


def steps_of(state: State, share: float) -> tuple[Unit, ...]:
    """Rows of one layer that have the same aim are one step, whichever heads they belong to."""
    groups: dict[tuple[int, Aim], list[Row]] = {}
    for head, role in state.live:
        groups.setdefault((head[0], state[head].of(role)), []).append((head, role))
    units = []
    for (_, aim), rows in sorted(groups.items(), key=lambda item: (item[0][0], str(item[0][1]))):
        paths = [
            path
            for head in dict.fromkeys(head for head, _ in rows)
            for path in paths_of(head, state[head], share)
            if (head, path.reader) in rows
        ]
        named = aim != BY_POSITION and not paths
        units.append(Unit(rows[0][0], tuple(rows), tuple(paths), named))
    return tuple(units)


def _improved(search: Search, untouched: State, state: State, choices: Choices) -> State:
    """Go through the rows, and take for each the aim that lowers the loss most."""
    rows = untouched.live
    best = _loss(search, state)
    for number in range(ROUNDS):
        before = best
        for done, row in enumerate(rows):
            search.progress.at(number * len(rows) + done, ROUNDS * len(rows))
            trials, most = _others(state, row, choices.get(row, []))
            if not trials:  # it goes by position, and there is nothing else to try
                continue
            losses = search.losses(trials, roughly=True).mean(-1)
            enough = losses <= np.minimum(best * np.array(most), best - search.floor)
            least = int(np.where(enough, losses / most, np.inf).argmin())
            if enough[least]:
                state, best = trials[least], float(losses[least])
        if best > WORTH * before:
            break
    return state


def _others(state: State, row: Row, aims: list[Aim]) -> tuple[list[State], list[float]]:
    """What else a row could do, and to which share it must lower the loss for that."""
    now = state[row[0]].of(row[1])
    worth = dict.fromkeys(aims, WORTH) | {BY_POSITION: WORTH_A_TABLE}
    worth = {aim: share for aim, share in worth.items() if aim != now}
    return [state.looking_at([row], aim) for aim in worth], [*worth.values()]


def _completed(search: Search, untouched: State, state: State, choices: Choices) -> State:
    """Add rows until those that matter find their places when they attend on their own.

    With all attention written down nothing is told about them: they tell others where to look.
    """
    search.progress.step("first answer: which rows tell others where to look")
    ideal, own = _both(search, [state])[0]
    most = max(ideal + SPENT * search.guess, search.settings.margin * search.limits.mean)
    while own > search.settings.margin * search.limits.mean:
        live = set(state.live)
        trials = [
            state.looking_at([row], aim)
            for row in untouched.live
            if row not in live
            for aim in (*choices.get(row, [])[:1], BY_POSITION)
        ]
        if not trials:
            break
        losses = _both(search, trials)
        losses[losses[:, 0] > most, 1] = np.inf
        best = int(losses[:, 1].argmin())
        if losses[best, 1] > WORTH * own:
            break
        state, own = trials[best], losses[best, 1]
    return state


def _lightened(search: Search, state: State) -> State:
    """Give up steps, cheapest first, while neither loss rises by more than is to be spent."""
    spent = SPENT * search.guess
    most = _both(search, [state])[0] + spent
    search.progress.step("first answer: which steps it needs")
    while True:
        steps = steps_of(state, search.settings.path_share)
        trials = [state.doing_nothing(step.rows) for step in steps]
        if not trials:
            return state
        losses = _both(search, trials)
        over = (losses - most).max(-1)
        least = int(over.argmin())
        if over[least] > 0:
            return state
        state = trials[least]


def _both(search: Search, states: list[State]) -> Float[np.ndarray, "state 2"]:
    """The losses with all attention written down, and with what is left attending on its own."""
    every = [each for state in states for each in (state, state.computed)]
    found: np.ndarray = search.losses(every, roughly=True).mean(-1).reshape(-1, 2)
    return found


def _loss(search: Search, state: State) -> float:
    return float(search.losses([state], roughly=True)[0].mean())
