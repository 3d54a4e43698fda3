"""A model written as nanoGPT's is, what its train.py writes, and one that has learned a task."""

from collections import OrderedDict
from types import SimpleNamespace

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

from hopscope import KHop
from hopscope.tasks import examples, sampler_of

SIZES = {"n_layer": 2, "n_head": 2, "n_embd": 32, "block_size": 16, "vocab_size": 5}
TASK = KHop(hops=1, alphabet=4, length=16)


class Attention(nn.Module):
    """With the mask that nanoGPT registers as `bias` where torch has no fused attention."""

    def __init__(self, heads: int, width: int, bias: bool) -> None:
        super().__init__()
        self.c_attn = nn.Linear(width, 3 * width, bias)
        self.c_proj = nn.Linear(width, width, bias)
        self.register_buffer("bias", torch.ones(1, 1, 16, 16).tril())
        self.heads = heads

    def forward(self, x: Tensor) -> Tensor:
        rows, seq, width = x.shape
        q, k, v = (
            part.view(rows, seq, self.heads, width // self.heads).transpose(1, 2)
            for part in self.c_attn(x).split(width, 2)
        )
        y = scaled_dot_product_attention(q, k, v, is_causal=True)
        out: Tensor = self.c_proj(y.transpose(1, 2).reshape(rows, seq, width))
        return out


def mlp(width: int, bias: bool) -> nn.Module:
    up, down = nn.Linear(width, 4 * width, bias), nn.Linear(4 * width, width, bias)
    return nn.Sequential(OrderedDict(c_fc=up, gelu=nn.GELU(), c_proj=down))


class Block(nn.Module):
    def __init__(self, heads: int, width: int, bias: bool) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = (nn.LayerNorm(width, bias=bias) for _ in range(2))
        self.attn, self.mlp = Attention(heads, width, bias), mlp(width, bias)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        out: Tensor = x + self.mlp(self.ln_2(x))
        return out


class GPT(nn.Module):
    def __init__(self, bias: bool) -> None:
        super().__init__()
        self.config = SimpleNamespace(**SIZES, bias=bias, dropout=0.0)
        width = SIZES["n_embd"]
        blocks = [Block(SIZES["n_head"], width, bias) for _ in range(SIZES["n_layer"])]
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(SIZES["vocab_size"], width),
                "wpe": nn.Embedding(SIZES["block_size"], width),
                "h": nn.ModuleList(blocks),
                "ln_f": nn.LayerNorm(width, bias=bias),
            }
        )
        self.lm_head = nn.Linear(width, SIZES["vocab_size"], bias=False)
        self.transformer["wte"].weight = self.lm_head.weight

    def forward(self, tokens: Tensor) -> Tensor:
        t = self.transformer
        x = t["wte"](tokens) + t["wpe"](torch.arange(tokens.shape[1]))
        for block in t["h"]:  # type: ignore[union-attr]
            x = block(x)
        out: Tensor = self.lm_head(t["ln_f"](x))
        return out


def made(bias: bool, spread: float = 0.5) -> GPT:
    torch.manual_seed(0)
    model = GPT(bias)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(spread * torch.randn_like(parameter))
    return model


def saved(model: GPT, before: str = "") -> dict[str, object]:
    """What nanoGPT's train.py writes."""
    weights = {before + name: its for name, its in model.state_dict().items()}
    return {"model": weights, "model_args": SIZES, "iter_num": 7, "config": {"device": "cpu"}}


def trained(steps: int = 300) -> GPT:
    """A model that has learned its task in a few seconds."""
    model, sampler = made(bias=False, spread=0.0), sampler_of(TASK)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(steps):
        batch = examples(sampler, 0, torch.arange(32 * step, 32 * (step + 1)))
        loss = cross_entropy(model(batch.inputs).flatten(0, 1), batch.targets.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model
