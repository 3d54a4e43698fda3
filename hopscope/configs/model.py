"""The transformer, and what it is plugged into. Sections (§) refer to Musat (ICLR 2025)."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hopscope.configs.config import Config, Positive, Real


class Model(Config):
    """A GPT-2-style pre-norm transformer."""

    layers: Positive = 4
    """Number of blocks (§7: 1–8, §8: 12, §9: 24)."""
    heads: Positive = 4
    """Attention heads per layer (§7: 8, §8, §9: 1)."""
    d_model: Positive = 128
    """Width of the residual stream (§7, §8: 128, §9: 512)."""
    d_head: Positive | None = None
    """Width of one head; unset: d_model / heads (§9: 16)."""
    mlp: bool = True
    """Is there a feed-forward layer after attention (§9: no)?"""
    d_mlp: Positive | None = None
    """Hidden width of the feed-forward layer; unset: 4 × d_model, as in GPT-2."""
    causal: bool = True
    """Causal attention, as in GPT-2, or bidirectional."""
    norm: Literal["layer", "none"] = "layer"
    """Layer normalisation before each sublayer and the output (§7.1), or none."""
    init: Literal["gpt2", "fan-in", "torch"] = "gpt2"
    """Block matrices: normal with std 0.02 and residual outputs / √(2·layers) (gpt2), or
    std 1/√inputs (fan-in), biases at zero; or as nn.Linear begins (torch): matrices and biases
    uniform up to 1/√inputs, a std of 0.58/√inputs. The paper does not say."""
    input_std: Annotated[Real, Field(gt=0)] | None = None
    """Std of the input map; unset: 1/√inputs, 0.35 for K = 4 (torch: as all else). At 0.02 the
    loss stays at its plateau for thousands of steps. For tokens, std of the embedding; unset:
    0.02."""

    @model_validator(mode="after")
    def _heads_divide(self) -> Self:
        if self.d_head is None and self.d_model % self.heads:
            raise ValueError(
                f"heads is {self.heads} and d_model {self.d_model}, which {self.heads} does "
                "not divide: choose a divisor or set d_head"
            )
        return self

    @property
    def head_width(self) -> int:
        """Width of one head, given or derived."""
        return self.d_head or self.d_model // self.heads

    @property
    def mlp_width(self) -> int:
        """Hidden width of the feed-forward layer, given or derived."""
        return self.d_mlp or 4 * self.d_model


class Interface(Config):
    """What a model is plugged into: the shapes at its two ends, and nothing of the task."""

    tokens: bool
    """Are inputs token numbers (embedded) or vectors (mapped linearly)?"""
    inputs: Positive
    """Input numbers per position, or the size of the vocabulary."""
    length: Positive
    """Positions per sequence."""
    read: Positive
    """How many of the last positions are read out."""
    outputs: Positive
    """Output numbers per read position."""

    @property
    def numbers(self) -> int:
        """Numbers per position of an example: a token's number, or a vector's."""
        return 1 if self.tokens else self.inputs
