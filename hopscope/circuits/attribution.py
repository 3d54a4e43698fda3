"""How far every arrow moves every answer: by gradients, by the direct way, and by patching.

An arrow is what one head brings to one role from another. Where the counterfactual has something
else there, the answers move; 0 is the own chain's answer and 1 the counterfactual's (half way: it
is merely lost). Three approximations of that, and that itself:

* EAP-IG: edge attribution patching with integrated gradients (Hanna et al. 2024), with the heads'
  arrows between roles as edges. What the counterfactual brings more, times the gradient of the
  answer, averaged over inputs between own and counterfactual. Switches: scores are absolute, the
  top arrows are kept (not greedily grown from the output), and all others bring their mean.
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

from hopscope.circuits.effects import Site
from hopscope.circuits.engine import (
    Adapter,
    Additive,
    Brought,
    Heads,
    Recorded,
    as_model,
    forward,
)
from hopscope.circuits.pairs import Pairs
from hopscope.circuits.patching import Answers, Patching, check_answers, chunks_of, has_answers
from hopscope.circuits.ranking import Arrow
from hopscope.errors import CircuitError

CHAINS: tuple[Literal["own"], Literal["others"]] = ("own", "others")
Scores = Float[Tensor, "symbol hop layer head reader source chain"]


class Attribution:
    """The pairs of a task and a model, attributed to arrows; sums over examples."""

    def __init__(self, adapter: Adapter, pairs: Pairs) -> None:
        self.adapter, self.pairs = adapter, pairs
        self.roles = len(pairs.exam.table)
        chunks = chunks_of(adapter, pairs.exam, len(pairs.counterfactuals))
        self.answers: Answers = torch.cat([-_distance(self._chunk(some)) for some in chunks])
        check_answers(self.answers)
        self.sure = self.answers.sum(0)

    def by_gradient(self, steps: int) -> Scores:
        """EAP-IG, over so many interpolations of what enters the first layer."""
        found = self._nothing()
        for its, others in self._walks():
            for number, other in enumerate(others):
                for step in range(steps):
                    part = (step + 0.5) / steps
                    x = its.own.streams[0] + part * (other.streams[0] - its.own.streams[0])
                    for hop, gradients in enumerate(self._gradients(its, x)):
                        for layer, gradient in enumerate(gradients):
                            gain = _gain(its.own, other, layer, gradient) / steps
                            found[number, hop, layer] += self._summed(its, gain)
        return self._as_share(found)

    def _gradients(self, its: Patching, x: Tensor) -> Iterator[list[Tensor]]:
        """For every answer, its gradient by what each layer's heads bring to each position."""
        leaves: list[Tensor] = []

        def attend(layer: int, heads: Heads) -> Brought:
            mixed = as_model(layer, heads)
            leaves.append(torch.zeros_like(mixed, requires_grad=True))
            return mixed + leaves[-1]

        with torch.enable_grad():
            x = forward(self.adapter, x, attend)
            marks = its.marks(x[None])
            moved = (marks[0, 0] - marks[1, 0]).sum(0)
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
        found = self._nothing()
        for its, others in self._walks():
            plain = _distance(its)
            readers = its.role[:, -its.read :].unique().tolist()
            for (number, other), layer in product(enumerate(others), range(adapter.layers)):
                nothing = torch.zeros_like(its.own.values[layer][:, :, -its.read :])
                base = adapter.added(layer, nothing[:1])
                for at in product(range(adapter.heads), readers, range(self.roles), range(2)):
                    change = self._change(its, other, (layer, *at))
                    if change is not None:
                        mixed = nothing.clone()
                        mixed[:, at[0]] = change[:, -its.read :]
                        end = its.own.streams[-1][:, -its.read :] + adapter.added(layer, mixed)
                        gain = _distance(its, end - base) - plain
                        found[(number, slice(None), layer, *at)] += gain.sum(0)
        return self._as_share(found)

    def _change(
        self, its: Patching, other: Recorded, at: tuple[int, ...]
    ) -> Float[Tensor, "batch seq d_head"] | None:
        """What the counterfactual brings more along an arrow; None if it brings the same."""
        layer, head, reader, source, chain = at
        table = self.pairs.exam.table
        arrow = Arrow(layer, head, table[reader], table[source], CHAINS[chain])
        change = its.change(_site(arrow), other)
        return None if change is None else change[:, 0]

    def patched(self, arrows: Sequence[Arrow] | None = None) -> Scores:
        """Rows of heads patched one by one, each of its arrows scored alike; or single arrows."""
        table, found = self.pairs.exam.table, self._nothing()
        if arrows is None:
            every = product(range(self.adapter.layers), range(self.adapter.heads), table)
            sites = [Site(layer=n, heads=(h,), readers=(role,)) for n, h, role in every]
        else:
            sites = [_site(arrow) for arrow in arrows]
        variants = list(product(range(len(sites)), self.pairs.counterfactuals))
        names = list(self.pairs.counterfactuals)
        for some in chunks_of(self.adapter, self.pairs.exam, len(variants)):
            its = Patching(self.adapter, self.pairs, sites, some)
            moved = its.moved(variants, ("all",))[1][:, 0]
            gains = (moved[0] - moved[1]).sum(1)
            for (site, name), gain in zip(variants, gains, strict=True):
                at = sites[site]
                reader = table.index(at.readers[0])
                where = found[names.index(name), :, at.layer, at.heads[0], reader]
                if at.source is None:
                    where += gain[:, None, None]
                else:
                    where[:, table.index(at.source), CHAINS.index(at.chain)] += gain
        return self._as_share(found)

    def possible(self) -> Float[Tensor, "layer head reader source chain"]:
        """1 for every arrow along which something comes in some example."""
        found = self._nothing()[0, 0]
        for some in chunks_of(self.adapter, self.pairs.exam, 1):
            its = self._chunk(some)
            for layer, pattern in enumerate(its.own.weights):
                found[layer] += self._summed(its, pattern)
        return (found > 0).double()

    def _chunk(self, some: slice) -> Patching:
        return Patching(self.adapter, self.pairs, (), some)

    def _walks(self) -> Iterator[tuple[Patching, list[Recorded]]]:
        for some in chunks_of(self.adapter, self.pairs.exam, len(self.pairs.counterfactuals)):
            its = self._chunk(some)
            yield its, list(its.counterfactuals().values())

    def _summed(
        self, its: Patching, gain: Float[Tensor, "batch head seq seq"]
    ) -> Float[Tensor, "head reader source chain"]:
        """A number for each pair of positions, as sums between roles."""
        stands = torch.nn.functional.one_hot(its.role.long(), self.roles).double()
        same = (its.chain[:, :, None] == its.chain[:, None, :])[:, None]
        parts = [torch.where(same == wanted, gain.double(), 0.0) for wanted in (True, False)]
        sums = [torch.einsum("bhij,bir,bjs->hrs", part, stands, stands) for part in parts]
        return torch.stack(sums, -1).cpu()

    def _nothing(self) -> Scores:
        shape = (self.adapter.layers, self.adapter.heads, self.roles, self.roles, 2)
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
        readers=(arrow.reader,),
        source=arrow.source,
        chain=arrow.chain,
    )


def _distance(its: Patching, end: Tensor | None = None) -> Float[Tensor, "batch hop"]:
    """How much nearer answers are to the other chain's symbols than to their own chain's."""
    marks = its.marks((its.own.streams[-1] if end is None else end)[None])
    return marks[0, 0] - marks[1, 0]


def _gain(
    own: Recorded, other: Recorded, layer: int, gradient: Float[Tensor, "batch head seq d_head"]
) -> Float[Tensor, "batch head seq seq"]:
    """For each reader and source, what the counterfactual brings more, times the gradient."""
    there, here = (its.weights[layer] * (gradient @ its.values[layer].mT) for its in (other, own))
    return there - here
