"""What of an explained circuit is needed; the rest is removed.

A unit is needed if removing it multiplies the loss by 3 (`Discovery.needed`) in any of three
states: `ideal` (every head replaced by its mechanism), `own` (the circuit's rows compute their
attention from what the circuit alone provides, all else is ablated), `untouched` (the model). The
last two count for heads that can tell later heads where to look: `ideal` hides these, since there
all attention is written down; `untouched` hides them where a backup head does the same, and `own`
does not. A unit is needed as well if the rest finds its way with it, and not without it.
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from hopscope.circuits.draft import Draft, drafted
from hopscope.circuits.mechanism import BY_POSITION
from hopscope.circuits.search import Search

Strengths = Float[np.ndarray, "_"]
"""For each unit of a draft, how many times higher the loss is without it."""


def settled(search: Search, draft: Draft) -> Draft:
    """Remove what is not needed; then show what the rest is worth, and remove once more."""
    draft, strength = _lightened(search, draft, strengths(search, draft))
    averaged, strength = _averaged(search, draft, strength)
    if averaged is draft:
        return draft
    return _lightened(search, averaged, strength)[0]


def strengths(search: Search, draft: Draft) -> Strengths:
    """How many times higher the loss is without each unit, in the states that count for it."""
    several = [draft.states, *(draft.states.without(u, search.sources) for u in draft.units)]
    states = [state for each in several for state in (each.ideal, each.own, each.untouched)]
    losses = search.losses(states, roughly=True).mean(-1).reshape(-1, 3)
    ideal, *free = (losses[1:] / np.maximum(losses[0], search.floor)).T
    locating = np.array([draft.locates(unit) for unit in draft.units], dtype=bool)
    strong: Strengths = np.where(locating, np.maximum(ideal, np.max(free, axis=0)), ideal)
    return strong


def _lightened(search: Search, draft: Draft, strength: Strengths) -> tuple[Draft, Strengths]:
    """Remove, one by one, what is not needed."""
    while True:
        step = _lighter(search, draft, strength)
        if step is None:
            return draft, strength
        draft, strength = step


def _lighter(search: Search, draft: Draft, strength: Strengths) -> tuple[Draft, Strengths] | None:
    """The draft without the least needed unit that can go and leaves no other path weaker."""
    settings = search.settings
    order = np.argsort(strength, kind="stable")
    for unit in (draft.units[n] for n in order if strength[n] < settings.needed):
        if unit.head in draft.averaged:
            continue
        trial = draft.removed(unit)
        if not _keeps(search, draft, trial):
            continue
        after = strengths(search, trial)
        weak = _weak_paths(search, draft, strength) - bool(unit.paths)
        if _weak_paths(search, trial, after) <= weak:
            return trial, after
    return None


def _keeps(search: Search, draft: Draft, trial: Draft) -> bool:
    """True if the trial still solves the task; and finds its way, if the draft does."""
    states = [trial.states.ideal, trial.states.own, draft.states.own]
    losses = search.losses(states) / search.settings.margin
    solves, finds_its_way, did = search.limits.keep(losses).tolist()
    return bool(solves and (finds_its_way or not did))


def _averaged(search: Search, draft: Draft, strength: Strengths) -> tuple[Draft, Strengths]:
    """While paths are weak, give idle heads their average back, those that help most first.

    A head that looks nowhere in particular still adds something to every position, and the heads
    after it were trained with that; uniform attention adds something else. The loss this leaves
    hides what the paths are worth.
    """
    base = float(search.losses([draft.states.ideal])[0].mean())
    while base > search.floor and _weak_paths(search, draft, strength):
        ideal, heads = draft.states.ideal, draft.states.ideal.idle
        rows = [[(head, role) for role in search.readers_of(head[0])] for head in heads]
        trials = [ideal.looking_at(its, BY_POSITION) for its in rows]
        losses = search.losses(trials).mean(-1) if trials else np.array([np.inf])
        best = int(losses.argmin())
        if losses[best] > search.settings.better * base:
            break
        base = float(losses[best])
        better = drafted(replace(draft.states, ideal=trials[best]), search.settings.path_share)
        draft = replace(better, averaged=draft.averaged | {heads[best]})
        strength = strengths(search, draft)
    return draft, strength


def _weak_paths(search: Search, draft: Draft, strength: Strengths) -> int:
    """How many units that form paths are not surely needed."""
    sure = search.settings.surely * search.settings.needed
    pairs = zip(strength.tolist(), draft.units, strict=True)
    return sum(value < sure for value, unit in pairs if unit.paths)
