"""What an arrow carries, by patching: it brings another chain's symbol; which answers follow?

1. Two chains exchange one symbol, wherever it stands: the *donor* example. All else is the same to
   the bit.
2. At one site (what a head brings to a role, or the part that comes from one role), the model's
   own example gets what the donor has there (`hopscope.tracing.patched`).
3. It is measured how far each answer moves from its own chain's symbol (0) to the other chain's
   (1), against symbols of third chains: an answer that is merely lost does not move at all.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from hopscope.circuits.adapters import AnyModel
from hopscope.circuits.carrying import KEPT, Cargo, Move, Site, Way
from hopscope.circuits.engine import Adapter
from hopscope.circuits.exam import Questions
from hopscope.circuits.parts import Estimate
from hopscope.errors import NotLearned
from hopscope.intervals import NORMAL_95
from hopscope.tracing.pairs import Pairs, pairs_of
from hopscope.tracing.patched import Answers, Patching, check_site, chunks_of, walkable

EXAMPLES = 64
"""Minimal pairs of examples on which cargo is measured, unless told otherwise."""
SURE = 0.3
"""Answers are a model's own if they are nearer to their own chain's symbols than to another's in
all, by this share of what they are nearer or farther in each example; at guessing level it is 0."""


@torch.no_grad()
def cargo(
    model: AnyModel,
    task: Questions | Pairs,
    sites: Sequence[Site],
    examples: int = EXAMPLES,
    seed: int = 0,
) -> tuple[Cargo, ...]:
    """What each site brings, and in which way it matters."""
    adapter = walkable(model)
    pairs = task if isinstance(task, Pairs) else pairs_of(task, examples, seed)
    for site in sites:
        check_site(adapter, pairs.exam, site)
    variants = [(number, name) for number in range(len(sites)) for name in pairs.donors]
    ways: tuple[Way, ...] = ("all", "values")
    if isinstance(adapter, Adapter):
        ways = ("all", "values", "queries", "keys")
    chunks = chunks_of(adapter, pairs.exam, len(variants) * len(ways))
    parts = [Patching(adapter, pairs, sites, some).moved(variants, ways) for some in chunks]
    sure = torch.cat([part[0] for part in parts])
    moved = torch.cat([part[1] for part in parts], 3)
    check_answers(sure)
    return tuple(
        Cargo(
            site=site,
            moves=_moves(pairs, sure, [(v, name) for v, (n, name) in enumerate(variants)
                                        if n == number], (moved, ways)),
            told=len(ways) == 4,
        )
        for number, site in enumerate(sites)
    )  # fmt: skip


def has_answers(sure: Float[Tensor, "batch *hop"]) -> Bool[Tensor, "*hop"]:
    """Where answers are the model's own: nearer to its own chain's symbols than to another's."""
    return sure.sum(0) > SURE * sure.abs().sum(0)


def check_answers(sure: Answers) -> None:
    """Refuse a model whose answers are no more its own chain's than another's."""
    if not has_answers(sure.flatten()):
        raise NotLearned(
            "this model's answers are no nearer to its own chain's symbols than to another's: it "
            "answers at guessing level, so that none can follow; train it further"
        )


def _moves(
    pairs: Pairs,
    sure: Answers,
    variants: Sequence[tuple[int, str]],
    found: tuple[Float[Tensor, "mark way variant batch hop"], Sequence[Way]],
) -> tuple[Move, ...]:
    """What is worth writing down of some variants."""
    moved, ways = found
    moves = []
    for variant, symbol in variants:
        for number, way in enumerate(ways):
            for column, hop in enumerate(pairs.hops):
                its = moved[:, number, variant, :, column]
                share, left = (share_of(sure[:, column], part) for part in (its[0], -its[1]))
                if share and left and max(abs(share.mean), abs(left.mean)) >= KEPT:
                    moves.append(Move(symbol=symbol, way=way, hop=hop, share=share, left=left))
    return tuple(moves)


def share_of(sure: Float[Tensor, "batch"], moved: Float[Tensor, "batch"]) -> Estimate | None:
    """How far the answers go from their own (0) to the other chain's (1), with the interval of a
    ratio (delta method). None for a hop of which the model has no answer of its own.
    """
    if not has_answers(sure):
        return None
    part, whole = moved.numpy(), sure.numpy()
    total = float(whole.sum())
    mean = float(part.sum() / total)
    spread = np.square(part - mean * whole).sum() * len(part) / max(1, len(part) - 1)
    half = NORMAL_95 * float(np.sqrt(spread)) / total
    return Estimate(mean=mean, low=mean - half, high=mean + half)
