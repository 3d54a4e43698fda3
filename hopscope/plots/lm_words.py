"""The findings of a language model's circuit as tables. This module needs no drawing library."""

import numpy as np

from hopscope.configs import Prompts
from hopscope.lm.findings import LmFindings, Proof
from hopscope.lm.pairs import ON
from hopscope.lm.rows import of_phase
from hopscope.plots.piece import Piece
from hopscope.plots.terminal import sparkline

SHOWN_SHARE = 0.05
"""A role is left out if no answer follows it by this share."""


def findings_pieces(found: LmFindings) -> list[Piece]:
    """Return the findings of a language model, phase by phase, without the circuit."""
    where = {"proof": found.recipe.prompts, "elsewhere": found.recipe.elsewhere}
    proofs = [
        proof_table(known, prompts)
        for phase, prompts in where.items()
        if prompts and (known := found.proofs(phase))
    ]
    return [
        Piece(lines=found.verdict()),
        role_table(found),
        lens_table(found),
        confirmed_table(found),
        *proofs,
        Piece(lines=(searched_line(found),)),
    ]


def searched_line(found: LmFindings) -> str:
    """Return a line on the questions from which the circuit and its scores are."""
    searched, fresh = (len(of_phase(found.rows, phase)) for phase in ("paths", "proof"))
    return (
        f"the circuit: rows and what they move from the first {searched} questions; losses and "
        f"scores from the {fresh} fresh ones (95 %)"
    )


def shown_roles(found: LmFindings) -> list[int]:
    """Return the indices of the roles that answers follow in some layer."""
    return [
        number
        for number, _ in enumerate(found.roles)
        if any(abs(e.mean) >= SHOWN_SHARE for by in found.shares.values() for e in by[number])
    ]


def exchanged(name: str) -> str:
    """Return the name of an exchange in words.

    >>> exchanged("x1"), exchanged("x1…")
    ('x1, wherever it stands', 'x1, as a value alone')
    """
    if name.endswith(ON):
        return f"{name.removesuffix(ON)}, as a value alone"
    return f"{name}, wherever it stands"


def role_table(found: LmFindings) -> Piece:
    """Return a row for each role: how far answers follow it, layer by layer."""
    rows = []
    for number in shown_roles(found):
        layers = [[each.mean for each in by_role[number]] for by_role in found.shares.values()]
        bars = [
            sparkline(its, width=len(its)) if max(its) >= SHOWN_SHARE else "·" for its in layers
        ]
        rows.append([str(found.roles[number]), *bars])
    asked = len(of_phase(found.rows, "roles"))
    title = f"how far the answer follows, before each layer, on {asked} questions (█: all the way)"
    return Piece(title, ["role", *found.shares], rows)


def lens_table(found: LmFindings) -> Piece:
    """Return a row of the logit lens at its best layer for each role that holds a symbol."""
    rows = []
    for number in shown_roles(found):
        for symbol, seen in found.lens.items():
            chance = seen.probability[number]
            if np.isfinite(chance).all() and chance.max() >= 0.5:
                best = int(chance.argmax())
                rows.append(
                    [str(found.roles[number]), symbol, str(found.layers[best]),
                     f"{chance[best]:.2f}", f"{seen.rank[number, best]:.0f}"]
                )  # fmt: skip
    columns = ("role", "symbol", "clearest before layer", "probability", "rank")
    title = "the logit lens on the same questions, where it sees a symbol by half or more"
    return Piece(title, columns, rows)


def proof_table(proofs: list[Proof], prompts: Prompts) -> Piece:
    """Return a row for each proof: how far answers follow if attention rows are the donor's."""
    rows = [
        [exchanged(each.exchange),
         *("–" if share is None else str(share)
           for share in (each.circuit, each.random, each.more, each.rest, each.everything))]
        for each in proofs
    ]  # fmt: skip
    columns = ("exchange", "the circuit's rows", "random rows", "more than random",
               "all other rows", "all rows")  # fmt: skip
    asked = f"{proofs[0].questions} fresh questions of {prompts.label}"
    title = f"how far the answer follows if rows are the donor's, on {asked} (95 %)"
    return Piece(title, columns, rows)


def confirmed_table(found: LmFindings) -> Piece:
    """Return a row for each symbol that a role holds, on fresh questions."""
    rows = [
        [exchanged(its.exchange), str(its.role), str(its.layer), str(its.share)]
        for its in found.confirmed
    ]
    fresh = found.confirmed[0].questions if found.confirmed else 0
    columns = ("exchange", "role", "before layer", "the answer follows")
    title = f"what roles hold, on {fresh} fresh questions (95 % for all rows together)"
    return Piece(title, columns, rows)
