"""The model under the microscope, whoever made it: walked layer by layer, edited on the way."""

import hashlib
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from hopscope.errors import CircuitError
from hopscope.models import Edits, Transformer


@runtime_checkable
class Subject(Protocol):
    """A model that can be walked: what enters the first layer, each layer, what leaves the last.

    A layer hands its attention [batch, head, read, seq] to `edits.attention`, and what its heads
    carry [batch, head, read, d_head] to `edits.heads`, and goes on with what they return.
    """

    layers: int
    heads: int
    causal: bool

    def enter(self, inputs: Tensor) -> Tensor:
        """The residual stream before the first layer."""

    def layer(self, number: int, x: Tensor, edits: Edits, read: int | None) -> Tensor:
        """The residual stream after a layer, of the last `read` positions (None: of all)."""

    def leave(self, x: Tensor) -> Tensor:
        """The model's outputs [batch, read, …]."""

    def answers_at(self) -> int:
        """From how many of the last positions answers are read."""

    def digest(self) -> str:
        """What tells this model from others: a hash of its weights."""


class TransformerSubject:
    """One of hopscope's own transformers."""

    def __init__(self, model: Transformer) -> None:
        if model.fleet:
            raise CircuitError(
                f"this is a fleet of {model.fleet[0]}; examine one member: model.member(i)"
            )
        self.model = model
        self.layers, self.heads = model.config.layers, model.config.heads
        self.causal = model.config.causal

    def enter(self, inputs: Tensor) -> Tensor:
        return self.model.enter(inputs)

    def layer(self, number: int, x: Tensor, edits: Edits, read: int | None) -> Tensor:
        return self.model.layer(number, x, edits, read)

    def leave(self, x: Tensor) -> Tensor:
        return self.model.leave(x)

    def answers_at(self) -> int:
        return self.model.interface.read

    def digest(self) -> str:
        return weights_digest(self.model)


def weights_digest(module: nn.Module) -> str:
    """SHA-256 over names and weights."""
    found = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        found.update(name.encode())
        found.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return found.hexdigest()
