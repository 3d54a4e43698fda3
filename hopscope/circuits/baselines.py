"""What people use, beside a circuit: every method on the same minimal pairs, in the same units.

1. Scores of all arrows (or rows) by each method, in shares of the way from the own answer to the
   counterfactual's.
2. The best of them are kept, ever more, and the share of the gap that is left then is measured.
3. The circuit's arrows are kept in the same way.
"""

import torch

from hopscope.circuits.adapters import AnyModel
from hopscope.circuits.attribution import CHAINS, Attribution, Scores
from hopscope.circuits.circuit import Circuit, check_circuit
from hopscope.circuits.engine import Adapter, Additive
from hopscope.circuits.mean_ablation import Chosen, KeptArrows
from hopscope.circuits.pairs import Pairs, pairs_of
from hopscope.circuits.patching import EXAMPLES, replaceable
from hopscope.circuits.ranking import (
    Arrow,
    Baselines,
    By,
    Kept,
    Method,
    Ranking,
    Scored,
    arrows_of,
)
from hopscope.errors import CircuitError

STEPS = 5
"""Interpolations of EAP-IG, unless told otherwise (as in Hanna et al. 2024)."""
NOTHING = 1e-6
"""A share that is rounding, and moves no answer."""
SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096)
"""Numbers of arrows that are kept; a row's arrows are kept together."""


@torch.no_grad()
def baselines(
    model: AnyModel,
    circuit: Circuit,
    examples: int = EXAMPLES,
    seed: int = 0,
    *,
    steps: int = STEPS,
    exact: bool = False,
) -> Baselines:
    """What EAP-IG, activation patching and direct logit attribution say, beside a circuit; `exact`
    patches every single arrow as well, which takes long.
    """
    check_circuit(circuit)
    if circuit.task is None:
        raise CircuitError("the circuit names no task, so that no minimal pairs can be drawn")
    if steps < 1:
        raise CircuitError(f"steps is {steps}; gradients are averaged over at least 1")
    adapter = replaceable(model)
    circuit.check_model(adapter.digest())
    pairs = pairs_of(circuit.task, examples, seed)
    return held_against(adapter, pairs, arrows_of(circuit), steps=steps, exact=exact)


@torch.no_grad()
def held_against(
    adapter: Adapter,
    pairs: Pairs,
    circuit: tuple[Arrow, ...],
    *,
    steps: int = STEPS,
    exact: bool = False,
) -> Baselines:
    """The same with pairs and arrows of one's own."""
    attribution = Attribution(adapter, pairs)
    kept = KeptArrows(adapter, pairs.exam)
    possible = attribution.possible().bool()
    scores: dict[Method, tuple[By, Scores]] = {
        "EAP-IG": ("arrow", attribution.by_gradient(steps)),
        "activation patching": ("row", attribution.patched()),
    }
    if isinstance(adapter, Additive):
        scores["direct logit attribution"] = ("arrow", attribution.direct())
    if exact:
        every = [_arrow(pairs, at) for at in possible.nonzero().tolist()]
        scores["every arrow patched"] = ("arrow", attribution.patched(every))
    # A hop of which the model has no answer of its own was not measured: no arrow ranks by it.
    scores = {method: (by, its.nan_to_num(0.0) * possible) for method, (by, its) in scores.items()}
    mine = _chosen(pairs, circuit, possible)
    return Baselines(
        model=adapter.digest(),
        examples=len(pairs.exam),
        steps=steps,
        possible=int(possible.sum()),
        circuit=tuple(arrow for arrow in circuit if mine[_at(pairs, arrow)]),
        empty_share=kept.share(torch.zeros_like(mine)),
        circuit_kept=Kept(arrows=int(mine.sum()), share=kept.share(mine)),
        rankings=tuple(
            Ranking(
                method=method,
                by=by,
                scored=_ranked(pairs, by, its),
                kept=_curve(kept, its.abs().amax((0, 1))),
            )
            for method, (by, its) in scores.items()
        ),
    )


def _ranked(pairs: Pairs, by: By, scores: Scores) -> tuple[Scored, ...]:
    """Every arrow or row that moves an answer, with the pair and answer for which it does most."""
    symbols, hops = len(pairs.counterfactuals), len(pairs.hops)
    most, which = scores.abs().flatten(0, 1).max(0)
    found = []
    for at in (most > NOTHING).nonzero().tolist():
        symbol, hop = divmod(int(which[tuple(at)]), hops)
        assert symbol < symbols
        arrow = _arrow(pairs, at)
        found.append(
            Scored(
                layer=arrow.layer,
                head=arrow.head,
                reader=arrow.reader,
                source=arrow.source if by == "arrow" else None,
                chain=arrow.chain if by == "arrow" else "own",
                score=round(float(most[tuple(at)]), 6),
                symbol=list(pairs.counterfactuals)[symbol],
                hop=pairs.hops[hop],
            )
        )
    unique = dict.fromkeys(found)  # a row's arrows all say the same
    return tuple(sorted(unique, key=lambda its: -its.score))


def _curve(kept: KeptArrows, scores: torch.Tensor) -> tuple[Kept, ...]:
    """What is left with the best arrows alone, of which there are ever more."""
    order = scores[scores > NOTHING].sort(descending=True).values
    found: dict[int, float] = {}
    for size in (*(size for size in SIZES if size < len(order)), len(order)):
        if size:
            chosen = scores >= order[size - 1]
            count = int(chosen.sum())
            if count not in found:
                found[count] = kept.share(chosen)
    return tuple(Kept(arrows=count, share=share) for count, share in found.items())


def _arrow(pairs: Pairs, at: list[int]) -> Arrow:
    layer, head, reader, source, chain = at
    table = pairs.exam.table
    return Arrow(layer, head, table[reader], table[source], CHAINS[chain])


def _at(pairs: Pairs, arrow: Arrow) -> tuple[int, int, int, int, int]:
    exam = pairs.exam
    reader, source = exam.number(arrow.reader), exam.number(arrow.source)
    return (arrow.layer, arrow.head, reader, source, CHAINS.index(arrow.chain))


def _chosen(pairs: Pairs, arrows: tuple[Arrow, ...], possible: Chosen) -> Chosen:
    chosen = torch.zeros_like(possible)
    for arrow in arrows:
        chosen[_at(pairs, arrow)] = True
    return chosen & possible
