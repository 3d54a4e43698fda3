"""The standard test of induction: random tokens that are repeated.

    task = repeated_tokens(vocabulary=50_257, length=20)
    study = hopscope.Study(model, task)
    study.attention().score("induction")     # every head's induction score [layer, head]
    study.circuit                            # which of these heads the answers need

    … x x A B C x x A B C          from the second A a head looks at B, which it predicts

A sequence is random filler, the tokens, more filler, and the tokens again. The filler is divided at
random between the two places, so that no head can solve the task by position. The relation
*induction* leads from a token's second occurrence to the position after its first, *same* to its
first occurrence.
"""

from functools import partial
from math import log

import torch
from torch import Tensor

from hopscope.circuits.own_task import Drawn, OwnTask
from hopscope.errors import CircuitError

ROLES = ("filler", "first", "second", "start")


def repeated_tokens(
    vocabulary: int,
    length: int = 20,
    filler: int = 8,
    start: int | None = None,
) -> OwnTask:
    """A task of `length` random tokens that are repeated, with `filler` other tokens. `start` is a
    token at the start of every sequence (such as a tokenizer's BOS) that occurs nowhere else.
    """
    _check_whole(vocabulary=vocabulary, length=length, filler=filler, start=start or 0)
    if length < 2 or filler < 2:
        raise CircuitError(f"length is {length} and filler {filler}; expected at least 2 of each")
    least = length + filler + (start is not None)
    if vocabulary < least:
        raise CircuitError(
            f"vocabulary is {vocabulary}; expected at least {least} different tokens for length "
            f"{length} and filler {filler}: choose a smaller length (in a task file: "
            '{"kind": "repeated-tokens", "length": N})'
        )
    if start is not None and not 0 <= start < vocabulary:
        raise CircuitError(f"start is {start}; expected a token, 0 … {vocabulary - 1}")

    roles = ROLES if start is not None else ROLES[:-1]
    draw = partial(_draw, vocabulary, length, filler, start)  # unlike a closure, can be pickled
    return OwnTask(draw, roles=roles, chance=log(length + filler))


def _draw(
    vocabulary: int, length: int, filler: int, start: int | None, examples: int, seed: int
) -> Drawn:
    generator = torch.Generator().manual_seed(seed)
    begins = int(start is not None)
    tokens = _distinct(examples, length + filler, (vocabulary, start), generator)
    said, rest = tokens[:, :length], tokens[:, length:]
    before = torch.randint(0, filler + 1, (examples, 1), generator=generator)
    # `before` filler tokens come before the first copy, the others between the two copies.
    at = torch.arange(2 * length + filler)[None]
    first = (at >= before) & (at < before + length)
    second = at >= length + filler
    nth = torch.where(second, at - length - filler, at - before).clamp(0, length - 1)
    spare = torch.where(at < before, at, at - length).clamp(0, filler - 1)
    copy = first | second
    inputs = torch.where(copy, said.gather(1, nth), rest.gather(1, spare))
    role = torch.where(second, 2, torch.where(first, 1, 0))
    same = torch.where(second, before + nth, -1)
    if start is not None:
        same = torch.where(same < 0, -1, same + 1)
        inputs, role, same = (
            torch.cat([torch.full((examples, 1), begin), rest], 1)
            for begin, rest in ((start, inputs), (ROLES.index("start"), role), (-1, same))
        )
    answers = torch.arange(begins + length + filler, inputs.shape[1] - 1)
    return Drawn(
        inputs=inputs,
        targets=inputs[:, answers + 1],
        roles=role,
        answers_at=answers,
        relations={"induction": torch.where(same < 0, -1, same + 1), "same": same},
    )


def _check_whole(**sizes: object) -> None:
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int):
            raise CircuitError(f"{name} is {size!r}; expected a whole number")


def _distinct(
    examples: int, count: int, drawn: tuple[int, int | None], generator: torch.Generator
) -> Tensor:
    """`count` different random tokens for each example, without the start token."""
    vocabulary, start = drawn
    scores = torch.rand(examples, vocabulary, generator=generator, dtype=torch.float32)
    if start is not None:
        scores[:, start] = -1
    return scores.topk(count).indices
