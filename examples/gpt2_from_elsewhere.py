"""A GPT-2 of the transformers library, trained with a plain loop, then examined with hopscope.

The training does not use hopscope: sequences are drawn with torch, and the task is implemented here
again. Needs the extra `bridges`.
"""

import sys

import torch
from torch.nn.functional import cross_entropy
from transformers import GPT2Config, GPT2LMHeadModel

from hopscope import KHop, discover

ALPHABET, LENGTH, HOPS = 6, 24, 2
STEPS, BATCH = 2_000, 64


def hops_by_hand(tokens: torch.Tensor) -> torch.Tensor:
    """Answers [batch, seq, hop]: follow previous occurrences; ALPHABET where there is none."""
    batch, length = tokens.shape
    answers = torch.full((batch, length, HOPS), ALPHABET)
    last = torch.full((batch, ALPHABET), -1)
    landing = torch.full((batch, length), -1)
    rows = torch.arange(batch)
    for place in range(length):
        token = tokens[:, place]
        found = last[rows, token]
        landing[:, place] = torch.where(found >= 0, found + 1, -1)
        last[rows, token] = place
    here = torch.arange(length).expand(batch, -1)
    for hop in range(HOPS):
        onward = landing.gather(1, here.clamp_min(0))
        here = torch.where(here >= 0, onward, -1)
        symbol = tokens.gather(1, here.clamp_min(0))
        answers[..., hop] = torch.where(here >= 0, symbol, ALPHABET)
    return answers


def train_elsewhere(steps: int) -> GPT2LMHeadModel:
    """An ordinary training loop."""
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=HOPS * (ALPHABET + 1), n_positions=LENGTH, n_embd=64, n_layer=4, n_head=2,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, tie_word_embeddings=False,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    model = GPT2LMHeadModel(config)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(steps):
        tokens = torch.randint(ALPHABET, (BATCH, LENGTH))
        logits = model(tokens).logits.unflatten(-1, (HOPS, ALPHABET + 1))
        answers = hops_by_hand(tokens)
        loss = cross_entropy(logits.flatten(0, -2), answers.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % 500 == 0:
            print(f"step {step}: loss {loss.item():.3f}")
    return model.eval()


def main(steps: int = STEPS) -> None:
    model = train_elsewhere(steps)
    task = KHop(hops=HOPS, alphabet=ALPHABET, length=LENGTH)
    learned = steps >= STEPS
    # A sequence has one question (at its last position), so more are needed than for retrieval.
    print(discover(model, task, examples=512 if learned else 32, force=not learned))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
