"""A GPT-2-style pre-norm transformer: vectors or tokens in, numbers at the read positions out.

    input map or embedding → [norm → attention → +, norm → MLP → +] × layers → norm → head

The attention of any layer can be seen, and replaced, through an argument:

    model(x, attention=edit)     edit(layer, pattern) -> pattern

A model can also be run step by step: `enter`, `layer`, `leave`.

In bf16 a block is computed by the kernels of its backend (`native.backend_on`), chosen when it is
made, moved or cast. torch computes passes with an edit, and what the kernels do not support.

With `models=(seed, …)` it is a fleet: parameters, inputs and outputs have a model axis in
front, and member i computes what a single model with its weights would.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from hopscope.configs import Interface, Model
from hopscope.errors import ModelError
from hopscope.models import native
from hopscope.models.fused_blocks import FusedBlocks
from hopscope.models.layers import Affine, Attention, Embedding, Mlp, Norm, last_positions

GPT2_STD = 0.02
"""The standard deviation of GPT-2's initial weights."""


AttentionEdit = Callable[[int, Float[Tensor, "*model batch head read seq"]], Tensor]
"""Takes a layer and its attention; returns the attention to use instead (or the same)."""


@runtime_checkable
class Kernels(Protocol):
    """Computes sublayers of bf16 models faster than torch; the sublayers contain their norm."""

    def longest(self, norm: nn.Module, attention: Attention) -> int: ...
    def supports_mlp(self, norm: nn.Module, mlp: Mlp) -> bool: ...
    def attention(self, x: Tensor, norm: Any, attention: Attention, read: int) -> Tensor: ...
    def mlp(self, x: Tensor, norm: Any, mlp: Mlp) -> Tensor: ...


def kernels_of(backend: native.Backend) -> Kernels | None:
    """The kernels of a backend; None for torch."""
    if backend == "torch":
        return None
    if backend == "triton":
        from hopscope.models.cuda_ops import CudaOps

        return CudaOps()
    return FusedBlocks(tiles=backend == "amx")


class Block(nn.Module):
    """Attention, then an MLP (if the config has one); each adds to the residual stream."""

    def __init__(self, fleet: tuple[int, ...], config: Model) -> None:
        super().__init__()
        self.attention = Attention(fleet, config)
        self.mlp = Mlp(fleet, config) if config.mlp else None
        self.attention_norm = _norm(fleet, config)
        self.mlp_norm = _norm(fleet, config) if config.mlp else None
        self._choose_kernels()

    def _apply(self, fn: Any, recurse: bool = True) -> "Block":
        """Move or cast, as `nn.Module` does, then choose the kernels again."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self._choose_kernels()
        return self

    def _choose_kernels(self) -> None:
        """Choose kernels for this dtype and device, and the sublayers that they compute."""
        self.kernels: Kernels | None = None
        self.longest, self.mlp_in_kernels = 0, False  # longest: sequence length for attention
        if any(parameter.dtype != torch.bfloat16 for parameter in self.parameters()):
            return
        kernels = kernels_of(native.backend_on(self.attention.out.weight.device))
        if kernels is not None:
            self.kernels = kernels
            self.longest = kernels.longest(self.attention_norm, self.attention)
            if self.mlp and self.mlp_norm:
                self.mlp_in_kernels = kernels.supports_mlp(self.mlp_norm, self.mlp)

    def _kernels_take(self, x: Tensor) -> bool:
        """True if the kernels can be used for this residual stream (dtype, device and shape)."""
        bias, shape = self.attention.out.pair[1], (*x.shape[:-3], x.shape[-1])
        bf16 = x.dtype == bias.dtype == torch.bfloat16
        return bf16 and x.device == bias.device and shape == bias.shape

    def forward(
        self,
        x: Float[Tensor, "*model batch seq d_model"],
        read: int,
        layer: int,
        edit: AttentionEdit | None,
    ) -> Float[Tensor, "*model batch read d_model"]:
        if edit is None:
            return self.mlp_sublayer(self.attention_sublayer(x, read))
        y = self.attention_norm(x)
        pattern = _edited(edit, layer, self.attention.pattern(y, read))
        return self.write(x[..., -read:, :], pattern @ self.attention.values(y))

    def attention_sublayer(
        self, x: Float[Tensor, "*model batch seq d_model"], read: int
    ) -> Float[Tensor, "*model batch read d_model"]:
        """The stream at the last `read` positions after the attention sublayer."""
        if self.kernels and x.shape[-2] <= self.longest and self._kernels_take(x):
            return self.kernels.attention(x, self.attention_norm, self.attention, read)
        out: Tensor = last_positions(x, read) + self.attention(self.attention_norm(x), read)
        return out

    def mlp_sublayer(
        self, x: Float[Tensor, "*model batch seq d_model"]
    ) -> Float[Tensor, "*model batch seq d_model"]:
        """The stream at every position after the MLP sublayer (unchanged without an MLP)."""
        if self.mlp is None or self.mlp_norm is None:
            return x
        if self.kernels and self.mlp_in_kernels and self._kernels_take(x):
            return self.kernels.mlp(x, self.mlp_norm, self.mlp)
        out: Tensor = x + self.mlp(self.mlp_norm(x))
        return out

    def pattern(
        self,
        x: Float[Tensor, "*model batch seq d_model"],
        read: int,
        heads: Sequence[int],
        sources: Float[Tensor, "*model batch seq d_model"] | None = None,
    ) -> Float[Tensor, "*model batch head read seq"]:
        """The attention of some heads from the last `read` positions: queries from the residual
        stream `x`, keys from `sources` (default: `x`).
        """
        queries = self.attention_norm(x)
        keys = queries if sources is None else self.attention_norm(sources)
        return self.attention.pattern(queries, read, heads, keys)

    def values(
        self, x: Float[Tensor, "*model batch seq d_model"]
    ) -> Float[Tensor, "*model batch head seq d_head"]:
        """The values of all heads at every position."""
        return self.attention.values(self.attention_norm(x))

    def write(
        self,
        x: Float[Tensor, "*model batch read d_model"],
        mixed: Float[Tensor, "*model batch head read d_head"],
    ) -> Float[Tensor, "*model batch read d_model"]:
        """The residual stream after the block, from the stream before it and the heads' outputs."""
        return self.mlp_sublayer(x + self.attention.written(mixed))


def _edited(edit: AttentionEdit, layer: int, pattern: Tensor) -> Tensor:
    """The attention that the edit returns; raises ModelError if its type or shape is wrong."""
    edited: object = edit(layer, pattern)
    if not isinstance(edited, Tensor):
        kind = type(edited).__name__
        raise ModelError(f"the edit of layer {layer} returned {kind}; expected attention")
    if edited.shape != pattern.shape:
        raise ModelError(
            f"the edit of layer {layer} returned shape {tuple(edited.shape)}, "
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
        """The outputs of the last `read` positions (default: as many as the interface reads).

        The last layer computes only those; every earlier layer computes all positions.
        """
        read = read or self.interface.read
        x = self.enter(inputs)
        for layer in range(self.config.layers):
            last = layer == self.config.layers - 1
            x = self.layer(layer, x, attention, read if last else None)
        return self.leave(x)

    def enter(self, inputs: Tensor) -> Float[Tensor, "*model batch seq d_model"]:
        """The residual stream before the first layer."""
        tokens = self.interface.tokens
        x: Tensor = self.input(inputs if tokens else inputs.to(self.head.weight.dtype))
        return x

    def layer(
        self,
        number: int,
        x: Float[Tensor, "*model batch seq d_model"],
        edit: AttentionEdit | None = None,
        read: int | None = None,
    ) -> Float[Tensor, "*model batch read d_model"]:
        """The residual stream after a layer, at the last `read` positions (default: at all)."""
        every = x.shape[-2]
        out: Tensor = self.blocks[number](x, min(read or every, every), number, edit)
        return out

    def leave(
        self, x: Float[Tensor, "*model batch read d_model"]
    ) -> Float[Tensor, "*model batch read outputs"]:
        """The outputs, from the residual stream after the last layer."""
        out: Tensor = self.head(self.norm(x))
        return out

    @torch.no_grad()
    def attention(self, inputs: Tensor) -> Float[Tensor, "layer *model batch head seq seq"]:
        """The attention of every layer, from every position to every position."""
        seen: list[Tensor] = []

        def note(_: int, pattern: Tensor) -> Tensor:
            seen.append(pattern)
            return pattern

        length = inputs.shape[-1] if self.interface.tokens else inputs.shape[-2]
        self(inputs, attention=note, read=length)
        return torch.stack(seen)

    def member(self, number: int) -> "Transformer":
        """One model of a fleet as a single model."""
        if not self.fleet:
            raise ModelError("got a single model; only a fleet has members")
        if not 0 <= number < self.fleet[0]:
            raise ModelError(f"member {number} of a fleet of {self.fleet[0]}: count from 0")
        alone = Transformer(self.config, self.interface)
        alone.load_state_dict({name: w[number] for name, w in self.state_dict().items()})
        return alone

    @torch.no_grad()
    def _initialise(self, seed: int, member: int | None = None) -> None:
        generator = torch.Generator().manual_seed(seed)
        for name, parameter in self.named_parameters():
            std, bound = self._std(name), self._bound(name)
            target = parameter if member is None else parameter[member]
            # Drawn on the CPU, to be the same on any device; on meta no numbers are needed.
            where = "meta" if target.is_meta else "cpu"
            drawn = torch.empty(target.shape, dtype=torch.float32, device=where)
            if std is not None:
                target.copy_(drawn.normal_(0, std, generator=generator))
            elif bound is not None:
                target.copy_(drawn.uniform_(-bound, bound, generator=generator))

    def _std(self, name: str) -> float | None:
        """The standard deviation of a normally distributed initial weight; None for others. Gains
        start at 1, biases at 0.

        | parameter                | gpt2                  | fan-in   | torch      |
        |--------------------------|-----------------------|----------|------------|
        | input.weight             | 1/√inputs             | 1/√inputs| (`_bound`) |
        | input.token, .position   | 0.02                  | 0.02     | 0.02       |
        | attention.out, mlp.down  | 0.02 / √(2·layers)    | 1/√inputs| (`_bound`) |
        | every other matrix       | 0.02                  | 1/√inputs| (`_bound`) |

        If `input_std` is given, it replaces the first two rows.
        """
        if "norm" in name or name.endswith("bias"):
            return None
        enters = name.startswith("input.")
        if enters and self.config.input_std is not None:
            return self.config.input_std
        if enters and self.interface.tokens:
            return GPT2_STD
        if self.config.init == "torch":
            return None
        if self.config.init == "fan-in" or enters:
            return 1 / math.sqrt(self._inputs_of(name))
        into_residual = name.endswith(("attention.out.weight", "mlp.down.weight"))
        return GPT2_STD / math.sqrt(2 * self.config.layers) if into_residual else GPT2_STD

    def _bound(self, name: str) -> float | None:
        """The bound of a uniformly distributed initial parameter; None for others. With the rule
        "torch", matrices and biases are initialised as in `nn.Linear`.
        """
        uniform = self.config.init == "torch" and "norm" not in name
        return 1 / math.sqrt(self._inputs_of(name)) if uniform else None

    def _inputs_of(self, name: str) -> int:
        """The number of inputs of the map that a weight or bias belongs to."""
        return int(self.get_parameter(name.replace(".bias", ".weight")).shape[-1])


def _norm(fleet: tuple[int, ...], config: Model) -> nn.Module:
    return Norm(fleet, config.d_model) if config.norm == "layer" else nn.Identity()


def model_from(
    weights: Mapping[str, Tensor],
    config: Model,
    interface: Interface,
    source: str,
    seeds: Sequence[int] = (),
) -> Transformer:
    """The model (with seeds: the fleet) of this shape with these weights. Raises ModelError if
    names or shapes do not fit; `source` is the name of the weights in the message.

    A shape may need more memory than there is, so it is first compared on the meta device.
    """
    other = "it belongs to a model of another shape"
    if config.layers > len(weights):  # each layer has several weights
        raise ModelError(f"{source} does not have the weights of {config.layers:,} layers: {other}")
    try:
        with torch.device("meta"):
            model = Transformer(config, interface, seeds)
    except RuntimeError as error:
        raise ModelError(f"{source} belongs to a model of impossible size: {error}") from error
    own = model.state_dict()
    for name in own.keys() ^ weights.keys():
        where = "lacks" if name in own else "has unknown"
        raise ModelError(f"{source} {where} {name}: {other}")
    for name, tensor in own.items():
        got, expected = tuple(weights[name].shape), tuple(tensor.shape)
        if got != expected:
            raise ModelError(f"{source}: {name} is {got}, expected {expected}: {other}")
    model.to_empty(device="cpu").load_state_dict(weights)
    return model
