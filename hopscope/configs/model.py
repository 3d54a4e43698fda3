"""The transformer's shape, and its interface to a task. Sections (§) refer to Musat (ICLR 2025)."""

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
    """Width of one head; default: d_model / heads (§9: 16)."""
    mlp: bool = True
    """Whether blocks have an MLP after attention (§9: no)."""
    d_mlp: Positive | None = None
    """Hidden width of the MLP; default: 4 × d_model, as in GPT-2."""
    causal: bool = True
    """Causal attention, as in GPT-2, or bidirectional."""
    norm: Literal["layer", "none"] = "layer"
    """Layer normalisation before each sublayer and the output (§7.1), or none."""
    init: Literal["gpt2", "fan-in", "torch"] = "gpt2"
    """Initial weights of block matrices. gpt2: normal with std 0.02, divided by √(2·layers) for
    residual outputs. fan-in: normal with std 1/√inputs. Both have zero biases. torch: as nn.Linear,
    matrices and biases uniform up to 1/√inputs, a std of 0.58/√inputs. The paper does not say."""
    input_std: Annotated[Real, Field(gt=0)] | None = None
    """Std of the input map; default: 1/√inputs, 0.35 for K = 4 (with torch: as the other matrices).
    At 0.02 the loss stays on a plateau for thousands of steps. For tokens, std of the embedding;
    default: 0.02."""

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
        """Hidden width of the MLP, given or derived."""
        return self.d_mlp or 4 * self.d_model


class Interface(Config):
    """The shapes of a model's inputs and outputs, which a task determines."""

    tokens: bool
    """Whether inputs are tokens (embedded) or vectors (mapped linearly)."""
    inputs: Positive
    """Dimension of input vectors, or size of the vocabulary."""
    length: Positive
    """Positions per sequence."""
    read: Positive
    """Number of last positions at which outputs are read."""
    outputs: Positive
    """Dimension of the output at each read position."""

    @property
    def numbers(self) -> int:
        """The numbers per position of an example: 1 for tokens, else the vector's dimension."""
        return 1 if self.tokens else self.inputs
