"""What is moved in a circuit, as data: what its roles hold, and what its arrows bring.

Measured in `hopscope.circuits.circuit_patching`.
"""

from pydantic import Field

from hopscope.circuits.components import Component
from hopscope.circuits.effects import Averaged, Patched, Site
from hopscope.configs import Config
from hopscope.facts import FactGraph, Role
from hopscope.milestones import HALF
from hopscope.theory import Path


class Holdings(Config):
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

    holdings: Holdings
    cargo: tuple[Patched, ...]
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

    def of(self, component: Component, path: Path | None = None) -> Patched | None:
        """What a part brings in all, or along one of its paths: of a step that heads share, or of
        several readers, what that path alone brings.
        """
        if path is not None:
            alone = Site.of(path)
            found = next((its for its in self.cargo if its.site == alone), None)
            if found is not None:
                return found
        source = None if path is None else path.source
        return next((its for its in self.cargo if _is(its.site, component, source)), None)

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
            for its in self.cargo
            if (its.site.layer, its.site.heads) == (component.layer, component.heads)
            and its.site.source is not None
            and {*its.site.readers} <= {*component.destinations}
            and its.symbols
        ]

    def givers(self, source: Role, symbol: str, before: int) -> list[Patched]:
        """What put a symbol at a role before a layer; nothing if it was given with the input."""
        if symbol in self.holdings.held(source, 0):
            return []
        return [
            its
            for its in self.cargo
            if its.site.layer < before
            and its.site.source is not None
            and source in its.site.readers
            and symbol in its.symbols
        ]


def _is(site: Site, component: Component, source: Role | None) -> bool:
    """Is it what this part brings, in all or from this source?"""
    mine = (component.layer, component.heads, {*component.destinations}, source)
    return (site.layer, site.heads, {*site.readers}, site.source) == mine


def answers(graph: FactGraph) -> dict[str, int]:
    """The hop (or fact) that asks for each symbol, from 1."""
    return {fact.value: number for number, fact in enumerate(graph.facts, 1)}
