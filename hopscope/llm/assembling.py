"""The circuit of a language model, put together from the answer backwards.

A row belongs to it if answers follow it, and if a later row of the circuit brings something from
where it writes; the answer is where that begins.
"""

from collections.abc import Sequence
from math import log

import numpy as np

from hopscope.circuits.account import Account, Holdings
from hopscope.circuits.circuit import Circuit
from hopscope.circuits.components import Component, Estimate, Kind, Losses
from hopscope.circuits.effects import Patched
from hopscope.circuits.pattern import AS_IN_MODEL, Source, Target
from hopscope.configs import LlmMechanism
from hopscope.facts import Role
from hopscope.llm.heads import ANSWER
from hopscope.llm.pairs import role_table
from hopscope.llm.patches import Row
from hopscope.llm.paths import cargos
from hopscope.llm.rows import Measured, of_phase
from hopscope.llm.weighing import HeadRow, answered, counting, head_rows, role_shares

ALONE, ALL = 1, 2
"""Which variants of a proof are the circuit alone, and no circuit at all (`patches.proofs`)."""


def circuit_rows(recipe: LlmMechanism, rows: Sequence[Measured]) -> list[Row]:
    """The rows of the circuit, layer by layer."""
    found = [(row.layer, row.head, row.role) for row, _ in _backwards(recipe, rows)]
    return sorted(found)


def _backwards(
    recipe: LlmMechanism, rows: Sequence[Measured]
) -> list[tuple[HeadRow, tuple[Role, ...]]]:
    """The rows of the circuit, last layer first, with the roles that they bring something from."""
    table, brought = role_table(recipe.prompts), cargos(recipe, rows)
    below = {ANSWER: len(table) + max((row.layer for row in head_rows(recipe, rows)), default=0)}
    found = []
    for row in sorted(counting(recipe, head_rows(recipe, rows)), key=lambda row: -row.layer):
        role = table[row.role]
        if row.layer >= below.get(role, 0):
            continue
        its = [c for c in brought if (c.site.layer, c.site.heads) == (row.layer, (row.head,))]
        sources = tuple(
            c.site.source
            for c in its
            if c.site.source and c.site.readers == (role,) and most(c) >= recipe.tracing.counts
        )
        for source in sources:
            below[source] = max(below.get(source, 0), row.layer)
        found.append((row, sources))
    return found


def most(cargo: Patched) -> float:
    """How far an answer leaves its own, at most."""
    return max((move.left.mean for move in cargo.moves), default=0.0)


def circuit_of(recipe: LlmMechanism, rows: Sequence[Measured]) -> Circuit:
    """The circuit, with its account."""
    chosen, told = _backwards(recipe, rows), of_phase(rows, "answers")
    layers, heads = told[0]["shape"]
    losses = _losses(rows)
    components = [_component(recipe, row, its, rows, losses.gap) for row, its in chosen]
    account = Account(
        holdings=_holdings(recipe, rows, layers),
        cargo=tuple(cargos(recipe, rows)),
        examples=recipe.tracing.searched,
        asked=_asked(recipe),
    )
    return Circuit(
        model=told[0]["model"],
        task=None,
        roles=role_table(recipe.prompts),
        layers=layers,
        heads=heads,
        components=tuple(sorted(components, key=lambda each: each.at)),
        losses=losses,
        account=account,
    )


def _asked(recipe: LlmMechanism) -> dict[str, int]:
    """The last symbol alone is asked for."""
    facts = recipe.prompts.graph().facts
    return {facts[-1].value: len(facts)}


def _component(
    recipe: LlmMechanism,
    row: HeadRow,
    sources: Sequence[Role],
    rows: Sequence[Measured],
    gap: float,
) -> Component:
    """One row with what it looks at, and the share of the gap that is lost if it is a donor's."""
    table = role_table(recipe.prompts)
    role = table[row.role]
    whole = next(
        c
        for c in cargos(recipe, rows)
        if c.site.source is None
        and (c.site.layer, c.site.heads, c.site.readers) == (row.layer, (row.head,), (role,))
    )
    rise = row.rise
    lost = Estimate(mean=rise.mean / gap, low=rise.low / gap, high=rise.high / gap)
    return Component(
        layer=row.layer,
        heads=(row.head,),
        destinations=(role,),
        target=_target(table, row, sources),
        kind=_kind(recipe, whole),
        lost=lost if gap > 0 else None,
    )


def _target(table: Sequence[Role], row: HeadRow, sources: Sequence[Role]) -> Target:
    """The sources of what a row brings, by the attention that each gets."""
    looks = {its: row.sources[table.index(its)] for its in sources}
    total = sum(looks.values())
    parts = tuple((Source("own", its), look / total) for its, look in looks.items())
    return Target(parts) if parts else AS_IN_MODEL


def _kind(recipe: LlmMechanism, whole: Patched) -> Kind | None:
    """Whether the answer needs what a row brings by its values, or by queries or keys."""
    if whole.moved(_asked(recipe)):
        return "moves"
    return "routes" if whole.routes("queries") or whole.routes("keys") else None


def _losses(rows: Sequence[Measured]) -> Losses:
    """Losses among the acceptable answers: as it is, with the circuit alone, with nothing."""
    its = answered(of_phase(rows, "answers"))
    proof = of_phase(rows, "proof")
    # However the answer is held against others, its loss is the same.
    clean = np.array([[next(iter(row["clean"].values()))[2]] for row in proof])  # [q, 1]
    moved = np.array([row["moved"] for row in proof], dtype=float)[..., 2]  # [q, name, variant]
    alone, none = (float((clean + moved[:, :, n]).mean()) for n in (ALONE, ALL))
    return Losses(
        model=(float(clean.mean()),),
        prescribed=(alone,),
        ablated=(none,),
        chance=log(1 / its.guessing),
    )


def _holdings(recipe: LlmMechanism, rows: Sequence[Measured], layers: int) -> Holdings:
    """How far answers follow the stream at each role, symbol by symbol; where not every layer was
    patched, as before the last that was.
    """
    shares = role_shares(recipe, rows)
    symbols = tuple(s for s in recipe.prompts.graph().symbols if s in shares)
    table, every = role_table(recipe.prompts), recipe.tracing.every
    measured = [*range(0, layers, every), layers]
    at = [max(n for n, its in enumerate(measured) if its <= layer) for layer in range(layers + 1)]
    return Holdings(
        roles=table,
        symbols=symbols,
        shares=tuple(
            tuple(
                tuple(min(1.0, max(0.0, shares[s][role][n].mean)) for s in symbols)
                for role in range(len(table))
            )
            for n in at
        ),
    )
