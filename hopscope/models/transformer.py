"""A GPT-2-style pre-norm transformer: vectors or tokens in, numbers at the read positions out.

    input map or embedding → [norm → attention → +, norm → MLP → +] × layers → norm → head

The attention of any layer can be seen, and replaced, through an argument:

    model(x, attention=edit)     edit(layer, pattern) -> pattern

With `models=(seed, …)` it is a fleet: parameters, inputs and outputs have a model axis in
front, and member i computes what a single model with its weights would.
"""

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from hopscope.configs import Interface, Model
from hopscope.errors import ModelError
from hopscope.models.layers import Affine, Attention, Embedding, Mlp, Norm

GPT2_STD = 0.02


AttentionEdit = Callable[[int, Float[Tensor, "*model batch head read seq"]], Tensor]
"""Sees the attention of a layer and returns what to use instead (or the same)."""


class Block(nn.Module):
    """Attention, then (unless the config says no) an MLP; each adds to the residual stream."""

    def __init__(self, fleet: tuple[int, ...], config: Model) -> None:
        super().__init__()
        self.attention = Attention(fleet, config)
        self.mlp = Mlp(fleet, config) if config.mlp else None
        self.attention_norm = _norm(fleet, config)
        self.mlp_norm = _norm(fleet, config) if config.mlp else None

    def forward(
        self,
        x: Float[Tensor, "*model batch seq d_model"],
        mask: Float[Tensor, "seq seq"],
        read: int,
        edit: "BoundEdit",
    ) -> Float[Tensor, "*model batch read d_model"]:
        y = self.attention_norm(x)
        pattern = edit(self.attention.pattern(y, mask, read))
        x = x[..., -read:, :] + self.attention.moved(y, pattern)
        if self.mlp is not None and self.mlp_norm is not None:
            x = x + self.mlp(self.mlp_norm(x))
        return x


class BoundEdit:
    """An edit at one layer; checks that what it returns fits."""

    def __init__(self, edit: AttentionEdit | None, layer: int) -> None:
        self.edit, self.layer = edit, layer

    def __call__(self, pattern: Tensor) -> Tensor:
        if self.edit is None:
            return pattern
        edited = self.edit(self.layer, pattern)
        if edited.shape != pattern.shape:
            raise ModelError(
                f"the attention edit of layer {self.layer} returned shape {tuple(edited.shape)}, "
                f"expected {tuple(pattern.shape)} (… batch head read seq)"
            )
        return edited.to(pattern.dtype)


class Transformer(nn.Module):
    """One model, or a fleet of models of one shape."""

    def __init__(self, config: Model, interface: Interface, models: Sequence[int] = ()) -> None:
        super().__init__()
        fleet = (len(models),) if models else ()
        self.config, self.interface, self.fleet = config, interface, fleet
        width, inputs = config.d_model, interface.inputs
        self.input = (
            Embedding(fleet, inputs, interface.length, width)
            if interface.tokens
            else Affine(fleet, inputs, width)
        )
        self.blocks = nn.ModuleList(Block(fleet, config) for _ in range(config.layers))
        self.norm = _norm(fleet, config)
        self.head = Affine(fleet, width, interface.outputs)
        for member, seed in enumerate(models):
            self._initialise(seed, member)

    @classmethod
    def seeded(cls, config: Model, interface: Interface, seed: int) -> "Transformer":
        """A single model with the initial weights of its seed."""
        model = cls(config, interface)
        model._initialise(seed)
        return model

    def forward(
        self,
        inputs: Tensor,
        attention: AttentionEdit | None = None,
        read: int | None = None,
    ) -> Float[Tensor, "*model batch read outputs"]:
        """Outputs of the last `read` positions (all that the interface reads, unless told).

        The last layer computes only those; every earlier layer computes all positions.
        """
        read = read or self.interface.read
        length = inputs.shape[-1] if self.interface.tokens else inputs.shape[-2]
        dtype = self.head.weight.dtype
        x = self.input(inputs if self.interface.tokens else inputs.to(dtype))
        mask = _mask(length, self.config.causal, x.device)
        for layer, block in enumerate(self.blocks):
            last = layer == self.config.layers - 1
            x = block(x, mask, read if last else length, BoundEdit(attention, layer))
        out: Tensor = self.head(self.norm(x))
        return out

    @torch.no_grad()
    def attention(self, inputs: Tensor) -> Float[Tensor, "layer *model batch head seq seq"]:
        """Every layer's attention, from every position to every position."""
        seen: list[Tensor] = []

        def note(_: int, pattern: Tensor) -> Tensor:
            seen.append(pattern)
            return pattern

        length = inputs.shape[-1] if self.interface.tokens else inputs.shape[-2]
        self(inputs, attention=note, read=length)
        return torch.stack(seen)

    def member(self, number: int) -> "Transformer":
        """One model of a fleet, on its own."""
        if not self.fleet:
            raise ModelError("member() was asked of a single model; only a fleet has members")
        if not 0 <= number < self.fleet[0]:
            raise ModelError(f"member {number} of a fleet of {self.fleet[0]}: count from 0")
        alone = Transformer(self.config, self.interface)
        alone.load_state_dict({name: w[number] for name, w in self.state_dict().items()})
        return alone

    @torch.no_grad()
    def _initialise(self, seed: int, member: int | None = None) -> None:
        generator = torch.Generator().manual_seed(seed)
        for name, parameter in self.named_parameters():
            std = self._std(name, parameter.shape[-1])
            if std is None:
                continue
            target = parameter if member is None else parameter[member]
            target.copy_(torch.empty(target.shape).normal_(0, std, generator=generator))

    def _std(self, name: str, fan_in: int) -> float | None:
        """The std of a parameter's initial values; None leaves gains at 1 and biases at 0.

        | parameter                | gpt2                  | fan-in   |
        |--------------------------|-----------------------|----------|
        | input.weight             | 1/√inputs, or input_std          |
        | input.token, .position   | 0.02, or input_std               |
        | attention.out, mlp.down  | 0.02 / √(2·layers)    | 1/√inputs|
        | every other matrix       | 0.02                  | 1/√inputs|
        """
        if name.startswith("input.") and not name.endswith("bias"):
            unset = GPT2_STD if self.interface.tokens else 1 / math.sqrt(fan_in)
            return self.config.input_std or unset
        if "norm" in name or name.endswith("bias"):
            return None
        if self.config.init == "fan-in":
            return 1 / math.sqrt(fan_in)
        into_residual = name.endswith(("attention.out.weight", "mlp.down.weight"))
        return GPT2_STD / math.sqrt(2 * self.config.layers) if into_residual else GPT2_STD


def _norm(fleet: tuple[int, ...], config: Model) -> nn.Module:
    return Norm(fleet, config.d_model) if config.norm == "layer" else nn.Identity()


def _mask(length: int, causal: bool, device: torch.device) -> Float[Tensor, "seq seq"]:
    mask = torch.zeros(length, length, device=device)
    if causal:
        mask.masked_fill_(torch.ones_like(mask, dtype=torch.bool).triu(1), -math.inf)
    return mask
