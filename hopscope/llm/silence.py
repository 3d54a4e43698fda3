"""Heads of a language model switched off, and what that does to its answers.

What a head writes is zero while the block lasts, and nothing stays switched off behind it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

import torch

from hopscope.errors import LlmError
from hopscope.llm.local import LocalModel
from hopscope.llm.prompts import Question

Head = tuple[int, int]


@dataclass(frozen=True)
class Effect:
    """Answers with some heads switched off."""

    heads: tuple[Head, ...]
    accuracy: float
    """Probability of the correct answer among the acceptable ones, on average."""
    correct: float
    """Probability of saying the correct answer, on average."""


@dataclass(frozen=True)
class Comparison:
    """The found heads beside as many random ones."""

    clean: Effect
    found: Effect
    random: tuple[Effect, ...]

    @property
    def rank(self) -> int:
        """How many of the random draws lower the accuracy at least as much."""
        return sum(each.accuracy <= self.found.accuracy for each in self.random)


def compare(
    local: LocalModel, questions: Sequence[Question], found: Sequence[Head], draws: int = 20
) -> Comparison:
    """Switch off the found heads, and as many others in every draw."""
    layers, heads = local.model.config.num_hidden_layers, local.model.config.num_attention_heads
    others = [(n, h) for n in range(layers) for h in range(heads) if (n, h) not in found]
    if len(others) < len(found):
        raise LlmError(
            f"{len(found)} heads were found, too many to draw as many others: ask for fewer"
        )
    drawn = [Random(number).sample(others, len(found)) for number in range(draws)]  # noqa: S311
    return Comparison(
        clean=effect(local, questions, ()),
        found=effect(local, questions, found),
        random=tuple(effect(local, questions, heads_) for heads_ in drawn),
    )


def effect(local: LocalModel, questions: Sequence[Question], heads: Sequence[Head]) -> Effect:
    """The answers with these heads switched off."""
    with silenced(local.model, heads):
        chances = local.probabilities(
            [each.prompt for each in questions],
            [each.acceptable for each in questions],
            [each.opening for each in questions],
        )
    right = [
        values[each.acceptable.index(each.correct)]
        for each, values in zip(questions, chances, strict=True)
    ]
    shares = [one / sum(values) for one, values in zip(right, chances, strict=True)]
    return Effect(tuple(heads), sum(shares) / len(shares), sum(right) / len(right))


@contextmanager
def silenced(model: Any, heads: Sequence[Head]) -> Iterator[None]:
    """Within this block, the heads write nothing."""
    outputs, handles = output_maps(model), []
    count = model.config.num_attention_heads
    try:
        for layer in sorted({layer for layer, _ in heads}):
            own = [head for place, head in heads if place == layer]
            handles.append(outputs[layer].register_forward_pre_hook(_without(own, count)))
        yield
    finally:
        for handle in handles:
            handle.remove()


def _without(heads: list[int], count: int) -> Any:
    def hook(_: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        parts = inputs[0].unflatten(-1, (count, -1)).clone()
        parts[..., heads, :] = 0
        return (parts.flatten(-2), *inputs[1:])

    return hook


def output_maps(model: Any) -> list[torch.nn.Module]:
    """For each layer, the map behind its heads, whose inputs are what the heads write."""
    names = ("self_attn.o_proj", "attn.c_proj", "attention.dense", "self_attention.dense")
    found = [
        module
        for name, module in model.named_modules()
        if any(name.endswith(ending) for ending in names)
    ]
    if len(found) != model.config.num_hidden_layers:
        kind = type(model).__name__
        raise LlmError(
            f"found {len(found)} output maps of heads in {kind}, expected "
            f"{model.config.num_hidden_layers}: expected modules named {', '.join(names)}"
        )
    return found
