"""All answers to a question in one forward pass.

The tokens of every answer follow the prompt in one sequence, as a tree: each sees the prompt and
the tokens before it in its own answer, and takes the place it would have there. So the prompt is
computed once, and so is whatever answers begin with in common.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass
class Tree:
    """Tokens behind a prompt, each with the one before it; -1 is the end of the prompt."""

    tokens: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    ends: dict[tuple[int, ...], int] = field(default_factory=dict)
    """Where each sequence of tokens ends."""

    def add(self, sequence: Sequence[int]) -> None:
        """Make room for a sequence; what it shares with others is there already."""
        for length in range(1, len(sequence) + 1):
            part = tuple(sequence[:length])
            if part not in self.ends:
                self.parents.append(self.ends.get(part[:-1], -1))
                self.ends[part] = len(self.tokens)
                self.tokens.append(part[-1])

    def above(self, node: int) -> list[int]:
        """The node and all before it, the node first."""
        path = []
        while node >= 0:
            path.append(node)
            node = self.parents[node]
        return path


@dataclass(frozen=True)
class Planted:
    """A batch of prompts with their trees, prompts ending at the same place."""

    tokens: Int[Tensor, "batch seq"]
    places: Int[Tensor, "batch seq"]
    sees: Bool[Tensor, "batch seq all"]
    """True where a token may see another; on the last axis, tokens from before the batch come
    first."""
    nodes: int
    """Room for tree tokens behind the prompts."""

    def mask(self, dtype: torch.dtype) -> Float[Tensor, "batch 1 seq all"]:
        """What is added to scores: 0 where a token may see, the lowest number elsewhere."""
        hidden = torch.zeros(self.sees.shape, dtype=dtype)
        hidden.masked_fill_(~self.sees, torch.finfo(dtype).min)
        return hidden[:, None]


def planted(prompts: Sequence[Sequence[int]], trees: Sequence[Tree], before: int = 0) -> Planted:
    """Prompts and trees as one batch, behind some tokens that all have in common; shorter prompts
    are filled up in front.
    """
    longest, nodes = max(map(len, prompts)), max(len(tree.tokens) for tree in trees)
    shape = (len(prompts), longest + nodes)
    tokens = torch.zeros(shape, dtype=torch.long)
    places = torch.zeros(shape, dtype=torch.long)
    # Fillers see themselves, since a row without anything to see is not a number.
    own = torch.eye(shape[1], dtype=torch.bool).repeat(shape[0], 1, 1)
    for row, (prompt, tree) in enumerate(zip(prompts, trees, strict=True)):
        begin, count = longest - len(prompt), len(tree.tokens)
        tokens[row, begin:longest] = torch.tensor(prompt)
        places[row, begin:longest] = before + torch.arange(len(prompt))
        own[row, begin:longest, begin:longest] = torch.ones(len(prompt), len(prompt)).tril() > 0
        tokens[row, longest : longest + count] = torch.tensor(tree.tokens, dtype=torch.long)
        own[row, longest : longest + count, begin:longest] = True
        for node in range(count):
            path = tree.above(node)
            places[row, longest + node] = before + len(prompt) + len(path) - 1
            own[row, longest + node, [longest + other for other in path]] = True
    common = torch.ones(*shape, before, dtype=torch.bool)
    return Planted(tokens, places, torch.cat([common, own], dim=-1), nodes)


def sequence_logs(
    tree: Tree,
    logs: Float[Tensor, "node vocabulary"],
    sequence: Sequence[int],
    stops: Sequence[int],
) -> float:
    """The log-probability of a sequence and a stop behind it. Row 0 of the logs is what follows the
    prompt, row n + 1 what follows node n.
    """
    total, node = 0.0, -1
    for length in range(1, len(sequence) + 1):
        total += float(logs[node + 1, sequence[length - 1]])
        node = tree.ends[tuple(sequence[:length])]
    return total + float(logs[node + 1, list(stops)].logsumexp(0))
