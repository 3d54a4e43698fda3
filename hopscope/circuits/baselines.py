"""What people use, beside a circuit: every method on the same minimal pairs, in the same units.

1. Every method scores all arrows. An arrow is what one head brings to one role from another. Where
   the counterfactual has something else there, the answers move: 0 is the own chain's answer and 1
   the counterfactual's (half way: it is merely lost).
2. The best arrows are kept, ever more, and the rest is ablated: how faithful are they?
3. The circuit's arrows are kept in the same way.

The methods:

* EAP-IG: edge attribution patching with integrated gradients (Hanna et al. 2024), with the heads'
  arrows between roles as edges. What the counterfactual brings more, times the gradient of the
  answer, averaged over inputs between own and counterfactual. Switches: scores are absolute, the
  top arrows are kept (not greedily grown from the output), and all others bring what they bring in
  the counterfactual.
* direct logit attribution: what the counterfactual brings more goes straight to the output, and no
  later layer sees it.
* activation patching: whole rows of heads bring what they bring in the counterfactual.
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
from hopscope.circuits.circuit import Circuit, check_circuit
from hopscope.circuits.engine import Adapter, Additive, Brought, Heads, Recorded, as_model, forward
from hopscope.circuits.faithfulness import Faithfulness, Place
from hopscope.circuits.patching import (
    EXAMPLES,
    Answers,
    Pairs,
    Patching,
    check_answers,
    chunks_of,
    has_answers,
    pairs_of,
)
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
"""A share that is rounding, and moves no answer."""
DEFAULT = Switches()

Scores = Float[Tensor, "symbol hop layer head destination source chain"]


@torch.no_grad()
def baselines(
    model: AnyModel,
    circuit: Circuit,
    examples: int = EXAMPLES,
    seed: int = 0,
    switches: Switches = DEFAULT,
) -> Baselines:
    """What EAP-IG, activation patching and direct logit attribution say, beside a circuit."""
    check_circuit(circuit)
    if circuit.task is None:
        raise CircuitError("the circuit names no task, so that no minimal pairs can be drawn")
    adapter = replaceable(model)
    circuit.check_model(adapter.digest())
    pairs = pairs_of(circuit.task, examples, seed)
    return held_against(adapter, pairs, arrows_of(circuit), switches)


@torch.no_grad()
def held_against(
    adapter: Adapter,
    pairs: Pairs,
    circuit: tuple[Arrow, ...],
    switches: Switches = DEFAULT,
) -> Baselines:
    """The same with pairs and arrows of one's own."""
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
    # A hop of which the model has no answer of its own was not measured: no arrow ranks by it.
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
    """For each arrow, the score of the answer that it moves most."""
    flat = scores.flatten(0, 1)
    return flat.gather(0, flat.abs().argmax(0, keepdim=True))[0]


def _ranked(attribution: "Attribution", by: By, scores: Scores) -> tuple[ScoredArrow, ...]:
    """Every arrow or row that moves an answer, with the pair and answer for which it does most."""
    pairs, most = attribution.pairs, scores.abs().flatten(0, 1).max(0)
    names, found = list(pairs.counterfactuals), []
    for at in (most.values > NOTHING).nonzero().tolist():
        symbol, hop = divmod(int(most.indices[tuple(at)]), len(pairs.hops))
        arrow = attribution.arrow(at if by == "arrow" else at[:3])._asdict()
        score = round(float(most.values[tuple(at)]), 6)
        found.append(ScoredArrow(**arrow, symbol=names[symbol], hop=pairs.hops[hop], score=score))
    unique = dict.fromkeys(found)  # a row's arrows all say the same
    return tuple(sorted(unique, key=lambda its: -its.score))


class Attribution:
    """The pairs of a task and a model, attributed to arrows; sums over examples."""

    def __init__(self, adapter: Adapter, pairs: Pairs) -> None:
        self.adapter, self.pairs, self.table = adapter, pairs, pairs.examples.table
        passes = self._passes(len(pairs.counterfactuals))
        self.answers: Answers = torch.cat([-_distance(its) for its in passes])
        check_answers(self.answers)
        self.sure = self.answers.sum(0)

    def arrow(self, at: Sequence[int]) -> Arrow:
        """The arrow (or row) that stands there among scores."""
        layer, head, destination, *source = at
        if not source:
            return Arrow(layer, head, self.table[destination], None)
        return Arrow(layer, head, self.table[destination], self.table[source[0]], CHAINS[source[1]])

    def place(self, arrow: Arrow) -> Place:
        """Where an arrow (or row) stands among scores."""
        number = self.pairs.examples.number
        row = (arrow.layer, arrow.head, number(arrow.destination))
        if arrow.source is None:
            return row
        return (*row, number(arrow.source), CHAINS.index(arrow.chain))

    def by_gradient(self, steps: int) -> Scores:
        """EAP-IG, over so many interpolations of what enters the first layer."""
        found = self._nothing()
        for its, number, other in self._counterfactuals():
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
        """For every answer, its gradient by what each layer's heads bring to each position."""
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
        """Direct logit attribution: what comes goes straight to the output."""
        adapter = self.adapter
        if not isinstance(adapter, Additive):
            raise CircuitError(
                "what single heads add is not known of this model, so that nothing can be "
                "attributed to them directly: its adapter has no `added`"
            )
        found, roles = self._nothing(), range(len(self.table))
        for its, number, other in self._counterfactuals():
            plain, end = _distance(its), its.own.streams[-1][:, -its.read :]
            destinations = its.role[:, -its.read :].unique().tolist()
            for layer in range(adapter.layers):
                nothing = torch.zeros_like(its.own.values[layer][:, :, -its.read :])
                base = adapter.added(layer, nothing[:1])
                for at in product([layer], range(adapter.heads), destinations, roles, range(2)):
                    # What the counterfactual brings more along an arrow; None: the same.
                    change = its.change(_site(self.arrow(at)), other)
                    if change is not None:
                        mixed = nothing.clone()
                        mixed[:, at[1]] = change[:, 0, -its.read :]
                        gain = _distance(its, end + adapter.added(layer, mixed) - base) - plain
                        found[(number, slice(None), *at)] += gain.sum(0)
        return self._as_share(found)

    def patched(self, arrows: Sequence[Arrow] | None = None) -> Scores:
        """Rows of heads patched one by one, each of its arrows scored alike; or single arrows."""
        found, names = self._nothing(), list(self.pairs.counterfactuals)
        if arrows is None:
            rows = product(range(self.adapter.layers), range(self.adapter.heads), self.table)
            arrows = [Arrow(*row, None) for row in rows]
        variants = list(product(range(len(arrows)), names))
        for its in self._passes(len(variants), [_site(arrow) for arrow in arrows]):
            moved = its.moved(variants, ("all",))[1][:, 0]
            gains = (moved[0] - moved[1]).sum(1)
            for (number, name), gain in zip(variants, gains, strict=True):
                by_hop_last = found[names.index(name)].movedim(0, -1)
                by_hop_last[self.place(arrows[number])] += gain
        return self._as_share(found)

    def possible(self) -> Float[Tensor, "layer head destination source chain"]:
        """1 for every arrow along which something comes in some example."""
        found = self._nothing()[0, 0]
        for its in self._passes(1):
            for layer, weights in enumerate(its.own.weights):
                found[layer] += self._summed(its, weights)
        return (found > 0).double()

    def _passes(self, streams: int, sites: Sequence[Site] = ()) -> Iterator[Patching]:
        """The examples, as many at a time as memory allows."""
        for some in chunks_of(self.adapter, self.pairs.examples, streams):
            yield Patching(self.adapter, self.pairs, sites, some)

    def _counterfactuals(self) -> Iterator[tuple[Patching, int, Recorded]]:
        """Some examples, the number of a symbol, and the pass over its counterfactuals."""
        for its in self._passes(len(self.pairs.counterfactuals)):
            for number, other in enumerate(its.counterfactuals().values()):
                yield its, number, other

    def _summed(
        self, its: Patching, gain: Float[Tensor, "batch head seq seq"]
    ) -> Float[Tensor, "head destination source chain"]:
        """A number for each pair of positions, as sums between roles."""
        stands = one_hot(its.role.long(), len(self.table)).double()
        same = its.same[:, None]
        parts = [torch.where(here, gain.double(), 0.0) for here in (same, ~same)]
        sums = [torch.einsum("bhij,bir,bjs->hrs", part, stands, stands) for part in parts]
        return torch.stack(sums, -1).cpu()

    def _nothing(self) -> Scores:
        shape = (self.adapter.layers, self.adapter.heads, len(self.table), len(self.table), 2)
        sizes = (len(self.pairs.counterfactuals), len(self.pairs.hops), *shape)
        return torch.zeros(sizes, dtype=torch.float64)

    def _as_share(self, found: Scores) -> Scores:
        """Sums of distances as shares of the way from own to counterfactual answer; not a number
        for a hop of which the model has no answer of its own.
        """
        whole = torch.where(has_answers(self.answers), 2 * self.sure, torch.nan)
        return found / whole[None, :, None, None, None, None, None]


def _site(arrow: Arrow) -> Site:
    """The arrow as a place to patch."""
    return Site(
        layer=arrow.layer,
        heads=(arrow.head,),
        destinations=(arrow.destination,),
        source=arrow.source,
        chain=arrow.chain,
    )


def _distance(its: Patching, end: Tensor | None = None) -> Float[Tensor, "batch hop"]:
    """How much nearer answers are to the other chain's symbols than to their own chain's."""
    found = its.nearness((its.own.streams[-1] if end is None else end)[None])
    return found[0, 0] - found[1, 0]
