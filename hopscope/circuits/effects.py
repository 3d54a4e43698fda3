"""Results of patching, as data: sites, and which answers follow when a site brings another chain's
symbol. Measured in `hopscope.circuits.patching` and `mean_ablation`.
"""

from typing import Literal

import numpy as np

from hopscope.circuits.components import Estimate
from hopscope.circuits.pattern import Source
from hopscope.configs import Config, Discovery
from hopscope.configs.config import Positive
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.theory import Path

NAMED = 0.1
"""An answer that moves (or leaves) by this share of its way, or more, counts."""
KEPT = 0.02
"""Answers that move less are not written down."""

Way = Literal["all", "values", "queries", "keys"]


class Site(Config):
    """Where something is brought: rows of a head (or of several that share a step), or the part of
    them that comes from one role, or from where a relation of the task leads.
    """

    layer: int
    heads: tuple[int, ...]
    readers: tuple[Role, ...]
    source: Role | None = None
    """The role that it comes from; unset: all that the rows bring."""
    chain: Literal["own", "others"] = "own"
    """From that role of the reader's own chain, or of all other chains."""
    relation: str = ""
    """The relation along which it comes; empty: it comes from a role, or from everywhere."""
    times: Positive = 1
    """How many times the relation is followed."""

    @classmethod
    def of(cls, path: Path) -> "Site":
        """The site of one path: what its head brings from its source to its reader."""
        return cls(layer=path.layer, heads=(path.head,), readers=(path.reader,), source=path.source)

    def __str__(self) -> str:
        return f"{'+'.join(f'{self.layer}.{head}' for head in self.heads)} {self.arrow}"

    @property
    def arrow(self) -> str:
        """From where to where, without the head."""
        readers = ", ".join(map(str, self.readers))
        source = "everything" if self.source is None else str(self.source)
        if self.relation:
            source = str(Source("relation", None, self.relation, self.times))
        others = " of other chains" if self.chain == "others" else ""
        return f"{source}{others} → {readers}"


class Effect(Config):
    """One answer that moves to another chain's when a site brings that chain's symbol.

    | way     | what of the model sees the other symbol                                          |
    | all     | everything behind the site                                                       |
    | values  | values and the output, while all attention stays as it is: content is moved       |
    | queries | queries of later heads, until attention changes: it routes what they look for    |
    | keys    | keys of later heads, until attention changes: it routes where they find it       |
    """

    symbol: str
    """The symbol that two chains exchange."""
    way: Way
    hop: int
    """The answer, by the number of its hop (or fact), from 1."""
    share: Estimate
    """How far the answer moves from its own chain's (0) to the other's (1)."""
    left: Estimate
    """How far it leaves its own chain's. An answer that is lost leaves, and does not move on."""


class Patched(Config):
    """What one site brings, symbol by symbol."""

    site: Site
    moves: tuple[Effect, ...]
    """Every answer that moves or leaves by 0.02 of its way or more."""
    told: bool = True
    """Are queries and keys patched, too? Every adapter can."""

    def moved(self, answers: dict[str, int]) -> dict[str, Estimate]:
        """The symbols that are moved from here to the answer, and how far their answers follow.

        `answers` says which hop asks for which symbol, as {"x1": 1, "x2": 2}.
        """
        if not isinstance(answers, dict) or not all(
            isinstance(symbol, str) and isinstance(hop, int | np.integer)
            for symbol, hop in answers.items()
        ):
            raise CircuitError(
                f'answers is {answers!r}; expected for each symbol its hop, as {{"x1": 1}}'
            )
        return {
            move.symbol: move.share
            for move in self.moves
            if move.way == "values" and answers.get(move.symbol) == move.hop and _counts(move.share)
        }

    def routes(self, way: Literal["queries", "keys"]) -> dict[str, tuple[int, ...]]:
        """The symbols that route later heads by their queries (what to look for) or keys (what is
        found here), with the hops whose answers leave when these are another chain's.
        """
        if way not in ("queries", "keys"):
            raise CircuitError(f"heads are routed by queries or by keys; got {way!r}")
        found: dict[str, tuple[int, ...]] = {}
        for move in self.moves:
            if move.way == way and _counts(move.left):
                found[move.symbol] = (*found.get(move.symbol, ()), move.hop)
        return found

    @property
    def symbols(self) -> tuple[str, ...]:
        """Every symbol that matters here: answers leave when it is another chain's."""
        return tuple(dict.fromkeys(move.symbol for move in self.moves if _counts(move.left)))


class Averaged(Config):
    """Losses when a site brings a mean instead of what it brings: what symbols add is gone, and
    then what the place adds, too (mean ablation, twice).
    """

    site: Site
    model: Estimate
    """Loss of the model."""
    by_place: Estimate
    """Loss when the site brings its mean over examples, position by position."""
    by_role: Estimate
    """Loss when it brings its mean over examples and over all positions of a role."""
    gap: float
    """The loss with everything ablated minus the loss of the model."""

    @property
    def brings(self) -> Literal["place", "constant", "symbols"]:
        """What the answers need of it: where the reader stands, or only that it brings what it
        usually does; else something that depends on symbols.
        """
        most = self.model.mean + Discovery().needed * self.gap
        if self.by_role.mean < most:
            return "constant"
        return "place" if self.by_place.mean < most else "symbols"


def _counts(share: Estimate) -> bool:
    return share.mean >= NAMED and share.low > 0
