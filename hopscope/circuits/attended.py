"""All attention of a model under an ablation, at every position: to be looked at, not measured.

It is walked from the first layer to the last without any of the shortcuts of `Walk`.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from hopscope.circuits.ablation import Ablation, Carried
from hopscope.circuits.adapters import CallbackModel
from hopscope.circuits.engine import Adapter, Brought, Heads, forward
from hopscope.circuits.exam import Exam
from hopscope.circuits.painter import Painter
from hopscope.errors import CircuitError

AS_IT_IS = Ablation()
"""Nothing is changed."""


@dataclass(frozen=True)
class Attended:
    """What every layer did."""

    patterns: Float[Tensor, "layer batch head seq seq"]
    carried: Float[Tensor, "layer batch head seq d_head"]
    """What every head brought to each position."""
    outputs: Tensor
    """The outputs at every position."""


@torch.no_grad()
def attended(
    adapter: Adapter | CallbackModel, exam: Exam, ablation: Ablation = AS_IT_IS
) -> Attended:
    """The attention of every layer, what it carried, and the outputs, with heads changed."""
    if isinstance(adapter, CallbackModel):
        raise CircuitError(
            "a module that only runs as a whole does not tell what its heads carry: write an "
            "adapter that walks"
        )
    exam = exam.on(adapter.device)
    painter = Painter(exam, adapter.causal)
    carries = any(isinstance(change, Carried) for _, change in ablation.changes)
    usual = attended(adapter, exam).carried if carries else None
    patterns, carried = [], []

    def attend(layer: int, heads: Heads) -> Brought:
        own = heads.weights()
        pattern = own.clone()
        changes = ablation.at(layer)
        for head, change in changes:
            if not isinstance(change, Carried):
                pattern[:, head] = painter.attention(change, own[:, head])
        mixed = pattern @ heads.values
        for head, change in changes:
            if isinstance(change, Carried):
                assert usual is not None
                its = usual[layer, :, head]
                mixed[:, head] = its.mean(0) if change.instead == "mean" else its.roll(1, 0)
        patterns.append(pattern)
        carried.append(mixed)
        return mixed

    end = forward(adapter, adapter.embed(exam.inputs), attend)
    return Attended(torch.stack(patterns), torch.stack(carried), adapter.unembed(end))
