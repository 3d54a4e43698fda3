"""A model of which some arrows go on as they are, and every other brings its mean.

The mean of an arrow is what its head brings from that role to that role, over all examples: no
symbol is left in it. So a set of arrows, whoever chose it, is worth what the model still can do.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from hopscope.circuits.exam import Exam
from hopscope.circuits.subject import Subject
from hopscope.tracing.patched import chunks_of

Chosen = Bool[Tensor, "layer head reader source chain"]


class KeptArrows:
    """A model and examples on which sets of arrows are kept."""

    def __init__(self, subject: Subject, exam: Exam) -> None:
        self.subject, self.exam = subject, exam
        self.read = exam.read_of(subject.answers_at())
        roles = exam.on(subject.device).roles
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
            x, readers = self._entered(some), stands[some]
            same = self._same(some)
            for layer in range(self.subject.layers):
                pattern, values = self._parts(layer, x)
                sums = torch.stack([
                    torch.stack([
                        torch.einsum("bhid,bir->hrd",
                                     ((pattern * (part & here)) @ values).to(readers.dtype),
                                     readers)
                        for part in (same, ~same)
                    ], -2)
                    for here in (readers > 0).permute(2, 0, 1)[:, :, None, None]
                ], 2)  # fmt: skip
                if len(layers) == layer:
                    layers.append(torch.zeros_like(sums))
                layers[layer] += sums
                x = self.subject.write(layer, x, pattern @ values)
        return torch.stack(layers) / count[:, None, None, None]

    def _loss(self, chosen: Chosen) -> float:
        """The mean loss when only these arrows go on as they are."""
        outputs, chosen = [], chosen.to(self.role.device)
        for some in self._chunks():
            x, role, same = self._entered(some), self.role[some], self._same(some).long()
            for layer in range(self.subject.layers):
                pattern, values = self._parts(layer, x)
                kept = chosen[layer][:, role[:, :, None], role[:, None, :], 1 - same[:, 0]]
                rest = (self.means[layer] * ~chosen[layer][..., None]).sum((2, 3))
                mixed = (pattern * kept.transpose(0, 1)) @ values
                rest = rest[:, role].transpose(0, 1).to(mixed.dtype)
                x = self.subject.write(layer, x, mixed + rest)
            outputs.append(self.subject.leave(x[:, -self.read :]).cpu())
        return float(self.exam.marks(torch.cat(outputs)).double().mean())

    def _chunks(self) -> list[slice]:
        return chunks_of(self.subject, self.exam, 4 * self.subject.heads)

    def _entered(self, some: slice) -> Tensor:
        return self.subject.enter(self.exam.inputs[some].to(self.subject.device))

    def _parts(self, layer: int, x: Tensor) -> tuple[Tensor, Tensor]:
        """A layer's attention, and what there is to be carried."""
        pattern = self.subject.look(layer, x, x.shape[1], range(self.subject.heads))
        return pattern, self.subject.values(layer, x)

    def _same(self, some: slice) -> Bool[Tensor, "batch head seq seq"]:
        chain = self.chain[some]
        return (chain[:, :, None] == chain[:, None, :])[:, None]
