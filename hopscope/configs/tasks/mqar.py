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

    The first half of the alphabet are keys, the second half values. In one sequence all keys
    differ, and so do all values. After the pairs come query slots of two positions. A query is a
    repeated key at the first position of a query slot; the model answers with its value at that
    position. No key is asked twice. Every pair is a separate chain: `key 0`, `value 0` and, if it
    is asked, `query`. All other positions are `other`, in a chain without a pair.

    Two things differ from the original: any pair may be asked first (in the original, early pairs
    tend to be asked early), and random fillers are never keys of the same sequence.
    """

    kind: Literal["mqar"] = "mqar"
    pairs: Annotated[Whole, Field(ge=2)] = 4
    """Key-value pairs (Arora et al.: 4 to 64). A single pair would leave no choice."""
    queries: Positive | None = None
    """Number of pairs that are asked for; default: all, as in the original."""
    alphabet: Annotated[Whole, Field(ge=4)] = 32
    """Number of tokens, half of them keys, half of them values (Arora et al.: 8192)."""
    length: Positive = 32
    """Positions per sequence (Arora et al.: 64 to 512)."""
    power: Annotated[Real, Field(gt=0, le=1)] = 0.01
    """Query slot s = 1, 2, … has a query with a weight of s^(power - 1) (Arora et al.: 0.01, so
    that most queries come soon after the pairs); at 1 all slots are equally likely."""
    filler: Literal["random", "blank"] = "random"
    """Tokens at positions without a query: random ones that are not keys of the sequence, or a
    blank token. (The original's default is random, too.)"""

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
        """The number of queries in a sequence."""
        return self.pairs if self.queries is None else self.queries

    @property
    def keys(self) -> int:
        """The number of keys. Keys are the tokens 0, 1, …; values come after them."""
        return self.alphabet // 2

    @property
    def query_slots(self) -> int:
        """The number of query slots, of two positions each."""
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
        """The logarithm of the number of pairs: each of their values is equally likely."""
        return (math.log(self.pairs),)

    def asked_hops(self) -> tuple[int, ...]:
        return (1,)

    def swap_obstacle(self) -> str | None:
        return None
