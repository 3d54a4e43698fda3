"""From rows to findings: how far answers follow, which heads bring it, and from where.

All shares are of the way from the own answer (0) to the partner's (1), over questions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float

from hopscope import intervals
from hopscope.circuits.parts import Estimate
from hopscope.configs import LlmMechanism
from hopscope.errors import NotLearned
from hopscope.llm.exchange import names
from hopscope.llm.rows import Measured, of_phase
from hopscope.tracing.patching import SURE, share_of

GAIN = 0.02
"""A role gains in a layer if the answer follows it by so much more behind it."""
LOOKS = 0.1
"""The least share of a row's attention to a role whose part of the row is patched."""


def estimate(sure: Float[np.ndarray, "question"], moved: Float[np.ndarray, "question"]) -> Estimate:
    """The share of the way, with its interval; nothing of the way where nothing is sure."""
    found = share_of(torch.from_numpy(sure.copy()), torch.from_numpy(moved.copy()))
    return found or Estimate(mean=0.0, low=0.0, high=0.0)


def surety(rows: Sequence[Measured], name: str) -> Float[np.ndarray, "question"]:
    """How much nearer the own answer is than the partner's, question by question."""
    clean = np.array([row["clean"][name] for row in rows], dtype=float)
    found: np.ndarray = clean[:, 1] - clean[:, 0]
    return found


@dataclass(frozen=True)
class Answered:
    """How the model answers the questions as they are."""

    right: int
    count: int
    guessing: float
    loss: float

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the share of right answers."""
        return intervals.share(self.right, self.count)

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"{self.right} of {self.count} answered right ({low:.2f} … {high:.2f}; guessing "
            f"{self.guessing:.2f})"
        )


def answered(rows: Sequence[Measured]) -> Answered:
    """The answers of the first phase."""
    return Answered(
        right=sum(row["right"] for row in rows),
        count=len(rows),
        guessing=float(np.mean([1 / row["acceptable"] for row in rows])),
        loss=float(np.mean([next(iter(row["clean"].values()))[2] for row in rows])),
    )


def check_answers(recipe: LlmMechanism, rows: Sequence[Measured]) -> None:
    """Refuse a model whose answers are no more the asked chain's than another's."""
    found = answered(rows)
    unsure = [
        name
        for name in names(recipe.prompts)
        if (sure := surety(rows, name)).sum() <= SURE * np.abs(sure).sum()
    ]
    if unsure or found.interval[0] <= found.guessing:
        raise NotLearned(
            f"{recipe.model} answers {recipe.prompts.label} at guessing level: {found}; no answer "
            "can follow another: ask for fewer hops, for an opening, or take another model"
        )


def role_shares(recipe: LlmMechanism, rows: Sequence[Measured]) -> dict[str, list[list[Estimate]]]:
    """For each exchange, role and layer (before it), how far answers follow the stream there."""
    its = of_phase(rows, "roles")
    found = {}
    for number, name in enumerate(names(recipe.prompts)):
        sure = surety(its, name)
        moved = np.array([row["moved"][number] for row in its], dtype=float)[..., 0]
        found[name] = [
            [estimate(sure, moved[:, role, layer]) for layer in range(moved.shape[2])]
            for role in range(moved.shape[1])
        ]
    return found


def cells(recipe: LlmMechanism, rows: Sequence[Measured], layers: Sequence[int]) -> list[list[int]]:
    """Layers and roles whose heads are worth patching: where a role gains, for any exchange."""
    shares = role_shares(recipe, rows)
    found = set()
    for its in shares.values():
        for role, by_layer in enumerate(its):
            for number, (before, behind) in enumerate(pairwise(by_layer)):
                if behind.mean - before.mean >= GAIN:
                    found |= {(layer, role) for layer in range(layers[number], layers[number + 1])}
    return [list(cell) for cell in sorted(found)]


@dataclass(frozen=True)
class HeadRow:
    """What one head brings to one role, and how far answers follow that alone."""

    layer: int
    head: int
    role: int
    shares: dict[str, Estimate]
    loss: Estimate
    """The loss if the row is the donor's, of that exchange which costs most."""
    agree: float
    """The share of questions whose answer moves the partner's way, by that exchange."""
    sources: tuple[int, ...]
    """The roles of the own chain that get a good share of the row's attention."""

    @property
    def most(self) -> Estimate:
        """Its largest share, of whichever exchange."""
        return max(self.shares.values(), key=lambda its: its.mean)


def head_rows(recipe: LlmMechanism, rows: Sequence[Measured]) -> list[HeadRow]:
    """All rows that were patched, the strongest first."""
    its = of_phase(rows, "heads")
    if not its:
        return []
    found = []
    moved = np.array([row["moved"] for row in its], dtype=float)  # [q, cell, name, head, mark]
    looks = np.array([row["looks"] for row in its], dtype=float).mean(0)  # [cell, head, role]
    all_names = names(recipe.prompts)
    sure = {name: surety(its, name) for name in all_names}
    clean = np.array([row["clean"][all_names[0]][2] for row in its])
    for cell, (layer, role) in enumerate(its[0]["cells"]):
        for head in range(moved.shape[3]):
            shares = {
                name: estimate(sure[name], moved[:, cell, number, head, 0])
                for number, name in enumerate(all_names)
            }
            losses = clean[:, None] + moved[:, cell, :, head, 2]
            worst = losses[:, losses.mean(0).argmax()]
            sources = tuple(int(n) for n in np.flatnonzero(looks[cell, head] >= LOOKS))
            farthest = max(range(len(all_names)), key=lambda n: shares[all_names[n]].mean)
            agree = float((moved[:, cell, farthest, head, 0] > 0).mean())
            found.append(HeadRow(layer, head, role, shares, plain(worst), agree, sources))
    return sorted(found, key=lambda row: -row.most.mean)


def counting(recipe: LlmMechanism, rows: Iterable[HeadRow]) -> list[HeadRow]:
    """The strongest rows of those that count."""
    its = [r for r in rows if r.most.mean >= recipe.tracing.counts and r.most.low > 0]
    return its[: recipe.tracing.most]


def plain(values: Float[np.ndarray, "question"]) -> Estimate:
    """A mean with its interval."""
    low, high = intervals.mean(values)
    return Estimate(mean=float(values.mean()), low=low, high=high)
