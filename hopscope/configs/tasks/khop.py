"""k-hop induction over tokens (Sanford et al. 2024)."""

import math
from statistics import fmean
from typing import Annotated, Literal

from pydantic import Field

from hopscope.configs.config import Hops, Whole
from hopscope.configs.model import Interface
from hopscope.configs.tasks.task import FactTask
from hopscope.facts import FactGraph, Role, chain_of_facts


class KHop(FactTask):
    """k-hop induction over tokens (Sanford et al. 2024). Every position asks.

    One hop from a position leads to the token after the previous occurrence of its token; the next
    hop starts from there::

        position   0 1 2 3 4 5
        token      c a b a c a         the last a: hop 1 → c (after the a at 3), hop 2 → a (after
                                       the c at 0)

    If a hop finds no earlier occurrence, its answer (and that of later hops) is the additional
    class "none". Roles are for the question of the last position (`query`): `key d` is the earlier
    occurrence that hop d finds, `value d` the token after it. If several apply to a position, it is
    the query, or else has the role of the lowest hop. All other positions are `other`.
    """

    kind: Literal["khop"] = "khop"
    hops: Hops = 2
    """Number k of previous-occurrence hops."""
    alphabet: Annotated[Whole, Field(ge=2)] = 8
    """Number of different tokens."""
    length: Annotated[Whole, Field(ge=2)] = 32
    """Tokens per sequence."""
    curriculum: bool = True
    """Ask for the answers of all hops (implicit curriculum), not only of the k-th."""

    def graph(self) -> FactGraph:
        return chain_of_facts(self.hops)

    def roles(self) -> tuple[Role, ...]:
        return (*self.graph().roles, Role("other"))

    def interface(self) -> Interface:
        return Interface(
            tokens=True,
            inputs=self.alphabet,
            length=self.length,
            read=self.length,
            outputs=(self.hops if self.curriculum else 1) * (self.alphabet + 1),
        )

    def chances(self, asking: int | None = None) -> tuple[float, ...]:
        """The entropy of each hop's answer ("none", or any token), averaged over positions.

        A hop continues from the place that it found, among the tokens before that place, about
        which nothing is known yet. The exception is a token that repeats the token before it: from
        there all hops lead back to it.
        """
        meets = 1 / self.alphabet
        known = [1.0] * self.length  # probability to find all hops so far among n tokens
        found = []
        for _ in range(self.hops):
            longer = [0.0]
            for before in known[:-1]:
                longer.append((1 - meets) * longer[-1] + meets * before)
            known = longer
            found.append([0.0, *(meets + (1 - meets) * each for each in known[:-1])])
        asked = range(self.length)[-(asking or self.length) :]
        every = [fmean(self._entropy(hop[place]) for place in asked) for hop in found]
        return tuple(every[hop - 1] for hop in self.asked_hops())

    def _entropy(self, found: float) -> float:
        """The entropy of an answer that is a token with probability `found`, else "none"."""
        parts = (1 - found, 1), (found, self.alphabet)
        return sum(-share * math.log(share / among) for share, among in parts if share > 0)

    def asks_every_hop(self) -> bool:
        return self.curriculum

    def asked_hops(self) -> tuple[int, ...]:
        return tuple(range(1, self.hops + 1)) if self.curriculum else (self.hops,)

    def chosen_hops(self) -> int:
        return self.hops

    def labelled_positions(self) -> int:
        """1: the roles are for the question of the last position."""
        return 1

    def swap_obstacle(self) -> str | None:
        return (
            "a token stands in the facts of many positions at once, so that another token in its "
            "place changes where other hops lead"
        )
