"""Your own task, from drawing examples to the circuit: the first token gives the number of hops.

The first token is the number of hops (1 or 2) that every letter after it must follow. Every letter
has an answer, the class "none" if its hops lead nowhere. The model is torch's encoder, trained with
a plain loop. hopscope needs a single function, which draws examples with the role of each position,
relations that lead from every position to another, and conditions.
"""

import math
import sys

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from hopscope import attention_maps, discover, probe, watched
from hopscope.circuits import (
    Ablation,
    Ablator,
    Drawn,
    EncoderAdapter,
    OwnTask,
    Pattern,
    along,
    examples_of,
)
from hopscope.circuits.pattern import ITSELF
from hopscope.facts import Role

LETTERS, MOST, LENGTH = 4, 2, 25
NONE = LETTERS + MOST
"""Tokens: the letters, then the counts; the last class is the answer "none"."""
STEPS, BATCH = 1_500, 64


def landing(letters: Tensor) -> Tensor:
    """The position to which one hop leads: after the previous occurrence of the letter; -1 if there
    is none.
    """
    place = torch.arange(letters.shape[1])
    earlier = (letters[:, :, None] == letters[:, None, :]) & (place < place[:, None])
    last = torch.where(earlier, place, -1).amax(-1)
    return torch.where(last >= 0, last + 1, -1)


def examples(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens, the number of hops of each example, and an answer for each letter."""
    letters = torch.randint(LETTERS, (count, LENGTH - 1), generator=generator)
    hops = torch.randint(1, MOST + 1, (count,), generator=generator)
    first = landing(letters)
    second = torch.where(first >= 0, first.gather(1, first.clamp_min(0)), -1)
    there = torch.where(hops[:, None] == 1, first, second)
    answers = torch.where(there >= 0, letters.gather(1, there.clamp_min(0)), NONE)
    return torch.cat((LETTERS + hops[:, None] - 1, letters), 1), hops, answers


def draw(count: int, seed: int) -> Drawn:
    """Draw examples for hopscope."""
    tokens, hops, answers = examples(count, torch.Generator().manual_seed(10**6 + seed))
    first = landing(tokens[:, 1:])
    leads = torch.where(first >= 0, first + 1, -1)  # the count token comes before the letters
    return Drawn(
        inputs=tokens,
        targets=answers,  # at the last positions, one for each letter
        roles=["count", *["letter"] * (LENGTH - 1)],
        hop=(hops - 1)[:, None].expand_as(answers),
        relations={"hop": torch.cat((torch.full((count, 1), -1), leads), 1)},
        conditions={f"{k} hops": hops == k for k in range(1, MOST + 1)},
    )


class Model(nn.Module):
    """Token and position embeddings, and torch's encoder with a causal mask."""

    def __init__(self, width: int = 64, layers: int = 3, heads: int = 2) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(NONE, width), nn.Embedding(LENGTH, width)
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True
        )
        norm = nn.LayerNorm(width)
        self.encoder = nn.TransformerEncoder(layer, layers, norm, enable_nested_tensor=False)
        self.out = nn.Linear(width, NONE + 1)

    def embed(self, tokens: Tensor) -> Tensor:
        x: Tensor = self.token(tokens) + self.place.weight[: tokens.shape[1]]
        return x

    def forward(self, tokens: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        out: Tensor = self.out(self.encoder(self.embed(tokens), mask=mask, is_causal=True))
        return out


def trained(steps: int) -> Model:
    """An ordinary training loop."""
    torch.manual_seed(0)
    model = Model()
    optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for step in range(steps):
        tokens, _, answers = examples(BATCH, torch.Generator().manual_seed(step))
        loss = cross_entropy(model(tokens)[:, 1:].flatten(0, 1), answers.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % 250 == 0:
            print(f"step {step}: loss {loss.item():.3f}")
    return model.eval()


def ablated(model: EncoderAdapter, task: OwnTask, head: tuple[int, int]) -> Tensor:
    """The loss for each number of hops, with the rows of letters in one head changed."""
    where = along("hop").or_else(ITSELF)  # where one hop leads, or else the letter itself
    looks = Pattern(((Role("letter"), where),))
    changes = [Ablation(), Ablation.of({head: looks}), Ablation.of({head: Pattern()})]
    losses = Ablator(model, examples_of(task, 128)).losses(changes)  # [change, example, hop]
    return losses.mean(1)


def main(steps: int = STEPS) -> None:
    model = trained(steps)
    walked = EncoderAdapter(
        model.encoder, embed=model.embed, unembed=model.out, model=model, causal=True
    )
    task = OwnTask(draw, roles=["count", "letter"], chance=math.log(LETTERS), hops=MOST)
    learned = steps >= STEPS
    letter = 1  # the index of the role
    maps = attention_maps(walked, task, examples=128)
    print("attention of letters to where one hop leads, by layer and head:")
    print(maps.along["hop"][..., letter].round(2))
    follows = maps.along["hop"][..., letter]
    head = divmod(int(follows.argmax()), follows.shape[1])
    print("losses of one hop and two: as it is; a head looks where hop leads; it looks evenly:")
    print(ablated(walked, task, head))
    found = probe(walked, task, examples=512)
    print(f"how much of {', '.join(found.symbols[:3])} can be read at letters, layer by layer:")
    print(found.stream.own[:, letter, :3].round(2))
    with watched(print):
        print(discover(walked, task, examples=128 if learned else 16, force=not learned))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
