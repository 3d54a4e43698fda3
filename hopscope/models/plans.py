"""What a planted circuit does, head by head, before any weight is written; no torch here.

The residual stream is divided into named parts, each as wide as a symbol: `symbol` and `code` (the
input), `before` (the symbol one position earlier), and registers. In a chain, number a position
by the symbol it carries: a value (like the query) that carries x_m first copies its own key,
the symbol before it; from then on each layer looks up the furthest symbol it knows among those
`before` symbols, and appends all registers of the position found to its own:

    layer 0       before   := symbol of the previous position
    layer t >= 1  register[h + 1 … 2h] := register[1 … h] of the position whose `before` is
                  register[h],  h = 2^(t-1),  register[1] = symbol

The reach doubles with each layer, so L layers answer 2^(L-1) - 1 hops, which is the most that any
causal transformer can (hopscope.theory). Two kinds of positions would be found by mistake. The
one after a value x_m also has x_m before it; it stands later than x_m's own value, so scores
fall slowly with position. The very first position can only read itself; hence `before` is compared
after a part of `symbol` is taken off.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hopscope.configs import Retrieval
from hopscope.errors import ModelError
from hopscope.facts import Role

LATENESS = 0.3
"""By how much a score falls from the first position to the last, as a share of the score of a
perfect match. Of two equal matches the earlier one then wins."""
OWN_STEPS = 3.0
"""Share of `symbol` taken off `before`, in positions' worth of lateness. The first position needs
more than 1 to fall behind the second. The position after a value x_m stands 3 or more behind x_m's
own value, so inner products of unlike symbols may disturb the share by up to ±1/2."""
TRIPLE = ("a->x", "a->y", "x,y->z")
"""The conditional task that can be planted: the paper's example (§3.1)."""


@dataclass(frozen=True)
class Lookup:
    """One head's work: where it attends, and what it carries where.

    `match` lists (wanted part of the reader, part of the source, scale); `carry` lists (part of
    the source, part of the reader). `late` is the score taken off per unit of lateness.
    """

    match: tuple[tuple[str, str, float], ...] = ()
    carry: tuple[tuple[str, str], ...] = ()
    back: int | None = None
    late: float = 0.0
    paths: tuple[tuple[Role, Role], ...] = ()


Plan = Sequence[Sequence[Lookup]]


def register(number: int) -> str:
    """The part of the residual stream in which register `number` lies."""
    return "symbol" if number == 1 else f"register {number}"


def chain_plan(task: Retrieval) -> list[list[Lookup]]:
    """One head per layer: copy the key, then double the reach until x_D is known."""
    hops, needed = task.hops, _needed_paths(task.hops)

    def paths(layer: int) -> tuple[tuple[Role, Role], ...]:
        return tuple(sorted((query, key) for at, query, key in needed if at == layer))

    plan = [[Lookup(carry=(("symbol", "before"),), back=1, paths=paths(0))]]
    own_share = OWN_STEPS * LATENESS / (task.chains * (2 * hops + 1) - 1)
    known = 1
    while known < hops + 1:
        carry = tuple((register(n), register(known + n)) for n in range(1, known + 1))
        match = ((register(known), "before", 1.0), (register(known), "symbol", -own_share))
        plan.append([Lookup(match, carry, late=LATENESS, paths=paths(len(plan)))])
        known *= 2
    return plan


def _carrier(number: int) -> Role:
    """The position that carries x_m and reads on from there: a value, or the query."""
    return Role("query") if number == 0 else Role("value", number - 1)


def _needed_paths(hops: int) -> set[tuple[int, Role, Role]]:
    """The paths without which the query would miss a symbol, found backwards from it."""
    layers = hops.bit_length()
    paths: set[tuple[int, Role, Role]] = set()

    def want(number: int, count: int) -> None:
        """The carrier of x_m must come to hold x_m … x_{m + count - 1}."""
        if count <= 1:
            return
        layer = (count - 1).bit_length()
        known = 2 ** (layer - 1)
        fact = number + known - 1  # whose key is the furthest symbol known before the layer
        paths.add((layer, _carrier(number), Role("value", fact)))
        paths.add((0, Role("value", fact), Role("key", fact)))
        want(number, known)
        want(fact + 1, count - known)

    want(0, hops + 1)
    assert max(path[0] for path in paths) == layers
    return paths


def triple_plan() -> list[list[Lookup]]:
    """a→x and a→y at once, told apart by which stands earlier; then (x, y)→z by both keys."""
    query, x, y, z = Role("query"), Role("value", 0), Role("value", 1), Role("value", 2)
    own_keys = ((x, Role("key", 0)), (y, Role("key", 1)), (z, Role("key", 2, 1)))
    copies = [
        Lookup(carry=(("symbol", "before"),), back=1, paths=own_keys),
        Lookup(carry=(("symbol", "two before"),), back=2, paths=((z, Role("key", 2)),)),
    ]
    match_a = (("symbol", "before", 1.0),)
    first = [
        Lookup(match_a, (("symbol", "register 3"),), late=LATENESS, paths=((query, y),)),
        Lookup(match_a, (("symbol", "register 2"),), late=-LATENESS, paths=((query, x),)),
    ]
    match_both = (("register 3", "before", 1.0), ("register 2", "two before", 1.0))
    last = [Lookup(match_both, (("symbol", "register 4"),), late=LATENESS, paths=((query, z),))]
    return [copies, first, last]


def twinned(lookups: Sequence[Lookup]) -> list[Lookup]:
    """Every lookup twice, so that each head has a twin that does the same."""
    return [twin for lookup in lookups for twin in (lookup, lookup)]


def with_spares(plan: Plan, spares: set[int]) -> list[Sequence[Lookup]]:
    """The plan with layers that do nothing at these places of the finished model."""
    total = len(plan) + len(spares)
    if spares - set(range(total)):
        raise ModelError(f"spare layers are {sorted(spares)}; the model has layers 0 … {total - 1}")
    work = iter(plan)
    return [() if number in spares else next(work) for number in range(total)]
