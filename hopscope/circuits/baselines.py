"""Common methods compared with a circuit, all on the same minimal pairs and in the same units.

1. Every method scores all arrows. An arrow is the part of one head's output that one role gets from
   another. A score is how far answers move when the arrow is the counterfactual's: 0 is the answer
   of the own chain, 1 that of the counterfactual, and 0.5 an answer that is merely lost.
2. The best arrows are kept, for increasing numbers of arrows, and all others are ablated. The
   faithfulness of each such set is measured.
3. The circuit's arrows are kept and measured in the same way.

The methods:

* EAP-IG: edge attribution patching with integrated gradients (Hanna et al. 2024), with the heads'
  arrows between roles as edges. The score is the difference between the counterfactual's arrow and
  the example's, times the gradient of the answer, averaged over inputs between the two. The default
  switches: scores are absolute, the top arrows are kept (not greedily grown from the output), and
  all other arrows are those of the counterfactual.
* direct logit attribution: the difference between the two is added to the last stream, so that no
  later layer sees it.
* activation patching: whole attention rows of heads are patched from the counterfactual.
* every arrow patched: the same for single arrows, one by one.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import one_hot

from hopscope.circuits.account import Site
from hopscope.circuits.adapters import AnyModel, replaceable
from hopscope.circuits.budget import check_scores
from hopscope.circuits.circuit import Circuit, check_circuit
from hopscope.circuits.engine import Adapter, Additive, Brought, Heads, Recorded, as_model, forward
from hopscope.circuits.faithfulness import ArrowIndex, Faithfulness
from hopscope.circuits.patching import (
    EXAMPLES,
    AnswerScores,
    Pairs,
    Patching,
    check_answers,
    chunks_of,
    has_answers,
    pairs_of,
)
from hopscope.circuits.progress import counted
from hopscope.circuits.ranking import (
    Arrow,
    Baselines,
    By,
    Method,
    Ranking,
    ScoredArrow,
    Switches,
    arrows_of,
)
from hopscope.errors import CircuitError

CHAINS: tuple[Literal["own"], Literal["others"]] = ("own", "others")
NOTHING = 1e-6
"""A smaller share is a rounding error: no answer moves."""
DEFAULT_SWITCHES = Switches()

Scores = Float[Tensor, "symbol hop layer head destination source chain"]


@torch.no_grad()
def baselines(
    model: AnyModel,
    circuit: Circuit,
    examples: int = EXAMPLES,
    seed: int = 0,
    switches: Switches = DEFAULT_SWITCHES,
) -> Baselines:
    """The scores of EAP-IG, activation patching and direct logit attribution, and how faithful
    their best arrows and those of a circuit are.
    """
    check_circuit(circuit)
    if torch.is_inference_mode_enabled():
        raise CircuitError(
            "baselines need gradients, which torch.inference_mode() forbids: call it outside"
        )
    if circuit.task is None:
        raise CircuitError(
            "baselines need minimal pairs, which only hopscope's tasks over facts draw (Retrieval, "
            "Induction, …); this circuit was found on none of them"
        )
    adapter = replaceable(model)
    circuit.check_model(adapter.digest())
    pairs = pairs_of(circuit.task, examples, seed)
    return held_against(adapter, pairs, arrows_of(circuit), switches)


@torch.no_grad()
def held_against(
    adapter: Adapter,
    pairs: Pairs,
    circuit: tuple[Arrow, ...],
    switches: Switches = DEFAULT_SWITCHES,
) -> Baselines:
    """The same as `baselines`, with given pairs and given arrows of a circuit."""
    attribution = Attribution(adapter, pairs)
    possible = attribution.possible().bool()
    faithfulness = Faithfulness(adapter, pairs, possible, switches)
    scores: dict[Method, tuple[By, Scores]] = {
        "EAP-IG": ("arrow", attribution.by_gradient(switches.steps)),
        "activation patching": ("row", attribution.patched()),
    }
    if isinstance(adapter, Additive):
        scores["direct logit attribution"] = ("arrow", attribution.direct())
    if switches.exact:
        every = [attribution.arrow(at) for at in possible.nonzero().tolist()]
        scores["every arrow patched"] = ("arrow", attribution.patched(every))
    # A hop that the model does not answer was not measured (NaN): it adds nothing to the ranking.
    scores = {method: (by, its.nan_to_num(0.0) * possible) for method, (by, its) in scores.items()}
    mine = torch.zeros_like(possible)
    for arrow in circuit:
        mine[attribution.place(arrow)] = True
    mine &= possible

    def ranking(method: Method, by: By, its: Scores) -> Ranking:
        order = faithfulness.best_first(largest(its))
        return Ranking(
            method=method,
            by=by,
            scored=_ranked(attribution, by, its),
            kept=faithfulness.curve(order, mine),
            as_many=faithfulness.kept(order[: int(mine.sum())], mine),
        )

    return Baselines(
        model=adapter.digest(),
        examples=len(pairs.examples),
        switches=switches,
        possible=int(possible.sum()),
        circuit=tuple(arrow for arrow in circuit if mine[attribution.place(arrow)]),
        circuit_kept=faithfulness.kept([tuple(at) for at in mine.nonzero().tolist()], mine),
        rankings=tuple(ranking(method, by, its) for method, (by, its) in scores.items()),
    )


def largest(scores: Scores) -> Tensor:
    """For each arrow, its score for the answer that it moves most."""
    flat = scores.flatten(0, 1)
    return flat.gather(0, flat.abs().argmax(0, keepdim=True))[0]


def _ranked(attribution: "Attribution", by: By, scores: Scores) -> tuple[ScoredArrow, ...]:
    """Every arrow or row that moves an answer, the highest absolute score first, with the symbol
    and answer for which that score is highest.
    """
    pairs, most = attribution.pairs, scores.abs().flatten(0, 1).max(0)
    names, found = list(pairs.counterfactuals), []
    for at in (most.values > NOTHING).nonzero().tolist():
        symbol, hop = divmod(int(most.indices[tuple(at)]), len(pairs.hops))
        arrow = attribution.arrow(at if by == "arrow" else at[:3])._asdict()
        score = round(float(most.values[tuple(at)]), 6)
        found.append(ScoredArrow(**arrow, symbol=names[symbol], hop=pairs.hops[hop], score=score))
    unique = dict.fromkeys(found)  # all arrows of a row have the same score
    return tuple(sorted(unique, key=lambda its: -its.score))


class Attribution:
    """Scores of all arrows of a model on minimal pairs, by each method; sums over examples."""

    def __init__(self, adapter: Adapter, pairs: Pairs) -> None:
        self.adapter, self.pairs, self.table = adapter, pairs, pairs.examples.table
        roles = len(self.table)
        shape = (adapter.layers, adapter.heads, roles, roles, len(CHAINS))
        self.sizes = (len(pairs.counterfactuals), len(pairs.hops), *shape)
        check_scores(self.sizes)
        passes = self._passes("answers", len(pairs.counterfactuals))
        self.answers: AnswerScores = torch.cat([-_distance(its) for its in passes])
        check_answers(self.answers)
        self.sure = self.answers.sum(0)

    def arrow(self, at: Sequence[int]) -> Arrow:
        """The arrow (or row) at this index of the scores."""
        layer, head, destination, *source = at
        if not source:
            return Arrow(layer, head, self.table[destination], None)
        return Arrow(layer, head, self.table[destination], self.table[source[0]], CHAINS[source[1]])

    def place(self, arrow: Arrow) -> ArrowIndex:
        """The index of an arrow (or row) in the scores."""
        number = self.pairs.examples.number
        row = (arrow.layer, arrow.head, number(arrow.destination))
        if arrow.source is None:
            return row
        return (*row, number(arrow.source), CHAINS.index(arrow.chain))

    def by_gradient(self, steps: int) -> Scores:
        """EAP-IG, over `steps` interpolations of the stream before the first layer."""
        found = self._nothing()
        for its, number, other in self._counterfactuals("EAP-IG"):
            start, end = its.own.streams[0], other.streams[0]
            for step in range(steps):
                x = start + (step + 0.5) / steps * (end - start)
                for hop, gradients in enumerate(self._gradients(its, x)):
                    for layer, gradient in enumerate(gradients):
                        there, here = (
                            each.weights[layer] * (gradient @ each.values[layer].mT)
                            for each in (other, its.own)
                        )
                        found[number, hop, layer] += self._summed(its, (there - here) / steps)
        return self._as_share(found)

    def _gradients(self, its: Patching, x: Tensor) -> Iterator[list[Tensor]]:
        """For every answer, its gradients with respect to the output of the heads of each layer."""
        leaves: list[Tensor] = []

        def attend(layer: int, heads: Heads) -> Brought:
            mixed = as_model(layer, heads)
            leaves.append(torch.zeros_like(mixed, requires_grad=True))
            return mixed + leaves[-1]

        with torch.enable_grad():
            moved = _distance(its, forward(self.adapter, x, attend)).sum(0)
            for hop in range(len(moved)):
                last = hop == len(moved) - 1
                yield list(torch.autograd.grad(moved[hop], leaves, retain_graph=not last))

    def direct(self) -> Scores:
        """Direct logit attribution: each arrow's change is added to the last stream."""
        adapter = self.adapter
        if not isinstance(adapter, Additive):
            raise CircuitError(
                "this model's adapter has no `added`, so nothing can be attributed to single "
                "heads directly"
            )
        found, roles = self._nothing(), range(len(self.table))
        for its, number, other in self._counterfactuals("direct logit attribution"):
            plain, end = _distance(its), its.own.streams[-1][:, -its.read :]
            destinations = its.role[:, -its.read :].unique().tolist()
            for layer in range(adapter.layers):
                nothing = torch.zeros_like(its.own.values[layer][:, :, -its.read :])
                base = adapter.added(layer, nothing[:1])
                for at in product([layer], range(adapter.heads), destinations, roles, range(2)):
                    # The counterfactual's arrow minus the example's; None if both are the same.
                    change = its.change(_site(self.arrow(at)), other)
                    if change is not None:
                        mixed = nothing.clone()
                        mixed[:, at[1]] = change[:, 0, -its.read :]
                        gain = _distance(its, end + adapter.added(layer, mixed) - base) - plain
                        found[(number, slice(None), *at)] += gain.sum(0)
        return self._as_share(found)

    def patched(self, arrows: Sequence[Arrow] | None = None) -> Scores:
        """Activation patching of single arrows; without `arrows`, of whole attention rows (then
        all arrows of a row get its score).
        """
        found, names = self._nothing(), list(self.pairs.counterfactuals)
        if arrows is None:
            rows = product(range(self.adapter.layers), range(self.adapter.heads), self.table)
            arrows = [Arrow(*row, None) for row in rows]
        variants = list(product(range(len(arrows)), names))
        for its in self._passes("patching", len(variants), [_site(arrow) for arrow in arrows]):
            moved = its.moved(variants, ("all",))[1][:, 0]
            gains = (moved[0] - moved[1]).sum(1)
            for (number, name), gain in zip(variants, gains, strict=True):
                by_hop_last = found[names.index(name)].movedim(0, -1)
                by_hop_last[self.place(arrows[number])] += gain
        return self._as_share(found)

    def possible(self) -> Float[Tensor, "layer head destination source chain"]:
        """1 for every arrow with attention above 0 in some example, else 0."""
        found = self._nothing()[0, 0]
        for its in self._passes("possible arrows", 1):
            for layer, weights in enumerate(its.own.weights):
                found[layer] += self._summed(its, weights)
        return (found > 0).double()

    def _passes(self, what: str, streams: int, sites: Sequence[Site] = ()) -> Iterator[Patching]:
        """The examples in parts that fit in memory; `what` is computed of them."""
        for some in counted(what, chunks_of(self.adapter, self.pairs.examples, streams)):
            yield Patching(self.adapter, self.pairs, sites, some)

    def _counterfactuals(self, what: str) -> Iterator[tuple[Patching, int, Recorded]]:
        """For each part of the examples and each symbol: the part, the symbol's number, and the
        recorded pass over its counterfactuals.
        """
        for its in self._passes(what, len(self.pairs.counterfactuals)):
            for number, other in enumerate(its.counterfactuals().values()):
                yield its, number, other

    def _summed(
        self, its: Patching, gain: Float[Tensor, "batch head seq seq"]
    ) -> Float[Tensor, "head destination source chain"]:
        """Values for pairs of positions, summed over examples and over the positions of roles."""
        stands = one_hot(its.role.long(), len(self.table)).double()
        same = its.same[:, None]
        parts = [torch.where(here, gain.double(), 0.0) for here in (same, ~same)]
        sums = [torch.einsum("bhij,bir,bjs->hrs", part, stands, stands) for part in parts]
        return torch.stack(sums, -1).cpu()

    def _nothing(self) -> Scores:
        return torch.zeros(self.sizes, dtype=torch.float64)

    def _as_share(self, found: Scores) -> Scores:
        """Sums of distances as shares of the way from the own answer to the counterfactual's; NaN
        for a hop that the model does not answer.
        """
        whole = torch.where(has_answers(self.answers), 2 * self.sure, torch.nan)
        return found / whole[None, :, None, None, None, None, None]


def _site(arrow: Arrow) -> Site:
    """The arrow as a site to patch."""
    return Site(
        layer=arrow.layer,
        heads=(arrow.head,),
        destinations=(arrow.destination,),
        source=arrow.source,
        chain=arrow.chain,
    )


def _distance(its: Patching, end: Tensor | None = None) -> Float[Tensor, "batch hop"]:
    """How much nearer the answers are to the other chain's symbols than to their own chain's, from
    the stream after the last layer (default: that of the own examples).
    """
    found = its.nearness((its.own.streams[-1] if end is None else end)[None])
    return found[0, 0] - found[1, 0]
