"""What each row of attention looks at, read off in one pass: aims along relations and at roles.

For every row (one head's attention from the positions of one role) the target that gets most of
its attention is looked for, among where the task's relations lead, the positions of other roles,
the position before, and the reader itself. A target counts by what it gets beyond an even share,
at the positions from which it can be seen. Where the best leads nowhere the next best is asked
for; and if different targets are best under different conditions, the aim says so.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from hopscope.circuits.attention import patterns
from hopscope.circuits.exam import Exam
from hopscope.circuits.mechanism import Aim, Target
from hopscope.circuits.painter import Painter, Spots
from hopscope.circuits.state import Row
from hopscope.circuits.subject import Subject, Whole
from hopscope.facts import Role

MOST_TIMES = 8
"""A relation is followed at most so many times, …"""
SELDOM = 0.05
"""… and no further than it leads somewhere from this share of positions. The same share is too
small for a fallback to be looked for."""
LONGEST = 3
"""How many aims may stand one behind the other."""


@dataclass(frozen=True)
class Seen:
    """What the rows of one role look at in all heads of a layer, target by target."""

    targets: Sequence[Target]
    there: Bool[Tensor, "target spot"]
    """Can the target be seen from there?"""
    gained: Float[Tensor, "target spot head"]
    """What it gets beyond an even share."""


def read_off(
    exam: Exam, subject: Subject | Whole, painter: Painter, least: float
) -> dict[Row, list[Aim]]:
    """For every row that looks at something, aims that say what; the most exact first.

    Targets that get less than `least` beyond an even share are not taken.
    """
    conditions = [*exam.conditions]
    found: dict[Row, list[Aim]] = {}
    for layer, pattern in enumerate(patterns(subject, exam.inputs)):
        for role in exam.table:
            spots = painter.spots(role, exam.length)
            if not len(spots):
                continue
            seen = _seen(pattern, painter, spots, role)
            inside = {name: exam.condition(name)[spots.example, spots.row] for name in conditions}
            for head in range(subject.heads):
                if aims := _aims(seen, head, inside, least):
                    found[(layer, head), role] = aims
    return found


def _aims(seen: Seen, head: int, inside: dict[str, Tensor], least: float) -> list[Aim]:
    """One aim for each condition if these differ; then the one that is best overall."""
    everywhere = torch.ones_like(seen.there[0])
    overall = _chain(seen, head, everywhere, least)
    chains = {name: _chain(seen, head, its & everywhere, least) for name, its in inside.items()}
    aims = []
    if len({tuple(chain[:1]) for chain in chains.values()}) > 1:
        each = [Aim(((t, 1.0),), name) for name, chain in chains.items() for t in chain]
        aims.append(each[0].or_else(*each[1:]))
    if overall:
        first, *others = (Aim(((target, 1.0),)) for target in overall)
        aims += [first.or_else(*others), *([first] if others else [])]
    return aims


def _chain(seen: Seen, head: int, left: Bool[Tensor, "spot"], least: float) -> list[Target]:
    """The best target at these positions, then the best where that leads nowhere, and so on."""
    chain: list[Target] = []
    few = SELDOM * int(left.sum())
    while len(chain) < LONGEST and int(left.sum()) > few:
        here = seen.there & left
        counts = here.sum(-1)
        means = (seen.gained[..., head] * here).sum(-1) / counts.clamp_min(1)
        means[counts <= few] = -1.0
        best = int(means.argmax())
        if means[best] < least:
            break
        chain.append(seen.targets[best])
        left = left & ~seen.there[best]
    return chain


def _seen(
    pattern: Float[Tensor, "batch head seq seq"], painter: Painter, spots: Spots, role: Role
) -> Seen:
    rows = pattern[spots.example, :, spots.row]
    visible = painter.seen[spots.row].sum(-1, keepdim=True)
    targets, there, gained = [], [], []
    for target in _targets(painter, role):
        mask = painter.leads(target, spots)
        even = mask.sum(-1, keepdim=True) / visible
        targets.append(target)
        there.append(mask.any(-1))
        gained.append(torch.einsum("shk,sk->sh", rows, mask.to(rows.dtype)) - even)
    return Seen(targets, torch.stack(there), torch.stack(gained))


def _targets(painter: Painter, reader: Role) -> Iterator[Target]:
    """What a row may look at."""
    exam = painter.exam
    for name in exam.relations:
        for times in range(1, MOST_TIMES + 1):
            if float((exam.followed(name, times) >= 0).float().mean()) < SELDOM:
                break
            yield Target("relation", None, name, times)
    yield from (Target("own", role) for role in exam.table if role != reader)
    yield Target("previous")
    yield Target("itself")
