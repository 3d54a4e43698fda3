"""Faithfulness of a set of arrows, as the MIB benchmark measures it (Mueller et al. 2025).

The arrows of the set are kept. Every other arrow is ablated: its contribution is replaced by that
in the counterfactual, or by its mean over examples. The score is how much nearer the answers are to
the symbols of their own chain than to those of the other chain (for tokens the difference of their
logits), over all minimal pairs. Faithfulness is

    (score of the set - score of no arrow) / (score of the model - score of no arrow)

Embeddings are those of the example, and MLPs compute from what reaches them.
"""

from collections.abc import Iterator, Sequence
from math import inf

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import one_hot

from hopscope.circuits.engine import Adapter, Attend, Brought, Heads, Recorded, forward
from hopscope.circuits.patching import Pairs, Patching, chunks_of
from hopscope.circuits.ranking import SHARES, CurvePoint, Switches

ArrowMask = Bool[Tensor, "layer head destination source chain"]

ArrowIndex = tuple[int, ...]
"""An arrow by its numbers: layer, head, destination, source, chain."""


class Faithfulness:
    """Measures the faithfulness of sets of arrows of a model, on minimal pairs."""

    def __init__(
        self, adapter: Adapter, pairs: Pairs, possible: ArrowMask, switches: Switches
    ) -> None:
        self.adapter, self.pairs, self.possible = adapter, pairs, possible
        self.switches = switches
        self.means = self._means() if switches.rest == "mean" else None
        nothing = torch.zeros_like(possible)
        self.empty, self.model = self._score(nothing), self._score(~nothing)

    def of(self, chosen: ArrowMask) -> float:
        """The faithfulness of these arrows: 0 with none, 1 with all."""
        return (self._score(chosen) - self.empty) / (self.model - self.empty)

    def kept(self, arrows: Sequence[ArrowIndex], circuit: ArrowMask) -> CurvePoint:
        """The faithfulness of keeping these arrows, and how many of them are in a circuit."""
        chosen = torch.zeros_like(circuit)
        for at in arrows:
            chosen[at] = True
        hits = int((chosen & circuit).sum())
        return CurvePoint(arrows=len(arrows), hits=hits, faithfulness=self.of(chosen))

    def curve(self, order: Sequence[ArrowIndex], circuit: ArrowMask) -> tuple[CurvePoint, ...]:
        """The faithfulness of keeping the first arrows of `order`: one entry for each of `SHARES`
        of all possible arrows.
        """
        counts = [int(share * int(self.possible.sum())) for share in SHARES]
        found = {count: self.kept(order[:count], circuit) for count in dict.fromkeys(counts)}
        return tuple(found[count] for count in counts)

    def best_first(
        self, scores: Float[Tensor, "layer head destination source chain"]
    ) -> list[ArrowIndex]:
        """All possible arrows, the highest score first (equal scores: by their index)."""
        at: list[ArrowIndex] = [tuple(each) for each in self.possible.nonzero().tolist()]
        by_score = scores[self.possible]
        by_score = by_score if self.switches.signed else by_score.abs()
        order = [at[n] for n in by_score.argsort(descending=True, stable=True).tolist()]
        return list(self._connected(order)) if self.switches.greedy else order

    def _connected(self, rest: list[ArrowIndex]) -> Iterator[ArrowIndex]:
        """Repeatedly take the best remaining arrow that leads to an answer, or to an arrow taken
        before.
        """
        examples = self.pairs.examples
        answers = examples.roles.role[:, -examples.read_of(self.adapter.answers_at()) :]
        # Role -> layer: what is written at the role before that layer can reach the output.
        reached: dict[int, float] = dict.fromkeys(answers.unique().tolist(), inf)
        while found := next((at for at in rest if at[0] < reached.get(at[2], 0)), None):
            rest.remove(found)
            for role in found[2:4]:
                reached[role] = max(reached.get(role, 0), found[0])
            yield found

    def _score(self, chosen: ArrowMask) -> float:
        total, chosen = 0.0, chosen.to(self.adapter.device)
        for its in self._parts():
            others = [None] if self.means is not None else [*its.counterfactuals().values()]
            for other in others:
                end = forward(self.adapter, its.own.streams[0], self._keeping(chosen, its, other))
                to_other, to_own = its.nearness(end[None])[:, 0]
                total += float((to_own - to_other).sum()) / len(others)
        return total

    def _keeping(self, chosen: ArrowMask, its: Patching, other: Recorded | None) -> Attend:
        """An `attend` in which chosen arrows are computed and all others are ablated."""
        role, chain = its.role.long(), (~its.same).long()

        def attend(layer: int, heads: Heads) -> Brought:
            kept = chosen[layer][:, role[:, :, None], role[:, None, :], chain].transpose(0, 1)
            brought = (heads.weights() * kept) @ heads.values
            if other is not None:
                return brought + (other.weights[layer] * ~kept) @ other.values[layer]
            assert self.means is not None
            rest = (self.means[layer] * ~chosen[layer][..., None]).sum((2, 3))
            return brought + rest[:, role].transpose(0, 1).to(brought.dtype)

        return attend

    def _means(self) -> Float[Tensor, "layer head destination source chain d_head"]:
        """The mean contribution of each arrow, over examples and positions of the destination."""
        total, count = torch.zeros(()), torch.zeros(())
        for its in self._parts():
            here = one_hot(its.role.long(), len(self.pairs.examples.table)).float()
            same = its.same[:, None].float()
            count = count + here.sum((0, 1))
            total = total + torch.stack([
                torch.stack([
                    torch.einsum("bhij,bir,bjs,bhjd->hrsd",
                                 weights.float() * part, here, here, values.float())
                    for part in (same, 1 - same)
                ], 3)
                for weights, values in zip(its.own.weights, its.own.values, strict=True)
            ])  # fmt: skip
        return total / count.clamp_min(1)[:, None, None, None]

    def _parts(self) -> Iterator[Patching]:
        """The examples in parts that fit in memory."""
        for some in chunks_of(self.adapter, self.pairs.examples, 4 * self.adapter.heads):
            yield Patching(self.adapter, self.pairs, (), some)
