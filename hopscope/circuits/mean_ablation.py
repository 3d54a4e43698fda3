"""Mean ablation: some rows of a layer, or every arrow outside a set, bring their mean.

A head that goes by position may matter without moving any symbol: it tells every position where it
stands, and no patch of symbols shows that. `mean_ablate` replaces what its rows bring by the mean
over examples at each position, which leaves the place; then over all positions of a role, which
leaves a constant. `KeptArrows` keeps a set of arrows, and replaces all others by their means over
examples: a set is worth what the model still can do.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import one_hot

from hopscope.circuits.components import Estimate
from hopscope.circuits.effects import Averaged, Site
from hopscope.circuits.engine import Adapter, Attend, Brought, Heads, as_model, forward
from hopscope.circuits.exam import Exam
from hopscope.circuits.patching import chunks_of

Chosen = Bool[Tensor, "layer head reader source chain"]


@torch.no_grad()
def mean_ablate(
    adapter: Adapter, exam: Exam, sites: Sequence[Site], gap: float
) -> tuple[Averaged, ...]:
    """The losses when each site, rows of one layer, brings its mean; `gap` is the loss with
    everything ablated minus the loss of the model.
    """
    if not sites:
        return ()
    model = _loss(adapter, exam, [as_model for _ in chunks_of(adapter, exam, 1)])
    found = []
    for site in sites:
        by_place, by_role = _with_both(adapter, exam, site)
        found.append(Averaged(site=site, model=model, by_place=by_place, by_role=by_role, gap=gap))
    return tuple(found)


def _with_both(adapter: Adapter, exam: Exam, site: Site) -> tuple[Estimate, Estimate]:
    """The losses with the means by place, and with those by role."""
    chunks = chunks_of(adapter, exam, 1)
    every = list[Brought]()
    for some in chunks:
        x = forward(adapter, _embedded(adapter, exam, some), stop=site.layer)
        every.append(as_model(site.layer, adapter.project(site.layer, x)))
    brought = torch.cat(every)

    def bringing(rows: Brought) -> Attend:
        return lambda layer, heads: rows if layer == site.layer else as_model(layer, heads)

    def loss(over: tuple[int, ...]) -> Estimate:
        means = _means(exam, brought, site, over)
        return _loss(adapter, exam, [bringing(means[some]) for some in chunks])

    return loss((0,)), loss((0, 2))


def _means(exam: Exam, brought: Brought, site: Site, over: tuple[int, ...]) -> Brought:
    """What heads bring, but in the rows of a site the mean over these dimensions: 0 for examples,
    2 for positions.
    """
    heads = torch.zeros(brought.shape[1], 1, 1, dtype=torch.bool, device=brought.device)
    heads[list(site.heads)] = True
    found = brought
    for role in site.readers:
        here = exam.positions(role).bool().to(brought.device)[:, None, :, None]
        total = torch.where(here, brought, 0.0).sum(over, keepdim=True)
        means = total / here.sum(over, keepdim=True).clamp_min(1)
        found = torch.where(here & heads, means, found)
    return found


def _loss(adapter: Adapter, exam: Exam, attends: Sequence[Attend]) -> Estimate:
    """The loss when the model attends like this, chunk by chunk."""
    read, answers = exam.read_of(adapter.answers_at()), []
    for some, attend in zip(chunks_of(adapter, exam, 1), attends, strict=True):
        x = forward(adapter, _embedded(adapter, exam, some), attend)
        answers.append(adapter.unembed(x[:, -read:]).cpu())
    return Estimate.of(exam.marks(torch.cat(answers)).mean(-1).double().numpy())


def _embedded(adapter: Adapter, exam: Exam, some: slice) -> Tensor:
    return adapter.embed(exam.inputs[some].to(adapter.device))


class KeptArrows:
    """A model and examples on which sets of arrows are kept."""

    def __init__(self, adapter: Adapter, exam: Exam) -> None:
        self.adapter, self.exam = adapter, exam
        self.read = exam.read_of(adapter.answers_at())
        roles = exam.on(adapter.device).roles
        self.role, self.chain = roles.role.long(), roles.chain.long()
        self.means = self._means()
        everything = torch.ones(self.means.shape[:-1], dtype=torch.bool)
        self.clean = self._loss(everything)

    def share(self, chosen: Chosen) -> float:
        """The share of the gap between model and guessing that these arrows leave."""
        guess = self.exam.guess
        return (guess - self._loss(chosen)) / (guess - self.clean)

    def _means(self) -> Float[Tensor, "layer head reader source chain d_head"]:
        """What each arrow brings on average."""
        layers = list[Tensor]()
        stands = one_hot(self.role, len(self.exam.table)).float()
        count = stands.sum((0, 1)).clamp_min(1)
        for some in self._chunks():
            readers, same = stands[some], self._same(some)

            def attend(
                layer: int, heads: Heads, readers: Tensor = readers, same: Tensor = same
            ) -> Brought:
                weights = heads.weights()
                sums = torch.stack([
                    torch.stack([
                        torch.einsum("bhid,bir->hrd",
                                     ((weights * (part & here)) @ heads.values).to(readers.dtype),
                                     readers)
                        for part in (same, ~same)
                    ], -2)
                    for here in (readers > 0).permute(2, 0, 1)[:, :, None, None]
                ], 2)  # fmt: skip
                if len(layers) == layer:
                    layers.append(torch.zeros_like(sums))
                layers[layer] += sums
                return weights @ heads.values

            forward(self.adapter, _embedded(self.adapter, self.exam, some), attend)
        return torch.stack(layers) / count[:, None, None, None]

    def _loss(self, chosen: Chosen) -> float:
        """The mean loss when only these arrows go on as they are."""
        outputs, chosen = [], chosen.to(self.role.device)
        for some in self._chunks():
            role, same = self.role[some], self._same(some).long()

            def attend(
                layer: int, heads: Heads, role: Tensor = role, same: Tensor = same
            ) -> Brought:
                kept = chosen[layer][:, role[:, :, None], role[:, None, :], 1 - same[:, 0]]
                rest = (self.means[layer] * ~chosen[layer][..., None]).sum((2, 3))
                brought = (heads.weights() * kept.transpose(0, 1)) @ heads.values
                return brought + rest[:, role].transpose(0, 1).to(brought.dtype)

            x = forward(self.adapter, _embedded(self.adapter, self.exam, some), attend)
            outputs.append(self.adapter.unembed(x[:, -self.read :]).cpu())
        return float(self.exam.marks(torch.cat(outputs)).double().mean())

    def _chunks(self) -> list[slice]:
        return chunks_of(self.adapter, self.exam, 4 * self.adapter.heads)

    def _same(self, some: slice) -> Bool[Tensor, "batch head seq seq"]:
        chain = self.chain[some]
        return (chain[:, :, None] == chain[:, None, :])[:, None]
