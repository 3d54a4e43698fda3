"""Minimal pairs: one symbol of a chain is another chain's, and all else is the same.

Chains 0 and 1 exchange the symbol, wherever it stands; so do 2 and 3, and so on. Both examples of a
pair are as likely as any other: symbols are drawn alike for all chains. A last chain without a
partner keeps its own.
"""

import torch
from jaxtyping import Int
from torch import Tensor


def partners(chains: int, device: torch.device | str = "cpu") -> Int[Tensor, "chain"]:
    """With which chain each exchanges: 1, 0, 3, 2, …; the last of an odd number with itself.

    >>> partners(5).tolist()
    [1, 0, 3, 2, 4]
    """
    chain = torch.arange(chains, device=device)
    other = chain ^ 1
    return torch.where(other < chains, other, chain)
