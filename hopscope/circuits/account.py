"""What moves in a circuit, as data: what roles hold, what arrows carry, and where both disagree.

Measured in `hopscope.circuits.accounting`.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hopscope.circuits.carrying import Cargo
from hopscope.configs import Config
from hopscope.facts import FactGraph, Role
from hopscope.milestones import HALF
from hopscope.theory import Path, follow

if TYPE_CHECKING:
    from hopscope.circuits.circuit import Circuit
    from hopscope.circuits.parts import Part


class Holdings(Config):
    """How much of each symbol of its own chain every role holds, after every layer."""

    roles: tuple[Role, ...]
    symbols: tuple[str, ...]
    shares: tuple[tuple[tuple[float | None, ...], ...], ...]
    """[layer (0: what the model is given), role, symbol], 0 to 1; None: the role never occurs."""

    def share(self, role: Role, symbol: str, layer: int) -> float:
        """How much of a symbol is there; 0 where the role never occurs."""
        return self.shares[layer][self.roles.index(role)][self.symbols.index(symbol)] or 0.0

    def most(self, role: Role, symbol: str) -> tuple[float, int]:
        """The most of a symbol that the role ever holds, and after how many layers."""
        return max((self.share(role, symbol, n), -n) for n in range(len(self.shares)))

    def held(self, role: Role, layer: int) -> tuple[str, ...]:
        """The symbols of which more than half is there."""
        return tuple(s for s in self.symbols if self.share(role, s, layer) > HALF)


class Account(Config):
    """What moves in a circuit."""

    holdings: Holdings
    cargo: tuple[Cargo, ...]
    """What each path brings, what rows without paths bring, and for those that matter, what they
    bring from each role."""
    examples: int
    """Pairs of examples on which cargo was measured."""

    def of(self, part: "Part", path: Path | None = None) -> Cargo | None:
        """What a part brings in all, or along one of its paths."""
        source = None if path is None else path.source
        for its in self.cargo:
            site = its.site
            if (site.layer, site.heads, site.source) == (part.layer, (part.head,), source) and (
                {*site.readers} == {*part.readers}
            ):
                return its
        return None

    def fetched(self, part: "Part") -> list[Cargo]:
        """For rows that form no path: what they bring from single roles to single roles."""
        return [
            its
            for its in self.cargo
            if (its.site.layer, its.site.heads) == (part.layer, (part.head,))
            and its.site.source is not None
            and {*its.site.readers} <= {*part.readers}
            and its.symbols
        ]

    def givers(self, source: Role, symbol: str, before: int) -> list[Cargo]:
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


def accounted_for(circuit: "Circuit") -> tuple["Part", ...]:
    """The parts with a causal account: answers leave when they bring another chain's symbol."""
    account = circuit.account
    if account is None:
        return ()
    return tuple(
        part
        for part in circuit.parts
        if any(its is not None and its.symbols for its in _of_part(account, part))
    )


def _of_part(account: Account, part: "Part") -> list[Cargo | None]:
    return [account.of(part, path) for path in part.paths] or [account.of(part)]


def answers(graph: FactGraph) -> dict[str, int]:
    """The hop (or fact) that asks for each symbol, from 1."""
    return {fact.value: number for number, fact in enumerate(graph.facts, 1)}


def contradictions(circuit: "Circuit") -> tuple[str, ...]:
    """Where contents, cargo, discovery and theory say different things, one line each."""
    account, graph = circuit.account, circuit.task.graph() if circuit.task else None
    if account is None or graph is None:
        return ()
    return (
        *_theory_and_contents(circuit, account.holdings, graph),
        *_cargo_and_contents(circuit, account, graph),
        *_cargo_and_kinds(circuit, account),
    )


def _theory_and_contents(circuit: "Circuit", holdings: Holdings, graph: FactGraph) -> Iterator[str]:
    """Information followed along the paths, against what is measured."""
    known = {*graph.roles}
    readings = [path.reading for path in circuit.paths if {path.reader, path.source} <= known]
    theory = follow(graph, readings).holdings
    for role in (role for role in graph.roles if role in holdings.roles):
        for symbol in holdings.symbols:
            share, after = holdings.most(role, symbol)
            if symbol in theory[role] and share <= HALF:
                yield (
                    f"along the paths {role} comes to hold {symbol}; measured is {share:.2f} of it "
                    "at most"
                )
            if symbol not in theory[role] and share > HALF:
                yield (
                    f"{role} holds {share:.2f} of {symbol} after layer {-after - 1}, and no path "
                    f"brings it there{_bringers(circuit, role, symbol)}"
                )


def _bringers(circuit: "Circuit", role: Role, symbol: str) -> str:
    """Rows without paths that do."""
    account = circuit.account
    sites = [
        str(its.site)
        for its in (account.cargo if account else ())
        if role in its.site.readers and its.site.source is not None and symbol in its.symbols
    ]
    return f" (but {', '.join(sites)})" if sites else ""


def _cargo_and_contents(circuit: "Circuit", account: Account, graph: FactGraph) -> Iterator[str]:
    """What is carried to a role must be there behind the layer."""
    for part in circuit.parts:
        for path in part.paths:
            its = account.of(part, path)
            for symbol, share in (its.carried(answers(graph)) if its else {}).items():
                there = account.holdings.share(path.reader, symbol, path.layer + 1)
                if there <= HALF:
                    yield (
                        f"{path} carries {symbol} ({share.mean:.2f}), of which {path.reader} then "
                        f"holds {there:.2f}"
                    )


def _cargo_and_kinds(circuit: "Circuit", account: Account) -> Iterator[str]:
    """A part that is needed should bring something, and the rest nothing."""
    for part in circuit.parts:
        every = [its for its in _of_part(account, part) if its is not None]
        symbols = dict.fromkeys(symbol for its in every for symbol in its.symbols)
        if part.kind in ("carries", "locates") and not symbols:
            yield (
                f"{part.name} {circuit.described(part)} is needed ({part.kind}), yet brings no "
                "symbol: no answer leaves when it brings what another chain has"
            )
        if part.kind == "background" and symbols:
            yield (
                f"{part.name} {circuit.described(part)} counts as background, yet answers leave "
                f"when it brings another chain's {', '.join(symbols)}"
            )
