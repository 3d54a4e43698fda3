"""The logit lens (nostalgebraist 2020): what the stream at each role would say if it were the last.

After every layer, the final norm and the unembedding are put onto the stream at the last position
of a role of the chain asked about. For each symbol: its rank in the whole vocabulary, and its
probability among the words that the chains have for it (guessing: one in their number).
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from hopscope.llm.walking import Batch


def lens(
    batch: Batch, layers: Sequence[int], roles: Sequence[int]
) -> Float[Tensor, "symbol role layer batch two"]:
    """Probability and rank (0: the first) of every symbol; not a number where a role is not."""
    symbols = list(batch.pairs[0].candidates)
    found = torch.full((len(symbols), len(roles), len(layers), len(batch.pairs), 2), torch.nan)
    places = torch.stack([batch.last(role) for role in roles], 1)  # [batch, role]
    for column, layer in enumerate(layers):
        x = batch.own.streams[layer]
        index = places.clamp_min(0)[:, :, None].expand(-1, -1, x.shape[-1])
        logits = batch.adapter.unembed(x.gather(1, index)).float().cpu()
        for row, pair in enumerate(batch.pairs):
            for number, symbol in enumerate(symbols):
                words = list(pair.candidates[symbol])
                own = logits[row, :, words[0]]
                found[number, :, column, row, 0] = logits[row][:, words].softmax(-1)[:, 0]
                found[number, :, column, row, 1] = (logits[row] > own[:, None]).sum(-1).float()
    return torch.where((places.T.cpu() >= 0)[None, :, None, :, None], found, torch.nan)
