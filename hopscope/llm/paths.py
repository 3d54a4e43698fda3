"""The paths of rows that count: what a head brings from one role, and what later heads take of it.

Pairs of questions are pairs of examples as circuits know them, so what is patched there is patched
here: see `hopscope.circuits.patching`.
"""

from collections import Counter
from collections.abc import Sequence

import torch
from torch import Tensor

from hopscope.circuits.effects import KEPT, Effect, Patched, Site, Way
from hopscope.circuits.exam import Exam
from hopscope.circuits.pairs import Pairs
from hopscope.circuits.patching import Patching, chunks_of
from hopscope.configs import LlmMechanism
from hopscope.llm.exchange import ON
from hopscope.llm.pairs import role_table
from hopscope.llm.rows import Measured, numbers, of_phase
from hopscope.llm.walking import Batch
from hopscope.llm.weighing import counting, estimate, head_rows, surety
from hopscope.tasks import Roles

WAYS: tuple[Way, ...] = ("all", "values", "queries", "keys")


def sites(recipe: LlmMechanism, rows: Sequence[Measured]) -> dict[Site, set[str]]:
    """Every row that counts, whole, and then by the roles that it looks at; with the symbols whose
    exchange it follows.
    """
    table, found = role_table(recipe.prompts), {}
    for row in counting(recipe, head_rows(recipe, rows)):
        follows = {
            name.removesuffix(ON)
            for name, share in row.shares.items()
            if share.mean >= recipe.tracing.counts
        }
        whole = Site(layer=row.layer, heads=(row.head,), readers=(table[row.role],))
        found[whole] = follows
        for source in row.sources:
            found[whole.model_copy(update={"source": table[source]})] = follows
    return found


def path_rows(recipe: LlmMechanism, rows: Sequence[Measured], batch: Batch) -> list[Measured]:
    """How answers move and leave, for each site, symbol and way, question by question."""
    symbols, follows = recipe.prompts.graph().symbols, sites(recipe, rows)
    its = list(follows)
    moved = torch.zeros(len(symbols), len(its), len(WAYS), 2, len(batch.pairs)).double()
    for number, symbol in enumerate(symbols):
        some = [n for n, site in enumerate(its) if symbol in follows[site]]
        if not some:
            continue
        pairs = as_pairs(recipe, batch, symbol)
        most = max(Counter(its[n].layer for n in some).values())
        chunks = chunks_of(batch.adapter, pairs.exam, most * len(WAYS))
        variants = [(n, symbol) for n in some]
        parts = [Patching(batch.adapter, pairs, its, c).moved(variants, WAYS) for c in chunks]
        found = torch.cat([part[1] for part in parts], 3)
        moved[number, some] = found[..., 0].permute(2, 1, 0, 3)
    clean = batch.clean(symbols)
    return [
        {
            "sites": [str(site) for site in its],
            "clean": {name: numbers(clean[n, row]) for n, name in enumerate(symbols)},
            "moved": numbers(moved[..., row]),
        }
        for row in range(len(batch.pairs))
    ]


def as_pairs(recipe: LlmMechanism, batch: Batch, name: str) -> Pairs:
    """The pairs of one exchange as circuits know them; the last position alone answers."""
    table = role_table(recipe.prompts)
    hop = len(recipe.prompts.graph().facts)
    answers = [pair.answers for pair in batch.pairs]

    exam = Exam(
        inputs=batch.tokens,
        roles=Roles(batch.role, batch.chain),
        table=table,
        losses=_Losses([(its.own,) for its in answers]),
        guess=1.0,
        read=1,
    )
    return Pairs(
        exam=exam,
        other=_Losses([(its.others[name],) for its in answers]),
        third=_Losses([its.thirds(name) for its in answers]),
        counterfactuals={name: batch.donors[name]},
        hops=(hop,),
    )


class _Losses:
    """Less the mean logit of some tokens: losses, but for what all answers have in common."""

    def __init__(self, tokens: Sequence[tuple[int, ...]]) -> None:
        self.tokens = tokens

    def __call__(self, outputs: Tensor) -> Tensor:
        last = outputs[..., -1, :].float()
        rows = [last[..., n, list(its)].mean(-1) for n, its in enumerate(self.tokens)]
        return -torch.stack(rows, -1)[..., None]


def cargos(recipe: LlmMechanism, rows: Sequence[Measured]) -> list[Patched]:
    """What every site brings, over questions."""
    measured = of_phase(rows, "paths")
    if not measured:
        return []
    symbols, its = recipe.prompts.graph().symbols, sites(recipe, rows)
    moved = torch.tensor([row["moved"] for row in measured]).double().numpy()
    hop = len(recipe.prompts.graph().facts)
    found = []
    for number, site in enumerate(its):
        moves = []
        for n, symbol in enumerate(symbols):
            sure = surety(measured, symbol)
            for w, way in enumerate(WAYS):
                part = moved[:, n, number, w]
                share, left = estimate(sure, part[:, 0]), estimate(sure, -part[:, 1])
                if share and left and max(abs(share.mean), abs(left.mean)) >= KEPT:
                    moves.append(Effect(symbol=symbol, way=way, hop=hop, share=share, left=left))
        found.append(Patched(site=site, moves=tuple(moves)))
    return found
