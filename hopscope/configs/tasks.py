"""The tasks over facts. Paper sections (§) refer to Musat (ICLR 2025)."""

import math
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hopscope.configs.config import Config, Positive, Real, Whole
from hopscope.facts import FactGraph, chain_of_facts, parse_facts


class VectorTask(Config):
    """What the tasks over real-valued vectors share."""

    chains: Positive = 4
    """Number N of chains interleaved in every sequence (§6: 4)."""
    dim: Positive = 4
    """Symbol dimension K, even (§6: 4)."""
    symbols: Literal["gaussian", "sphere", "one-hot"] = "gaussian"
    """How a symbol's vector is drawn: i.i.d. standard normal (§6), the same scaled to unit
    length, or distinct one-hot vectors."""
    position: Literal["token", "pair"] = "token"
    """Does each token have its own positional code (§6), or all tokens of a fact the same
    (the reading under which Theorem 1 is proved)?"""
    base: Annotated[Real, Field(gt=1)] = 10_000.0
    """Base of the rotary frequencies (Su et al.: 10000, which gives 1 and 0.01 for K = 4)."""
    order: Literal["backward", "forward", "shuffled"] = "backward"
    """Order of the facts: last hop first (§6), first hop first, or all shuffled together.
    The queries always come last."""
    curriculum: bool = True
    """Implicit curriculum (§7): ask for every hop's value, not for the last alone."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.dim % 2:
            raise ValueError(
                f"dim is {self.dim}; a rotary code pairs cosines and sines: make it even"
            )
        wanted = self.chains * self.symbols_per_chain()
        if self.symbols == "one-hot" and self.dim < wanted:
            raise ValueError(
                f"dim is {self.dim}; {wanted} distinct one-hot symbols need dim >= {wanted}"
            )
        return self

    def graph(self) -> FactGraph:
        """The facts of one chain."""
        raise NotImplementedError

    @property
    def decoy_count(self) -> int:
        """Decoys per chain of each fact with several keys."""
        return 0

    def joint_facts(self) -> list[int]:
        """The facts with several keys, by number."""
        return [number for number, fact in enumerate(self.graph().facts) if len(fact.keys) > 1]

    def symbols_per_chain(self) -> int:
        """Symbols of one chain, and values of its decoys."""
        return len(self.graph().symbols) + len(self.joint_facts()) * self.decoy_count


class Retrieval(VectorTask):
    """Retrieval over D hops (§6). Two chains, D = 2, shuffled inside each hop::

        b1 b2 · a1 a2 · a0 a1 · b0 b1 · b0 · a0
        └── last hop ──┘ └── first hop ─┘ └ queries ┘      targets: (b1 b2), (a1 a2)

    The model reads both queries and answers with x_1 … x_D of each query's chain (implicit
    curriculum), or with x_D alone.
    """

    kind: Literal["retrieval"] = "retrieval"
    hops: Positive = 3
    """Number D of look-ups from x_0 to x_D (§8: 3, §7: 5, §9: 4)."""

    def graph(self) -> FactGraph:
        return chain_of_facts(self.hops)

    # Without the graph: that of very many hops takes long to build, only to be refused.

    def joint_facts(self) -> list[int]:
        return []

    def symbols_per_chain(self) -> int:
        return self.hops + 1


class Induction(VectorTask):
    """Induction: retrieval with a single hop (Olsson et al. 2022). Two chains::

        b0 b1 · a0 a1 · a0 · b0          targets: a1, b1

    Two causal layers suffice, and one does not.
    """

    kind: Literal["induction"] = "induction"

    def graph(self) -> FactGraph:
        return chain_of_facts(1)


class ConditionalRetrieval(VectorTask):
    """Retrieval where a look-up may need several earlier results (§3.1). One chain of three::

        x y z · a y · a x · a            targets: x, y, z
        └ triple ┘                       (x, y) together lead to z

    Any acyclic set of look-ups is a task: write one fact per entry, `"x,y->z"`. With
    `decoys = m` every fact with several keys gets m more per chain, which share its first key
    but take the other keys from the next m chains; then one key alone no longer tells the value.
    """

    kind: Literal["conditional"] = "conditional"
    facts: tuple[str, ...] = ("a->x", "a->y", "x,y->z")
    """The look-ups of one chain, each `key[,key…]->value`."""
    decoys: Annotated[Whole, Field(ge=0)] = 0
    """Facts per chain that share the first key of a fact with several keys."""

    @model_validator(mode="after")
    def _decoys_have_chains(self) -> Self:
        if self.decoys >= self.chains:
            raise ValueError(
                f"decoys is {self.decoys}; they borrow keys of other chains: at most "
                f"chains - 1 = {self.chains - 1}"
            )
        return self

    def graph(self) -> FactGraph:
        return parse_facts(self.facts)

    @property
    def decoy_count(self) -> int:
        return self.decoys


class KHop(Config):
    """k-hop induction over tokens (Sanford et al. 2024). Every position asks.

    One hop from a position goes to its token's previous occurrence and takes the token after
    it; the next hop starts from that token, where it stands::

        position   0 1 2 3 4 5
        token      c a b a c a         the last a: hop 1 → c (after the a at 3), hop 2 → a (after
                                       the c at 0)

    Where a hop finds no earlier occurrence, its answer (and that of later hops) is the extra
    class "none".
    """

    kind: Literal["khop"] = "khop"
    hops: Positive = 2
    """Number k of previous-occurrence hops."""
    alphabet: Annotated[Whole, Field(ge=2)] = 8
    """Number of different tokens."""
    length: Annotated[Whole, Field(ge=2)] = 32
    """Tokens per sequence."""
    curriculum: bool = True
    """Ask for every hop's answer (implicit curriculum), not for the k-th alone."""


Task = Annotated[Retrieval | Induction | ConditionalRetrieval | KHop, Field(discriminator="kind")]


def guessing_level(task: Task) -> float:
    """The loss of the best answer that ignores the facts' connections.

    Vectors: the mean of the N candidates leaves 1 - 1/N of the mean square of a symbol's numbers,
    which is 1 for gaussian symbols and 1/dim for those of unit length. (Distinct one-hot symbols
    are as orthogonal as independent ones are on average.) Tokens: log of the alphabet.
    """
    if isinstance(task, KHop):
        return math.log(task.alphabet)
    square = 1.0 if task.symbols == "gaussian" else 1 / task.dim
    return square * (1 - 1 / task.chains)
