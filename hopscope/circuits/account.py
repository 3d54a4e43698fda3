"""What is moved in a circuit, as data: sites, the answers that follow when a site brings another
chain's symbol, what the roles hold, and what the arrows bring.

Measured in `hopscope.circuits.patching` and `circuit_patching`.
"""

from typing import Any, Literal, get_args

from pydantic import Field

from hopscope.circuits.components import Component, Estimate, estimate_columns
from hopscope.circuits.pattern import Source
from hopscope.configs import Config, Discovery
from hopscope.configs.config import Positive
from hopscope.display import data_frame
from hopscope.facts import Role
from hopscope.milestones import HALF
from hopscope.theory import Path

NAMED = 0.1
"""An answer that moves (or leaves) by this share of its way, or more, counts."""
KEPT = 0.02
"""Answers that move less are not written down."""

Way = Literal["all", "values", "queries", "keys"]
WAYS: tuple[Way, ...] = get_args(Way)


class Site(Config):
    """Where something is brought: rows of a head (or of several that share a step), or the part of
    them that comes from one role, or from where a relation of the task leads.
    """

    layer: int
    heads: tuple[int, ...]
    destinations: tuple[Role, ...]
    source: Role | None = None
    """The role that it comes from; unset: all that the rows bring."""
    chain: Literal["own", "others"] = "own"
    """From that role of the destination's own chain, or of all other chains."""
    relation: str = ""
    """The relation along which it comes; empty: it comes from a role, or from everywhere."""
    times: Positive = 1
    """How many times the relation is followed."""

    @classmethod
    def of(cls, path: Path) -> "Site":
        """The site of one path: what its head brings from its source to its destination."""
        return cls(
            layer=path.layer,
            heads=(path.head,),
            destinations=(path.destination,),
            source=path.source,
        )

    def __str__(self) -> str:
        return f"{'+'.join(f'{self.layer}.{head}' for head in self.heads)} {self.arrow}"

    @property
    def arrow(self) -> str:
        """From where to where, without the head."""
        destinations = ", ".join(map(str, self.destinations))
        source = "everything" if self.source is None else str(self.source)
        if self.relation:
            source = str(Source("relation", None, self.relation, self.times))
        others = " of other chains" if self.chain == "others" else ""
        return f"{source}{others} → {destinations}"


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

    @property
    def kept(self) -> bool:
        """Does the answer move or leave far enough to be written down?"""
        return max(abs(self.share.mean), abs(self.left.mean)) >= KEPT


class Patched(Config):
    """What one site brings, symbol by symbol."""

    site: Site
    moves: tuple[Effect, ...]
    """Every answer that moves or leaves by 0.02 of its way or more."""

    def moved(self, answers: dict[str, int]) -> dict[str, Estimate]:
        """The symbols that are moved from here to the answer, and how far their answers follow.

        `answers` says which hop asks for which symbol, as {"x1": 1, "x2": 2}.
        """
        return {
            move.symbol: move.share
            for move in self.moves
            if move.way == "values" and answers.get(move.symbol) == move.hop and _counts(move.share)
        }

    def routes(self, way: Literal["queries", "keys"]) -> dict[str, tuple[int, ...]]:
        """The symbols that route later heads by their queries (what to look for) or keys (what is
        found here), with the hops whose answers leave when these are another chain's.
        """
        found: dict[str, tuple[int, ...]] = {}
        for move in self.moves:
            if move.way == way and _counts(move.left):
                found[move.symbol] = (*found.get(move.symbol, ()), move.hop)
        return found

    @property
    def routed(self) -> tuple[str, ...]:
        """The symbols that route later heads, by queries or keys."""
        return tuple(self.routes("queries") | self.routes("keys"))

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
        """What the answers need of it: where the destination stands, or only that it brings what it
        usually does; else something that depends on symbols.
        """
        most = self.model.mean + Discovery().needed * self.gap
        if self.by_role.mean < most:
            return "constant"
        return "place" if self.by_place.mean < most else "symbols"


def _counts(share: Estimate) -> bool:
    return share.mean >= NAMED and share.low > 0


class Decodable(Config):
    """How much of each symbol of its own chain every role holds, after every layer."""

    roles: tuple[Role, ...]
    symbols: tuple[str, ...]
    shares: tuple[tuple[tuple[float | None, ...], ...], ...]
    """[layer (0: what the model is given), role, symbol], 0 to 1; None: the role never occurs."""

    def share(self, role: Role, symbol: str, layer: int) -> float | None:
        """How much of a symbol is there; None where the role never occurs."""
        return self.shares[layer][self.roles.index(role)][self.symbols.index(symbol)]

    def most(self, role: Role, symbol: str) -> tuple[float, int]:
        """The most of a symbol that a role holds, and after how many layers it first does."""
        layers = range(len(self.shares))
        return max(
            ((self.share(role, symbol, n) or 0.0, n) for n in layers), key=lambda its: its[0]
        )

    def held(self, role: Role, layer: int) -> tuple[str, ...]:
        """The symbols of which more than half is there."""
        return tuple(s for s in self.symbols if (self.share(role, s, layer) or 0.0) > HALF)


class Account(Config):
    """What every role of a circuit holds, and what each of its arrows brings."""

    decodable: Decodable
    patched: tuple[Patched, ...]
    """What each path brings, what rows without paths bring, and for those that matter, what they
    bring from each role."""
    examples: int
    """Minimal pairs that were patched."""
    averaged: tuple[Averaged, ...] = ()
    """Of each part that brings no symbol: what is left when it brings its mean."""
    idle: tuple[Path, ...] = ()
    """Paths of the model (what roles look at in their own chain) that the circuit does without."""
    asked: dict[str, int] = Field(default_factory=dict)
    """The hop that asks for each symbol, from 1, in a circuit of no task; else the task says."""

    def frame(self) -> Any:
        """A data frame (pandas) with a row for each site, exchanged symbol, way and answer: how far
        the answer moves and leaves, if by 0.02 of its way or more.
        """
        return data_frame(
            {
                "layer": its.site.layer,
                "heads": "+".join(map(str, its.site.heads)),
                "arrow": its.site.arrow,
                "symbol": move.symbol,
                "way": move.way,
                "hop": move.hop,
                **estimate_columns("share", move.share),
                **estimate_columns("left", move.left),
            }
            for its in self.patched
            for move in its.moves
        )

    def of(self, component: Component, path: Path | None = None) -> Patched | None:
        """What a part brings in all, or along one of its paths: of a step that heads share, or of
        several destinations, what that path alone brings.
        """
        source = None if path is None else path.source
        alone = [its for its in self.patched if path is not None and its.site == Site.of(path)]
        shared = [its for its in self.patched if _is(its.site, component, source)]
        return next(iter(alone + shared), None)

    def mean_of(self, component: Component) -> Averaged | None:
        """What is left when a part brings its mean; of parts that bring symbols it is not asked."""
        return next((its for its in self.averaged if _is(its.site, component, None)), None)

    def arrows(self, component: Component) -> list[Patched | None]:
        """What a part brings along each of its paths; of rows without paths, in all."""
        return [self.of(component, path) for path in component.paths] or [self.of(component)]

    def symbols(self, component: Component) -> tuple[str, ...]:
        """Every symbol that a part brings, along all of its arrows: answers leave when it is
        another chain's.
        """
        every = [its for its in self.arrows(component) if its is not None]
        return tuple(dict.fromkeys(symbol for its in every for symbol in its.symbols))

    def fetched(self, component: Component) -> list[Patched]:
        """What the rows of a part that form no path bring from single roles to single roles."""
        return [
            its
            for its in self.patched
            if (its.site.layer, its.site.heads) == (component.layer, component.heads)
            and its.site.source is not None
            and {*its.site.destinations} <= {*component.destinations}
            and its.symbols
        ]

    def givers(self, source: Role, symbol: str, before: int) -> list[Patched]:
        """What put a symbol at a role before a layer; nothing if it was given with the input."""
        if symbol in self.decodable.held(source, 0):
            return []
        return [
            its
            for its in self.patched
            if its.site.layer < before
            and its.site.source is not None
            and source in its.site.destinations
            and symbol in its.symbols
        ]


def _is(site: Site, component: Component, source: Role | None) -> bool:
    """Is it what this part brings, in all or from this source?"""
    mine = (component.layer, component.heads, {*component.destinations}, source)
    return (site.layer, site.heads, {*site.destinations}, site.source) == mine
