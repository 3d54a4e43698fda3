"""Contradictions between probes, patching, discovery and theory on a circuit, with the reason if it
is known.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hopscope.circuits.account import Account, Decodable
from hopscope.circuits.circuit import Circuit
from hopscope.circuits.components import Component, PathFlow
from hopscope.facts import FactGraph, Role
from hopscope.milestones import HALF
from hopscope.theory import follow


def accounted_for(circuit: Circuit) -> tuple[Component, ...]:
    """The components whose causal role is known. Either answers leave if the component brings
    another chain's symbol, or its mean is enough, so that it brings a place or a constant.
    """
    account = circuit.account
    if account is None:
        return ()
    return tuple(
        component
        for component in circuit.components
        if account.symbols(component)
        or ((mean := account.mean_of(component)) is not None and mean.brings != "symbols")
    )


@dataclass(frozen=True)
class Contradiction:
    """A contradiction between two measurements, or between a measurement and theory."""

    what: str
    reason: str = ""
    """How both can be true; empty if it is not known."""

    def __str__(self) -> str:
        return f"{self.what} ({self.reason})" if self.reason else self.what


def contradictions(circuit: Circuit) -> tuple[Contradiction, ...]:
    """All contradictions of a circuit; empty if it has no account or no task with facts."""
    account, graph = circuit.account, circuit.task.graph() if circuit.task else None
    if account is None or graph is None:
        return ()
    return (
        *_theory_and_probes(circuit, account.decodable, graph),
        *_patching_and_probes(circuit, account),
        *_patching_and_kinds(circuit, account, graph),
    )


def _theory_and_probes(
    circuit: Circuit, decodable: Decodable, graph: FactGraph
) -> Iterator[Contradiction]:
    """Compare the symbols that theory moves along the paths with those that are decodable."""
    known = {*graph.roles}
    readings = [path.reading for path in circuit.paths if {path.destination, path.source} <= known]
    theory = follow(graph, readings).holdings
    for role in (role for role in graph.roles if role in decodable.roles):
        for symbol in decodable.symbols:
            share, after = decodable.most(role, symbol)
            if symbol in theory[role] and share <= HALF:
                yield Contradiction(
                    f"by its paths {role} should decode {symbol}, but at most {share:.2f} of it is "
                    "decodable there"
                )
            if symbol not in theory[role] and share > HALF:
                since = f"after layer {after - 1}" if after else "from the start"
                yield Contradiction(
                    f"{share:.2f} of {symbol} is decodable at {role} {since}, but no path brings "
                    "it there",
                    _bringers(circuit, role, symbol, after),
                )


def _bringers(circuit: Circuit, role: Role, symbol: str, after: int) -> str:
    """What brings a symbol to a role, as a reason (empty if nothing is known to): sites patched
    from single roles, or else paths of the model, in earlier layers, that its answers do not need.
    """
    account = circuit.account
    assert account is not None
    sites = [
        str(its.site)
        for its in account.patched
        if role in its.site.destinations and its.site.source is not None and symbol in its.symbols
    ]
    if sites:
        return f"but {', '.join(sites)}"
    idle = [
        str(path)
        for path in account.idle
        if path.destination == role
        and path.layer < after
        and symbol in account.decodable.held(path.source, path.layer)
    ]
    return f"but {', '.join(idle)}, which the answers do not need" if idle else ""


def _patching_and_probes(circuit: Circuit, account: Account) -> Iterator[Contradiction]:
    """Check that every symbol that a path moves is decodable at its destination after the layer."""
    for component in circuit.components:
        for path in component.paths:
            its = account.of(component, path)
            for symbol, share in (its.moved(circuit.asked) if its else {}).items():
                there = account.decodable.share(path.destination, symbol, path.layer + 1)
                if there is not None and there <= HALF:
                    yield Contradiction(
                        f"{path} moves {symbol} ({share.mean:.2f}), but then only {there:.2f} of "
                        f"it is decodable at {path.destination}"
                    )


def _patching_and_kinds(
    circuit: Circuit, account: Account, graph: FactGraph
) -> Iterator[Contradiction]:
    """Check that components that are needed bring a symbol or a place, and weak ones no symbol."""
    for component in circuit.components:
        symbols, mean = account.symbols(component), account.mean_of(component)
        tells_place = mean is not None and mean.brings == "place"
        if component.kind in ("moves", "routes") and not symbols and not tells_place:
            yield Contradiction(
                f"{component.name} {circuit.described(component)} is needed ({component.kind}), "
                "but moves no symbol: no answer changes when it is patched from another chain",
                "its mean will do: it brings a constant"
                if mean and mean.brings == "constant"
                else "",
            )
        if component.kind == "weak" and symbols:
            yield Contradiction(
                f"{component.name} {circuit.described(component)} counts as weak, but answers "
                f"change when its {', '.join(symbols)} is patched from another chain",
                _others_replace(circuit, component, graph),
            )


def _others_replace(circuit: Circuit, component: Component, graph: FactGraph) -> str:
    """A reason if the other components bring the same answers to the query, each to where a later
    path needs it: they replace the component if it is removed, and contradict it if patched.
    """

    def flow(components: Iterable[Component]) -> PathFlow:
        return PathFlow.along(graph, (p for each in components for p in each.paths), asked)

    asked = [*circuit.asked]
    others = [each for each in circuit.components if each is not component]
    same = flow(others) == flow(circuit.components)
    return "without it the other paths bring the same answers" if same else ""
