"""Retrieval, induction and conditional retrieval: the tasks over real-valued vectors.

Paper sections (§) refer to Musat (ICLR 2025).
"""

from abc import abstractmethod
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hopscope.configs.config import Hops, Positive, Real, Whole
from hopscope.configs.model import Interface
from hopscope.configs.tasks.layout import Layout, Order
from hopscope.configs.tasks.task import FactTask
from hopscope.facts import FactGraph, Role, chain_of_facts, parse_facts


class VectorTask(FactTask):
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
    order: Order = "backward"
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
        wanted = self.chains * self.layout().symbols
        if self.symbols == "one-hot" and self.dim < wanted:
            raise ValueError(
                f"dim is {self.dim}; {wanted} distinct one-hot symbols need dim >= {wanted}"
            )
        return self

    @abstractmethod
    def graph(self) -> FactGraph:
        """The facts of one chain."""

    def layout(self) -> Layout:
        """What stands where in a sequence."""
        return Layout(self.graph(), self.chains, self.order)

    def roles(self) -> tuple[Role, ...]:
        return self.layout().roles

    def interface(self) -> Interface:
        return Interface(
            tokens=False,
            inputs=2 * self.dim,
            length=self.layout().length,
            read=self.chains * len(self.graph().known),
            outputs=self.dim * len(self.asked_hops()),
        )

    def chance(self) -> float:
        """The loss of the mean of the N candidates: 1 - 1/N of a symbol's mean square.

        The mean square of a symbol's numbers is 1 for gaussian symbols and 1/dim for those of unit
        length. (Distinct one-hot symbols are as orthogonal as independent ones are on average.) Of
        a single chain it is 0: there is one candidate, and nothing to look up.
        """
        square = 1.0 if self.symbols == "gaussian" else 1 / self.dim
        return square * (1 - 1 / self.chains)

    def asks_every_hop(self) -> bool:
        return self.curriculum

    def asked_hops(self) -> tuple[int, ...]:
        last = len(self.graph().facts)
        return tuple(range(1, last + 1)) if self.curriculum else (last,)

    def fact_order(self) -> tuple[int, ...] | None:
        """Last hop first, unless the task was told otherwise."""
        facts = tuple(range(len(self.graph().facts)))
        return {"backward": facts[::-1], "forward": facts, "shuffled": None}[self.order]

    def swap_obstacle(self) -> str | None:
        return None if self.chains > 1 else "it has 1 chain, which has none to exchange with"

    def ordered(self, order: Order) -> Self:
        """The same questions with their facts in another order."""
        return type(self)(**{**dict(self), "order": order})

    def rates(self) -> list[float]:
        """The frequencies of the rotary code, fastest first."""
        return [float(self.base ** (-2 * pair / self.dim)) for pair in range(self.dim // 2)]


class Retrieval(VectorTask):
    """Retrieval over D hops (§6). Two chains, D = 2, shuffled inside each hop::

        b1 b2 · a1 a2 · a0 a1 · b0 b1 · b0 · a0
        └── last hop ──┘ └── first hop ─┘ └ queries ┘      targets: (b1 b2), (a1 a2)

    The model reads both queries and answers with x_1 … x_D of each query's chain (implicit
    curriculum), or with x_D alone.
    """

    kind: Literal["retrieval"] = "retrieval"
    hops: Hops = 3
    """Number D of look-ups from x_0 to x_D (§8: 3, §7: 5, §9: 4)."""

    def graph(self) -> FactGraph:
        return chain_of_facts(self.hops)

    def chosen_hops(self) -> int:
        return self.hops


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
    facts: Annotated[tuple[str, ...], Field(max_length=127)] = ("a->x", "a->y", "x,y->z")
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

    def layout(self) -> Layout:
        return Layout(self.graph(), self.chains, self.order, self.decoys)
