"""Two models that hopscope did not make, trained by plain loops on one thread.

    python results/scripts/strangers.py khop --folder models [--minutes 15]
    python results/scripts/strangers.py retrieval --folder models

`khop`: transformers' GPT-2, 4 layers × 4 heads, d 128, on k-hop induction. The first token says how
many hops (1 to 3) every position is to follow over the 99 letters behind it (of 4); every position
answers, with the class "none" where its hops lead nowhere.
`retrieval`: `torch.nn.TransformerEncoder` on two-hop retrieval of vectors.

Weights, optimiser and step are kept in FOLDER/NAME.pt every minute, so that a training can be
stopped and gone on with. What reads the models is in results/scripts/strangers_read.py.
"""

import argparse
import json
import pathlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

LETTERS, MOST, LENGTH = 4, 3, 100
NONE = LETTERS + MOST
"""Tokens: the letters, then "1 hop", "2 hops", …; the last class is the answer "none"."""
CHAINS, SYMBOL = 4, 4
SAVED_EVERY = 60.0


@dataclass(frozen=True)
class Stranger:
    """A model, how its loss is computed on fresh examples, and how long it learns."""

    model: nn.Module
    loss: Callable[[nn.Module, torch.Generator], Tensor]
    steps: int
    lr: float


def landing(letters: Tensor) -> Tensor:
    """Where one hop from every position lands: behind the previous occurrence of its letter."""
    batch, length = letters.shape
    last, found = torch.full((batch, LETTERS), -1), torch.full((batch, length), -1)
    rows = torch.arange(batch)
    for place in range(length):
        earlier = last[rows, letters[:, place]]
        found[:, place] = torch.where(earlier >= 0, earlier + 1, -1)
        last[rows, letters[:, place]] = place
    return found


def khop_examples(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Tokens [batch, 1 + letters] and answers at every letter."""
    letters = torch.randint(LETTERS, (count, LENGTH - 1), generator=generator)
    hops = torch.randint(1, MOST + 1, (count,), generator=generator)
    first = landing(letters)
    here = torch.arange(LENGTH - 1).expand(count, -1)
    for hop in range(MOST):
        onward = torch.where(here >= 0, first.gather(1, here.clamp_min(0)), -1)
        here = torch.where((hop < hops)[:, None], onward, here)
    answers = torch.where(here >= 0, letters.gather(1, here.clamp_min(0)), NONE)
    return torch.cat((LETTERS + hops[:, None] - 1, letters), 1), answers


def gpt2() -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=NONE + 1, n_positions=LENGTH, n_embd=128, n_layer=4, n_head=4,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, initializer_range=0.08,
        tie_word_embeddings=False, bos_token_id=0, eos_token_id=0, attn_implementation="eager",
    )  # fmt: skip
    return GPT2LMHeadModel(config)


def khop_loss(model: nn.Module, generator: torch.Generator) -> Tensor:
    tokens, answers = khop_examples(32, generator)
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(tokens).logits[:, 1:]
    return cross_entropy(logits.float().flatten(0, 1), answers.flatten())


class Encoder(nn.Module):
    """Vectors in, through torch's own encoder with a causal mask, answers at the last positions."""

    def __init__(self, width: int = 64, layers: int = 3, heads: int = 4) -> None:
        super().__init__()
        self.into = nn.Linear(2 * SYMBOL, width)
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True
        )
        norm = nn.LayerNorm(width)
        self.encoder = nn.TransformerEncoder(layer, layers, norm, enable_nested_tensor=False)
        self.out = nn.Linear(width, 2 * SYMBOL)

    def forward(self, x: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        x = self.encoder(self.into(x), mask=mask, is_causal=True)
        out: Tensor = self.out(x)
        return out


def retrieval_examples(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Pairs x1 x2, pairs x0 x1, queries x0; the target of a query is x1 and x2 of its chain.

    Also which chain stands where: [batch, part, place], the parts in their order.
    """
    symbols = torch.randn(count, CHAINS, 3, SYMBOL, generator=generator)
    order = torch.rand(count, 3, CHAINS, generator=generator).argsort(-1)
    rows = torch.arange(count)[:, None]
    second, first = (symbols[rows, order[:, n]][:, :, 1 - n : 3 - n].flatten(1, 2) for n in (0, 1))
    asked = symbols[rows, order[:, 2]]
    tokens = torch.cat((second, first, asked[:, :, 0]), 1)
    pair = torch.cat((torch.arange(4 * CHAINS) // 2, torch.arange(CHAINS) + 2 * CHAINS))
    angle = pair[:, None] * 10.0 ** -torch.tensor([0.0, 0.5])
    places = torch.cat((angle.cos(), angle.sin()), 1).expand(count, -1, -1)
    return torch.cat((tokens, places), -1), asked[:, :, 1:].flatten(2), order


def retrieval_loss(model: nn.Module, generator: torch.Generator) -> Tensor:
    inputs, targets, _ = retrieval_examples(64, generator)
    return mse_loss(model(inputs)[:, -CHAINS:], targets)


STRANGERS: dict[str, Callable[[], Stranger]] = {
    "khop": lambda: Stranger(gpt2(), khop_loss, 1_000, 1e-3),
    "retrieval": lambda: Stranger(Encoder(), retrieval_loss, 6_000, 2e-3),
}


def trained(name: str, folder: pathlib.Path, minutes: float = 0.0) -> nn.Module:
    """The model as it was kept, trained on for so many minutes, or until it has all its steps."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    stranger = STRANGERS[name]()
    optimiser = torch.optim.AdamW(stranger.model.parameters(), stranger.lr, betas=(0.9, 0.98))
    path = folder / f"{name}.pt"
    step = 0
    if path.exists():
        kept = torch.load(path, weights_only=True)
        stranger.model.load_state_dict(kept["model"])
        optimiser.load_state_dict(kept["optimiser"])
        step = kept["step"]
    end = time.monotonic() + 60 * minutes
    if step < stranger.steps and time.monotonic() < end:
        _train(stranger, optimiser, step, (path, end))
    return stranger.model.eval()


def _train(
    stranger: Stranger, optimiser: Any, step: int, until: tuple[pathlib.Path, float]
) -> None:
    path, end = until
    stranger.model.train()
    saved = time.monotonic()
    while step < stranger.steps and time.monotonic() < end:
        share = min(1.0, (step + 1) / 200, 0.05 + 2 * (1 - step / stranger.steps))
        for group in optimiser.param_groups:
            group["lr"] = share * stranger.lr
        loss = stranger.loss(stranger.model, torch.Generator().manual_seed(step))
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(stranger.model.parameters(), 1.0)
        optimiser.step()
        step += 1
        if step % 50 == 0:
            row = {"step": step, "loss": round(loss.item(), 4), "cpu": round(time.process_time())}
            print(json.dumps(row), flush=True)
        if time.monotonic() > saved + SAVED_EVERY or step == stranger.steps:
            _save(path, stranger.model, optimiser, step)
            saved = time.monotonic()
    _save(path, stranger.model, optimiser, step)


def _save(path: pathlib.Path, model: nn.Module, optimiser: Any, step: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = {"model": model.state_dict(), "optimiser": optimiser.state_dict(), "step": step}
    torch.save(kept, path.with_suffix(".new"))
    path.with_suffix(".new").replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=STRANGERS)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("models"))
    parser.add_argument("--minutes", type=float, default=15.0)
    chosen = parser.parse_args()
    trained(chosen.name, chosen.folder, chosen.minutes)


if __name__ == "__main__":
    main()
