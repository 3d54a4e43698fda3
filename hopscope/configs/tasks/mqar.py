"""Multi-query associative recall over tokens (Arora et al. 2024)."""

import math
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hopscope.configs.config import Positive, Real, Whole
from hopscope.configs.model import Interface
from hopscope.configs.tasks.task import FactTask
from hopscope.facts import FactGraph, Role, chain_of_facts


class MQAR(FactTask):
    """Multi-query associative recall (Arora et al., "Zoology", 2024). Three pairs, two queries::

        position   0  1   2  3   4  5   6  7  8  9  10 11
        token      k4 v2  k1 v5  k7 v3  k1 x  x  x  k4 x
                   └───── pairs ─────┘  └ queries, x between ┘    targets: v5 (at 6), v2 (at 10)

    The first half of the alphabet are keys, the second half values; in one sequence all keys
    differ, and so do all values. After the pairs come query slots of two positions. A query is a
    key seen before, at the first position of a query slot; the model answers with its value right
    there. No key is asked twice, and no other position is asked. Every pair is a chain of its own:
    `key 0`, `value 0` and, if it is asked, `query`. All other positions are `other`, in a chain
    that no pair shares.

    Two things differ from the original: any pair may be asked first (there, early pairs tend to be
    asked early), and random fillers are never keys of the same sequence.
    """

    kind: Literal["mqar"] = "mqar"
    pairs: Annotated[Whole, Field(ge=2)] = 4
    """Key-value pairs (Arora et al.: 4 to 64). A single pair would leave no choice."""
    queries: Positive | None = None
    """Pairs that are asked for; unset: all of them, as in the original."""
    alphabet: Annotated[Whole, Field(ge=4)] = 32
    """Tokens, half of them keys, half of them values (Arora et al.: 8192)."""
    length: Positive = 32
    """Positions per sequence (Arora et al.: 64 to 512)."""
    power: Annotated[Real, Field(gt=0, le=1)] = 0.01
    """Query slot s = 1, 2, … holds a query with a probability that falls as s^(power - 1) (Arora
    et al.: 0.01, so that most queries follow soon after the pairs); at 1 all slots are alike."""
    filler: Literal["random", "blank"] = "random"
    """Tokens at positions that ask nothing: any but the sequence's keys, or a token without
    meaning. (The original's default is random, too.)"""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.asked > self.pairs:
            raise ValueError(
                f"queries is {self.asked}; no pair is asked for twice, so {self.pairs} pairs have "
                f"at most {self.pairs}"
            )
        if self.keys < self.pairs:
            raise ValueError(
                f"alphabet is {self.alphabet}, half of it keys; {self.pairs} pairs with different "
                f"keys need alphabet >= {2 * self.pairs}"
            )
        if self.query_slots < self.asked:
            raise ValueError(
                f"length is {self.length}; {self.pairs} pairs and {self.asked} queries, of two "
                f"positions each, need length >= {2 * (self.pairs + self.asked)}"
            )
        return self

    @property
    def asked(self) -> int:
        """How many queries a sequence has."""
        return self.pairs if self.queries is None else self.queries

    @property
    def keys(self) -> int:
        """How many tokens are keys: those numbered 0, 1, …; the values follow."""
        return self.alphabet // 2

    @property
    def query_slots(self) -> int:
        """How many places there are for queries, of two positions each."""
        return (self.length - 2 * self.pairs) // 2

    def graph(self) -> FactGraph:
        return chain_of_facts(1)

    def roles(self) -> tuple[Role, ...]:
        return (*self.graph().roles, Role("other"))

    def interface(self) -> Interface:
        return Interface(
            tokens=True,
            inputs=self.alphabet + (self.filler == "blank"),
            length=self.length,
            read=self.length - 2 * self.pairs,
            outputs=self.alphabet,
        )

    def chances(self, asking: int | None = None) -> tuple[float, ...]:  # noqa: ARG002
        """The log of the pairs: any of the values seen may be the one."""
        return (math.log(self.pairs),)

    def asked_hops(self) -> tuple[int, ...]:
        return (1,)

    def swap_obstacle(self) -> str | None:
        return None
