"""How far the rows of a circuit are the attention of the model itself.

A rule can be enough for the answers though the head does something else, for instance if the head
attends to one of several places that hold the same symbol.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from hopscope.circuits.adapters import CallbackModel
from hopscope.circuits.attention import chunks, patterns
from hopscope.circuits.components import Component, Estimate
from hopscope.circuits.engine import Adapter
from hopscope.circuits.examples import Examples
from hopscope.circuits.prescriber import Prescriber, prescriber_of


@torch.no_grad()
def with_overlap(
    adapter: Adapter | CallbackModel, examples: Examples, components: Sequence[Component]
) -> list[Component]:
    """The components with their overlap: of the attention that the model pays in their rows, the
    share that lies as the target says (the smaller of both, position by position). It is averaged
    over the rows in an example, and over the examples that have some.
    """
    examples = examples.on(adapter.device)
    found: list[list[Tensor]] = [[] for _ in components]
    for chunk in chunks(adapter, examples):
        some = examples.part(chunk)
        prescriber = prescriber_of(adapter, some)
        for layer, pattern in enumerate(patterns(adapter, some.inputs)):
            for component, its in zip(components, found, strict=True):
                if component.layer == layer:
                    its.append(_overlap(pattern, prescriber.of(layer), component))
    each = [torch.cat(parts).double().cpu().numpy() for parts in found]
    return [
        component.model_copy(update={"overlap": Estimate.of_shares(shares)})
        for component, shares in zip(components, each, strict=True)
    ]


def _overlap(
    pattern: Float[Tensor, "batch head seq seq"], prescriber: Prescriber, component: Component
) -> Float[Tensor, "example"]:
    """The overlap in each example that has rows of the component."""
    size, length = pattern.shape[0], pattern.shape[-1]
    total, rows = pattern.new_zeros(2, size, dtype=torch.float32)
    for (_, head), role in component.rows:
        spots = prescriber.spots(role, length)
        own = pattern[:, head].float()
        target = prescriber.rows_of(component.target, role, own, length)
        same = target.minimum(own[spots.example, spots.row]).sum(-1)
        total.index_add_(0, spots.example, same)
        rows.index_add_(0, spots.example, torch.ones_like(same))
    return (total / rows)[rows > 0]
