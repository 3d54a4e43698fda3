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
from hopscope.circuits.components import Estimate
from hopscope.circuits.patching import SURE, share_of
from hopscope.configs import LlmMechanism, Prompts
from hopscope.errors import NotLearned
from hopscope.facts import Role
from hopscope.llm.exchange import names
from hopscope.llm.heads import ANSWER
from hopscope.llm.pairs import OPENING, OTHER, role_table
from hopscope.llm.rows import Measured, of_phase
from hopscope.milestones import HALF

ASKING = (Role("query"), OPENING, OTHER, ANSWER)
"""The roles from the question on."""
LOOKS = 0.1
"""The least share of a row's attention to a role whose part of the row is patched."""


def estimate(
    sure: Float[np.ndarray, "question"], moved: Float[np.ndarray, "question"]
) -> Estimate | None:
    """The share of the way, with its interval; None where the answers are not the model's own, so
    that no way can be measured.
    """
    measured = np.isfinite(moved)  # not every question meets every random draw
    return share_of(torch.from_numpy(sure[measured]), torch.from_numpy(moved[measured]))


def surety(rows: Sequence[Measured], name: str) -> Float[np.ndarray, "question"]:
    """How much nearer the own answer is than the partner's, question by question."""
    clean = np.array([row["clean"][name] for row in rows], dtype=float)
    found: np.ndarray = clean[:, 1] - clean[:, 0]
    return found


def followed(recipe: LlmMechanism) -> tuple[str, ...]:
    """The exchanges that a run makes."""
    known = () if recipe.tracing.given else recipe.prompts.graph().known
    return tuple(name for name in names(recipe.prompts) if name not in known)


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


def check_answers(
    recipe: LlmMechanism,
    prompts: Prompts,
    rows: Sequence[Measured],
    names_: Sequence[str],
    which: str,
) -> None:
    """Refuse a model that guesses the answers to these questions."""
    found = answered(rows)
    if found.interval[0] <= found.guessing:
        raise NotLearned(
            f"{recipe.model} answers {prompts.label} at guessing level: {found}: ask for fewer "
            "hops, for an opening or another formulation, or take another model"
        )
    check_sure(recipe, rows, names_, which)


def check_sure(
    recipe: LlmMechanism, rows: Sequence[Measured], names_: Sequence[str], which: str
) -> None:
    """Refuse to go on from questions whose answers are not the model's own: none could follow
    another. `which` is the option that says how many there are.
    """
    its = {name: surety(rows, name) for name in names_}
    unsure = [name for name, sure in its.items() if sure.sum() <= SURE * np.abs(sure).sum()]
    if unsure:
        raise NotLearned(
            f"{recipe.model} is as near to the partner's answer as to its own on {len(rows)} "
            f"questions ({', '.join(unsure)}): take more (--{which})"
        )


def role_shares(recipe: LlmMechanism, rows: Sequence[Measured]) -> dict[str, list[list[Estimate]]]:
    """For each exchange, role and layer (before it), how far answers follow the stream there; an
    exchange after which no way can be measured is absent.
    """
    its = of_phase(rows, "roles")
    found = {}
    for number, name in enumerate(followed(recipe)):
        sure = surety(its, name)
        moved = np.array([row["moved"][number] for row in its], dtype=float)[..., 0]
        if all(by_role := [_along(sure, moved[:, role]) for role in range(moved.shape[1])]):
            found[name] = by_role
    return found


def _along(
    sure: Float[np.ndarray, "question"], moved: Float[np.ndarray, "question layer"]
) -> list[Estimate]:
    """The share before each layer; none at all where no way can be measured."""
    return [share for layer in moved.T if (share := estimate(sure, layer))]


Cell = tuple[int, int, list[int]]
"""A layer, a role, and the numbers of the exchanges with which it is patched."""


def cells(recipe: LlmMechanism, rows: Sequence[Measured], layers: Sequence[int]) -> list[Cell]:
    """Layers and roles whose heads are worth patching: where a role gains, with what it gains."""
    found: dict[tuple[int, int], list[int]] = {}
    for name, its in role_shares(recipe, rows).items():
        for role, by_layer in enumerate(its):
            for number, (before, behind) in enumerate(pairwise(by_layer)):
                if behind.mean - before.mean >= recipe.tracing.gains:
                    for layer in range(layers[number], layers[number + 1]):
                        found.setdefault((layer, role), []).append(followed(recipe).index(name))
    return [(*cell, found[cell]) for cell in sorted(found)]


def peaks(recipe: LlmMechanism, rows: Sequence[Measured], layers: Sequence[int]) -> list[Cell]:
    """Where to ask fresh questions what every role holds: until where it holds the word that stands
    there, from where on what is brought to it; roles behind the question wherever they hold most.
    """
    table, known = role_table(recipe.prompts), recipe.prompts.graph().known
    found: dict[tuple[int, int], list[int]] = {}
    for name, its in role_shares(recipe, rows).items():
        for role, by_layer in enumerate(its if name not in known else ()):
            held = [n for n, share in enumerate(by_layer) if share.mean > HALF]
            if held:
                best = held[-1] if held[0] == 0 else held[0]
            else:
                best = max(range(1, len(by_layer)), key=lambda n: by_layer[n].mean)
            if held or table[role] in ASKING:
                found.setdefault((layers[best], role), []).append(followed(recipe).index(name))
    return [(*cell, found[cell]) for cell in sorted(found)]


@dataclass(frozen=True)
class HeadRow:
    """What one head brings to one role, and how far answers follow that alone."""

    layer: int
    head: int
    role: int
    shares: dict[str, Estimate]
    """For each exchange that it was patched with, where answers can follow."""
    rise: Estimate
    """By how much the loss rises if the row is the donor's, of that exchange which costs most."""
    sources: dict[int, float]
    """The roles of the own chain that get a good share of the row's attention, with that share."""

    @property
    def most(self) -> Estimate:
        """Its largest share, of whichever exchange."""
        return max(self.shares.values(), key=lambda its: its.mean)


def head_rows(recipe: LlmMechanism, rows: Sequence[Measured]) -> list[HeadRow]:
    """All rows that were patched and can be measured, the strongest first."""
    its = of_phase(rows, "heads")
    if not its:
        return []
    found = []
    looks = np.array([row["looks"] for row in its], dtype=float).mean(0)  # [cell, head, role]
    all_names = followed(recipe)
    sure = {name: surety(its, name) for name in all_names}
    for cell, (layer, role, exchanged) in enumerate(its[0]["cells"]):
        its_names = [all_names[n] for n in exchanged]
        moved = np.array([row["moved"][cell] for row in its], dtype=float)  # [q, name, head, mark]
        for head in range(moved.shape[2]):
            shares = {
                name: share
                for number, name in enumerate(its_names)
                if (share := estimate(sure[name], moved[:, number, head, 0]))
            }
            rises = moved[:, :, head, 2]
            worst = rises[:, rises.mean(0).argmax()]
            sources = {n: float(look) for n, look in enumerate(looks[cell, head]) if look >= LOOKS}
            if shares:
                found.append(HeadRow(layer, head, role, shares, Estimate.of(worst), sources))
    return sorted(found, key=lambda row: -row.most.mean)


def counting(recipe: LlmMechanism, rows: Iterable[HeadRow]) -> list[HeadRow]:
    """The strongest rows of those that count."""
    its = [r for r in rows if r.most.mean >= recipe.tracing.counts and r.most.low > 0]
    return its[: recipe.tracing.most]
