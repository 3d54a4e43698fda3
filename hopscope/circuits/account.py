"""The account of a circuit, as data: which symbols are decodable at its roles, and how answers
change when a site is patched with another chain's symbol.

It is measured in `hopscope.circuits.patching` and `circuit_patching`.
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
"""An effect counts if the answer moves (or leaves) by at least this share of its way, in either
direction: an arrow that works against others moves answers by less than 0."""
KEPT = 0.02
"""Effects below this share are not saved."""

Way = Literal["all", "values", "queries", "keys"]
WAYS: tuple[Way, ...] = get_args(Way)


class Site(Config):
    """Where a circuit is patched: attention rows of one head (or of several that share a step), or
    the part of their output that comes from one role, or from where a relation of the task leads.
    """

    layer: int
    heads: tuple[int, ...]
    destinations: tuple[Role, ...]
    source: Role | None = None
    """The source role; None: sources are those of `relation`, or else all positions."""
    chain: Literal["own", "others"] = "own"
    """Whether the source role is in the destination's own chain, or in all other chains."""
    relation: str = ""
    """The relation of the task that leads to the sources; empty without one."""
    times: Positive = 1
    """How many times the relation is followed."""

    @classmethod
    def of(cls, path: Path) -> "Site":
        """The site of one path: the part of its head's output that comes from its source."""
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
        """Source and destinations as text, without the head."""
        destinations = ", ".join(map(str, self.destinations))
        source = "everything" if self.source is None else str(self.source)
        if self.relation:
            source = str(Source("relation", None, self.relation, self.times))
        others = " of other chains" if self.chain == "others" else ""
        return f"{source}{others} → {destinations}"


class Effect(Config):
    """How one answer changes when a site is patched with another chain's symbol.

    | way     | what sees the other symbol                                                       |
    | all     | everything after the site                                                        |
    | values  | values and the output, with all attention fixed: the site moves content          |
    | queries | only the queries of later heads: the site routes what they look for              |
    | keys    | only the keys of later heads: the site routes where they find it                 |
    """

    symbol: str
    """The symbol that two chains exchange."""
    way: Way
    hop: int
    """The number of the answer's hop (or fact), from 1."""
    share: Estimate
    """How far the answer moves from its own chain's symbol (0) to the other chain's (1)."""
    left: Estimate
    """How far the answer leaves its own chain's symbol. An answer that is merely lost leaves, but
    does not move to the other chain's symbol."""

    @property
    def kept(self) -> bool:
        """True if the answer moves or leaves by at least 0.02, so that the effect is saved."""
        return max(abs(self.share.mean), abs(self.left.mean)) >= KEPT


class Patched(Config):
    """The effects of patching one site, for every symbol."""

    site: Site
    moves: tuple[Effect, ...]
    """The effects on all answers that move or leave by at least 0.02 of their way."""

    def moved(self, answers: dict[str, int]) -> dict[str, Estimate]:
        """The symbols whose content the site moves to their own answer, and how far it follows
        (below 0: it goes the other way).

        `answers` maps each symbol to the hop that asks for it, as {"x1": 1, "x2": 2}.
        """
        return {
            move.symbol: move.share
            for move in self.moves
            if move.way == "values" and answers.get(move.symbol) == move.hop and _counts(move.share)
        }

    def routes(self, way: Literal["queries", "keys"]) -> dict[str, tuple[int, ...]]:
        """The symbols that route later heads by their queries (what to look for) or keys (what is
        found here). Each comes with the hops whose answers change when the symbol is replaced by
        another chain's.
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
        """Every symbol that the site brings: answers change if another chain's replaces it."""
        return tuple(dict.fromkeys(move.symbol for move in self.moves if _counts(move.left)))


class Averaged(Config):
    """Losses when the output of a site is replaced by its mean (mean ablation, in two ways). The
    mean by place removes what depends on symbols; the mean by role also removes what depends on the
    position.
    """

    site: Site
    model: Estimate
    """Loss of the model."""
    by_place: Estimate
    """Loss when the site's output is its mean over examples, for each position."""
    by_role: Estimate
    """Loss when the site's output is its mean over examples and over all positions of a role."""
    gap: float
    """The loss with everything ablated minus the loss of the model."""

    @property
    def brings(self) -> Literal["place", "constant", "symbols"]:
        """What the answers need from the site: a constant (its mean by role is enough), the
        destination's place (its mean by position is enough), or symbols (neither is enough).
        """
        most = self.model.mean + Discovery().needed * self.gap
        if self.by_role.mean < most:
            return "constant"
        return "place" if self.by_place.mean < most else "symbols"


def _counts(share: Estimate) -> bool:
    return abs(share.mean) >= NAMED and share.low * share.high > 0


class Decodable(Config):
    """How decodable each symbol of its own chain is at every role, after every layer."""

    roles: tuple[Role, ...]
    symbols: tuple[str, ...]
    shares: tuple[tuple[tuple[float | None, ...], ...], ...]
    """[layer (0: the model's input), role, symbol], 0 to 1; None: the role never occurs."""

    def share(self, role: Role, symbol: str, layer: int) -> float | None:
        """How decodable the symbol is there, 0 to 1; None if the role never occurs."""
        return self.shares[layer][self.roles.index(role)][self.symbols.index(symbol)]

    def most(self, role: Role, symbol: str) -> tuple[float, int]:
        """The highest decodability of a symbol at a role, and the number of layers after which it
        is first reached.
        """
        layers = range(len(self.shares))
        return max(
            ((self.share(role, symbol, n) or 0.0, n) for n in layers), key=lambda its: its[0]
        )

    def held(self, role: Role, layer: int) -> tuple[str, ...]:
        """The symbols that are more than half decodable at a role."""
        return tuple(s for s in self.symbols if (self.share(role, s, layer) or 0.0) > HALF)


class Account(Config):
    """The symbols decodable at the roles of a circuit, and what each of its arrows brings."""

    decodable: Decodable
    patched: tuple[Patched, ...]
    """The effects of patching each path and the rows without paths; if such rows bring a symbol,
    also of patching what they bring from each role."""
    examples: int
    """How many minimal pairs were patched."""
    averaged: tuple[Averaged, ...] = ()
    """The mean ablations of each component that brings no symbol."""
    idle: tuple[Path, ...] = ()
    """Paths along which the model attends (within a chain) that are not in the circuit."""
    asked: dict[str, int] = Field(default_factory=dict)
    """The hop (from 1) that asks for each symbol; only for a circuit without a task."""

    def frame(self) -> Any:
        """A data frame (pandas) with a row for each site, exchanged symbol, way and answer that
        moves or leaves by at least 0.02 of its way.
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
        """The patched effects of a component as a whole, or of one of its paths. A path that was
        patched alone comes before the component's rows from the same source; None if neither was
        patched.
        """
        source = None if path is None else path.source
        alone = [its for its in self.patched if path is not None and its.site == Site.of(path)]
        shared = [its for its in self.patched if _is(its.site, component, source)]
        return next(iter(alone + shared), None)

    def mean_of(self, component: Component) -> Averaged | None:
        """The mean ablations of a component; None for components that bring a symbol."""
        return next((its for its in self.averaged if _is(its.site, component, None)), None)

    def arrows(self, component: Component) -> list[Patched | None]:
        """The patched effects of each path of a component; without paths, of the component as a
        whole.
        """
        return [self.of(component, path) for path in component.paths] or [self.of(component)]

    def symbols(self, component: Component) -> tuple[str, ...]:
        """Every symbol that a component brings, along any of its arrows: answers change if it is
        replaced by another chain's.
        """
        every = [its for its in self.arrows(component) if its is not None]
        return tuple(dict.fromkeys(symbol for its in every for symbol in its.symbols))

    def fetched(self, component: Component) -> list[Patched]:
        """The patched sites, from single roles to single roles, at which a component without paths
        brings a symbol.
        """
        return [
            its
            for its in self.patched
            if (its.site.layer, its.site.heads) == (component.layer, component.heads)
            and its.site.source is not None
            and {*its.site.destinations} <= {*component.destinations}
            and its.symbols
        ]

    def givers(self, source: Role, symbol: str, before: int) -> list[Patched]:
        """The patched sites that bring a symbol to a role before a layer; empty if the symbol is
        decodable in the input already.
        """
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
    """True if the site is this component's, as a whole or from this source."""
    mine = (component.layer, component.heads, {*component.destinations}, source)
    return (site.layer, site.heads, {*site.destinations}, site.source) == mine
