"""A model of which some arrows go on as they are, and every other brings its mean.

The mean of an arrow is what its head brings from that role to that role, over all examples: no
symbol is left in it. So a set of arrows, whoever chose it, is worth what the model still can do.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from hopscope.circuits.engine import Adapter, Brought, Heads, forward
from hopscope.circuits.exam import Exam
from hopscope.tracing.patched import chunks_of

Chosen = Bool[Tensor, "layer head reader source chain"]


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
        stands = torch.nn.functional.one_hot(self.role, len(self.exam.table)).float()
        count = stands.sum((0, 1)).clamp_min(1)
        for some in self._chunks():
            readers, same = stands[some], self._same(some)

            def attend(
                layer: int, heads: Heads, readers: Tensor = readers, same: Tensor = same
            ) -> Brought:
                pattern = heads.weights()
                sums = torch.stack([
                    torch.stack([
                        torch.einsum("bhid,bir->hrd",
                                     ((pattern * (part & here)) @ heads.values).to(readers.dtype),
                                     readers)
                        for part in (same, ~same)
                    ], -2)
                    for here in (readers > 0).permute(2, 0, 1)[:, :, None, None]
                ], 2)  # fmt: skip
                if len(layers) == layer:
                    layers.append(torch.zeros_like(sums))
                layers[layer] += sums
                return pattern @ heads.values

            forward(self.adapter, self._entered(some), attend)
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
                mixed = (heads.weights() * kept.transpose(0, 1)) @ heads.values
                return mixed + rest[:, role].transpose(0, 1).to(mixed.dtype)

            x = forward(self.adapter, self._entered(some), attend)
            outputs.append(self.adapter.unembed(x[:, -self.read :]).cpu())
        return float(self.exam.marks(torch.cat(outputs)).double().mean())

    def _chunks(self) -> list[slice]:
        return chunks_of(self.adapter, self.exam, 4 * self.adapter.heads)

    def _entered(self, some: slice) -> Tensor:
        return self.adapter.embed(self.exam.inputs[some].to(self.adapter.device))

    def _same(self, some: slice) -> Bool[Tensor, "batch head seq seq"]:
        chain = self.chain[some]
        return (chain[:, :, None] == chain[:, None, :])[:, None]
