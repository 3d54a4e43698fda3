"""The account of a circuit as text: which symbols each path moves."""

from hopscope.circuits import Circuit
from hopscope.circuits.account import Account, Averaged, Patched
from hopscope.circuits.components import Component
from hopscope.circuits.contradictions import accounted_for, contradictions
from hopscope.plots.piece import Piece


def list_carried(circuit: Circuit, patched: Patched | None) -> list[str]:
    """Return the symbols that an arrow moves to the answer."""
    return list(patched.moved(circuit.asked)) if patched else []


def account_table(circuit: Circuit) -> Piece:
    """Return a row per arrow: head, source → destination, moved symbols, how it routes heads.

    The lines below it say how many components have an account, and name contradictions.
    """
    account = circuit.account
    if account is None:
        return Piece()
    rows = [
        row for component in circuit.components for row in _rows_of(circuit, account, component)
    ]
    accounted = len(accounted_for(circuit))
    lines = [f"{accounted} of {len(circuit.components)} components have a causal account"]
    lines += [f"contradiction: {line}" for line in contradictions(circuit)]
    columns = ("head", "arrow", "moves", "routes later heads")
    return Piece("what each path moves", columns, rows, lines)


def _rows_of(circuit: Circuit, account: Account, component: Component) -> list[tuple[str, ...]]:
    rows = [
        _row(circuit, account.of(component, path), f"{path.source} → {path.destination}")
        for path in component.paths
    ]
    if not component.paths:
        rows = [_row(circuit, account.of(component), circuit.described(component))]
        rows += [
            _row(circuit, patched, f"… {patched.site.arrow}{_from(account, component, patched)}")
            for patched in account.fetched(component)
        ]
    if text := _without_symbols(account.mean_of(component)):
        rows[-1] = (*rows[-1][:-1], text)
    return rows


def _row(circuit: Circuit, patched: Patched | None, arrow: str) -> tuple[str, ...]:
    if patched is None:
        return ("", arrow, "not measured", "")
    carried = patched.moved(circuit.asked)
    routed = [
        f"{how} {symbol}"
        for way, how in (("queries", "to look for"), ("keys", "found by"))
        for symbol in patched.routes(way)  # type: ignore[arg-type]
    ]
    brings = ", ".join(f"{s} {e.mean:.2f} ± {e.mean - e.low:.2f}" for s, e in carried.items())
    if not brings and not routed and patched.symbols:
        brings = f"{', '.join(patched.symbols)}: answers change, and none follows"
    return (
        "+".join(f"{patched.site.layer}.{head}" for head in patched.site.heads),
        arrow,
        brings or "·",
        ", ".join(routed) or "·",
    )


def _without_symbols(mean: Averaged | None) -> str:
    """Describe a component that moves no symbol by losses with mean ablations; "" for others."""
    if mean is None or mean.brings == "symbols":
        return ""
    with_it, without, clean = mean.by_place.mean, mean.by_role.mean, mean.model.mean
    if mean.brings == "constant":
        return f"nothing but a constant (loss {clean:.3f}; {without:.3f} with its mean)"
    return (
        f"where it stands (loss {clean:.3f}; {with_it:.3f} with that alone, {without:.3f} without)"
    )


def _from(account: Account, component: Component, patched: Patched) -> str:
    """Return the heads that wrote the fetched symbols to the source, in parentheses."""
    source = patched.site.source
    if source is None:
        return ""
    givers = dict.fromkeys(
        "+".join(f"{giver.site.layer}.{head}" for head in giver.site.heads)
        for symbol in patched.symbols
        for giver in account.givers(source, symbol, component.layer)
    )
    return f" (put there by {', '.join(givers)})" if givers else ""
