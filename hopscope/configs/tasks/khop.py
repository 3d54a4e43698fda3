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
        """The loss of the best answer that knows only its position and the token there, averaged
        over positions: the entropy of "none", this token or any other.

        From a token that repeats the token before it, all hops lead back to it. Otherwise a hop
        leads to a token that differs from the one before it, and nothing is known yet about the
        tokens before these two.
        """
        meets, same = 1 / self.alphabet, 1 / (self.alphabet - 1)

        def hop(one_back: list[float], further: list[float]) -> list[float]:
            """The chances of an event one hop earlier, with n = 0, 1, … unknown tokens before."""
            chances, far = [0.0], 0.0
            for near, next_far in zip(one_back[:-1], further[:-1], strict=True):
                chances.append(meets * near + far)
                far = (1 - meets) * (far + meets * next_far)
            return chances

        # The hops end at any token; and they end at the asker's token, if it is here, just before,
        # or neither.
        ends = here = [1.0] * self.length
        before = neither = [0.0] * self.length
        found = []
        for _ in range(self.hops):
            other = [same * a + (1 - same) * b for a, b in zip(here, neither, strict=True)]
            ends, here, before, neither = (
                hop(ends, ends), hop(before, before), hop(here, other), hop(neither, other)
            )  # fmt: skip
            repeats = [[meets + (1 - meets) * p for p in each[:-1]] for each in (ends, here)]
            found.append([(0.0, 0.0), *zip(*repeats, strict=True)])
        asked = range(self.length)[-(asking or self.length) :]
        every = [fmean(self._entropy(*hop[place]) for place in asked) for hop in found]
        return tuple(every[hop - 1] for hop in self.asked_hops())

    def _entropy(self, found: float, own: float) -> float:
        """The entropy of an answer that is a token with probability `found` (the asker's token with
        probability `own`), else "none".
        """
        parts = (1 - found, 1), (own, 1), (found - own, self.alphabet - 1)
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
