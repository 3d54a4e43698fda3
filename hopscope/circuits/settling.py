"""What of an explained circuit is needed, and what could stand in for it.

A part is needed if the loss without it is threefold: when all other heads follow the circuit, or
when the rows that matter attend on their own, or in the model as it is. The last two count because
a head that only tells later heads where to look costs nothing once those are told by hand; the
second finds what the last does not, where several heads can do the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from hopscope.circuits.ablation import Head
from hopscope.circuits.circuit import Alternative, paths_of
from hopscope.circuits.hypotheses import strongest
from hopscope.circuits.mechanism import AS_IS, BY_POSITION, FROM_MODEL, Mechanism, aim
from hopscope.circuits.search import Limits, Row, Search, State, with_aim, without
from hopscope.facts import Path, Role

Strengths = Float[np.ndarray, "_"]
"""How needed each part is."""

THREEFOLD = 3.0
"""A part is needed if the loss without it is at least this many times the loss with it,"""
FLOOR = 1e-3
"""which is taken to be at least this share of the guessing level."""
SURELY = 1.15
"""Other examples tell a little otherwise."""
MARGIN = 0.9
"""For the same reason a part is given up only if the loss stays this far below its limit."""
BETTER = 0.9
"""Heads are put back in the background if that lowers the loss to this share or below."""


@dataclass(frozen=True)
class Kept:
    """Rows that are given up together: one that is a path, or a head's rows that are none."""

    head: Head
    rows: tuple[Row, ...]
    paths: tuple[Path, ...] = ()
    informed: bool = True
    """Does the attention depend on anything? (Uniform and the like tell nobody where to look.)"""


@dataclass(frozen=True)
class Draft:
    """A circuit on the way, and its parts."""

    ideal: State
    """Every head follows its mechanism."""
    own: State
    """The rows that matter attend on their own, and all others do nothing."""
    untouched: State
    """All rows attend on their own."""
    parts: tuple[Kept, ...]
    ground: frozenset[Head] = frozenset()
    """Idle heads that were given their average back."""

    def without(self, part: Kept, search: Search) -> tuple[State, State, State]:
        """The three states without a part."""
        own, untouched = (search.less(state, part.rows) for state in (self.own, self.untouched))
        return without(self.ideal, part.rows), own, untouched

    def less(self, part: Kept, search: Search) -> "Draft":
        """Without a part.

        Rows that are no paths, or tell nobody where to look, stay where rows are left to
        themselves: the heads that were trained beside them expect them there.
        """
        known = bool(part.paths) and locates(part, self.parts)
        own = search.less(self.own, part.rows) if known else self.own
        rest = tuple(other for other in self.parts if other != part)
        return replace(self, ideal=without(self.ideal, part.rows), own=own, parts=rest)


def drafted(ideal: State, own: State, untouched: State) -> Draft:
    """All rows in parts: paths one by one; of each head, the other rows together."""
    parts: list[Kept] = []
    for head, mechanism in ideal.items():
        paths = paths_of(head, mechanism)
        readers = sorted({path.query for path in paths})
        for reader in readers:
            mine = tuple(path for path in paths if path.query == reader)
            parts.append(Kept(head, ((head, reader),), mine))
        parts += _pathless(head, mechanism, readers)
    return Draft(ideal, own, untouched, tuple(parts))


def _pathless(head: Head, mechanism: Mechanism, readers: Sequence[Role]) -> list[Kept]:
    """The other rows: those that follow position or place, and those that follow nothing."""
    parts = []
    for informed in (True, False):
        rows = tuple(
            (head, role)
            for role, its in mechanism.aims
            if role not in readers and (its.targets[0].where in FROM_MODEL) == informed
        )
        if rows:
            parts.append(Kept(head, rows, informed=informed))
    return parts


def settled(search: Search, draft: Draft, limits: Limits) -> Draft:
    """Give up what is not needed; then show what the rest is worth, and look once more."""
    draft, strength = _lightened(search, draft, strengths(search, draft), limits)
    grounded, strength = _grounded(search, draft, strength)
    if grounded is draft:
        return draft
    return _lightened(search, grounded, strength, limits)[0]


def _lightened(
    search: Search, draft: Draft, strength: Strengths, limits: Limits
) -> tuple[Draft, Strengths]:
    """Give up, one by one, what is not needed."""
    while True:
        step = _lighter(search, draft, strength, limits)
        if step is None:
            return draft, strength
        draft, strength = step


def _lighter(
    search: Search, draft: Draft, strength: Strengths, limits: Limits
) -> tuple[Draft, Strengths] | None:
    """Without the least needed part that can go and leaves the other paths as needed as before."""
    order = np.argsort(strength, kind="stable")
    for part in (draft.parts[n] for n in order if strength[n] < THREEFOLD):
        if part.head in draft.ground:
            continue
        trial = draft.less(part, search)
        if not limits.keeps(search.losses([trial.ideal]) / MARGIN)[0]:
            continue
        after = strengths(search, trial)
        if _weak_paths(trial, after) <= _weak_paths(draft, strength) - bool(part.paths):
            return trial, after
    return None


def _grounded(search: Search, draft: Draft, strength: Strengths) -> tuple[Draft, Strengths]:
    """While paths are weak, give idle heads their average back, those that help most first.

    A head that looks nowhere in particular still adds something to every position, and the heads
    after it were trained with that; uniform attention adds something else. The loss this leaves
    hides what the paths are worth.
    """
    base = float(search.losses([draft.ideal])[0].mean())
    while base > FLOOR * search.bench.probe.guess and _weak_paths(draft, strength):
        heads = [head for head in search.heads if not draft.ideal[head].readers]
        trials = [_on_average(search, draft.ideal, head) for head in heads]
        losses = search.losses(trials).mean(-1) if trials else np.array([np.inf])
        best = int(losses.argmin())
        if losses[best] > BETTER * base:
            break
        base = float(losses[best])
        better = drafted(trials[best], draft.own, draft.untouched)
        draft = replace(better, ground=draft.ground | {heads[best]})
        strength = strengths(search, draft)
    return draft, strength


def _on_average(search: Search, state: State, head: Head) -> State:
    """The head's rows by position."""
    for role in search.rows_of(head):
        state = with_aim(state, (head, role), BY_POSITION)
    return state


def strengths(search: Search, draft: Draft) -> Strengths:
    """How many times higher the loss is without each part, where it counts."""
    whole: list[State] = [draft.ideal, draft.own, draft.untouched]
    lesser = [state for part in draft.parts for state in draft.without(part, search)]
    losses = search.losses([*whole, *lesser], roughly=True).mean(-1).reshape(-1, len(whole))
    base = np.maximum(losses[0], FLOOR * search.bench.probe.guess)
    told, *free = (losses[1:] / base).T
    locating = np.array([locates(part, draft.parts) for part in draft.parts], dtype=bool)
    strong: Strengths = np.where(locating, np.maximum(told, np.max(free, axis=0)), told)
    return strong


def locates(part: Kept, parts: Sequence[Kept]) -> bool:
    """Can it tell later heads where to look? There must be one that reads there, or is read."""
    if not part.informed:
        return False
    readers = {role for _, role in part.rows}
    return any(
        path.layer > part.head[0] and readers & {path.query, path.key}
        for other in parts
        for path in other.paths
    )


def _weak_paths(draft: Draft, strength: Strengths) -> int:
    pairs = zip(strength.tolist(), draft.parts, strict=True)
    return sum(value < SURELY * THREEFOLD for value, part in pairs if part.paths)


Step = tuple[Role, Role]


def shared_steps(draft: Draft) -> dict[Step, list[Kept]]:
    """Steps (who reads whom) that parts of more than one head do."""
    steps: dict[Step, list[Kept]] = {}
    for part in draft.parts:
        for path in part.paths:
            steps.setdefault((path.query, path.key), []).append(part)
    return {step: parts for step, parts in sorted(steps.items()) if len(parts) > 1}


def alternatives(search: Search, draft: Draft, limits: Limits) -> tuple[Alternative, ...]:
    """Rows left out that do the same step as a path, and can stand in for it."""
    found = []
    for part in draft.parts:
        for path in part.paths:
            heads = _same_step(search, draft, path)
            if heads:
                found += _standing_in(search, draft, part, path, heads, limits)
    return tuple(found)


def _standing_in(
    search: Search, draft: Draft, part: Kept, path: Path, heads: list[Head], limits: Limits
) -> list[Alternative]:
    ideal, own, _ = draft.without(part, search)
    told = [with_aim(ideal, (head, path.query), aim("own", path.key)) for head in heads]
    free = [with_aim(own, (head, path.query), AS_IS) for head in heads]
    losses = search.losses(told)
    passed = limits.keeps(losses) & limits.keeps(search.losses(free))
    return [
        Alternative(path=_moved(path, head), instead_of=path, loss=float(loss.mean()))
        for head, loss, ok in zip(heads, losses, passed, strict=True)
        if ok
    ]


def _moved(path: Path, head: Head) -> Path:
    return replace(path, layer=head[0], head=head[1])


def _same_step(search: Search, draft: Draft, path: Path) -> list[Head]:
    """Heads whose row for this reader is left out, though it looks where the path does."""
    return [
        head
        for head in search.heads
        if path.query in search.rows_of(head)
        and path.query not in draft.ideal[head].readers
        and strongest(search.maps, *head, path.query) == path.key
    ]
