"""The transformer with two attention layers as a torch module: simple but slow. Tests compare the
faster implementations with it.

Layer 1, the copiers: head h mixes the symbols at the last M lags, v_l^h = Σ_i σ(w^h)_i x_{l−i}.
Feed-forward, the selector: one feature per set S of heads, the product of their copies, weighted
by c_S and normalised. Two positions have the similarity Σ_S c_S² Π_{h∈S} ⟨v_l^h, v_q^h⟩ / Σ_S c_S².
Layer 2, the classifier: the query position attends to the positions before it, with a times their
similarity as scores, and answers with the mean of their symbols.

With a full first layer, head h attends to lag i with the score w_i^h + ⟨x_l W_Q^h, x_{l−i} W_K^h⟩,
and copies x_{l−i} W_V^h W_O^h. The query position has no symbol yet, so its x is zero and it
attends by lag only.
"""

from math import prod

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import one_hot

from hopscope.configs import InductionModel
from hopscope.ngram.parameters import initial, sets

MATRICES = ("w_q", "w_k", "w_v", "w_o")
"""The names of the matrices that a full first layer has in addition to w."""


class InductionTransformer(nn.Module):
    """The paper's model, computed position by position."""

    def __init__(self, config: InductionModel, alphabet: int, seed: int = 0) -> None:
        super().__init__()
        self.config, self.alphabet, self.sets = config, alphabet, sets(config)
        begin = initial(config)
        self.c = nn.Parameter(torch.from_numpy(begin.c))  # [set]
        self.w = nn.Parameter(torch.from_numpy(begin.w))  # [head, lag]
        self.a = nn.Parameter(torch.from_numpy(begin.a))  # []
        if config.first == "full":
            self._add_matrices(np.random.Generator(np.random.PCG64DXSM([seed, 2])))

    def _add_matrices(self, generator: np.random.Generator) -> None:
        shape = (self.config.heads, self.alphabet, self.alphabet)
        for name in MATRICES:
            noise = self.config.noise * generator.standard_normal(shape)
            carrying = np.eye(self.alphabet) if name in ("w_v", "w_o") else 0.0
            setattr(self, name, nn.Parameter(torch.from_numpy(noise + carrying)))

    def forward(self, tokens: Int[Tensor, "chain seq"]) -> Float[Tensor, "chain symbol"]:
        """The predicted distribution of the next symbol for each chain."""
        window = self.config.window
        query = self.copies(*self.seen(tokens, tokens.shape[1]))
        similar, symbols = [], []
        for place in range(window, tokens.shape[1]):
            similar.append(self.similarity(self.copies(*self.seen(tokens, place)), query))
            symbols.append(one_hot(tokens[:, place], self.alphabet).double())
        attention = torch.softmax(self.a * torch.stack(similar, dim=1), dim=1)
        return torch.einsum("bl,bld->bd", attention, torch.stack(symbols, dim=1))

    def seen(
        self, tokens: Int[Tensor, "chain seq"], place: int
    ) -> tuple[Float[Tensor, "chain lag symbol"], Float[Tensor, "chain symbol"]]:
        """The symbols before a place, newest first, and the symbol at the place (zero at the query
        position), one-hot.
        """
        before = tokens[:, place - self.config.window : place].flip(1)
        own = torch.zeros(len(tokens), self.alphabet, dtype=torch.float64)
        if place < tokens.shape[1]:
            own = one_hot(tokens[:, place], self.alphabet).double()
        return one_hot(before, self.alphabet).double(), own

    def copies(
        self, before: Float[Tensor, "chain lag symbol"], own: Float[Tensor, "chain symbol"]
    ) -> Float[Tensor, "chain head symbol"]:
        """The output of each head of the first layer at a place."""
        logits = self.w.expand(len(before), -1, -1)  # [chain, head, lag]
        copied = before[:, None].expand(-1, self.config.heads, -1, -1)  # [chain, head, lag, symbol]
        if self.config.first == "full":
            queries = torch.einsum("bd,hde->bhe", own, self.w_q)
            keys = torch.einsum("bid,hde->bhie", before, self.w_k)
            logits = logits + torch.einsum("bhe,bhie->bhi", queries, keys)
            copied = torch.einsum("bid,hde,hef->bhif", before, self.w_v, self.w_o)
        mixed = torch.einsum("bhi,bhid->bhd", torch.softmax(logits, dim=-1), copied)
        return mixed / mixed.norm(dim=-1, keepdim=True) if self.config.unit_copies else mixed

    def similarity(
        self, key: Float[Tensor, "chain head symbol"], query: Float[Tensor, "chain head symbol"]
    ) -> Float[Tensor, "chain"]:
        """The similarity of key and query: Σ_S c_S² Π_{h∈S} ⟨v_key^h, v_query^h⟩ / Σ_S c_S²."""
        inner = (key * query).sum(dim=-1)  # [chain, head]
        always = torch.ones(len(inner), dtype=torch.float64)
        products = [prod((inner[:, head] for head in heads), start=always) for heads in self.sets]
        squares = self.c**2
        return torch.stack(products, dim=1) @ (squares / squares.sum())
