"""The answers of a language model: the probability of each acceptable answer, or sampled text.

The tokens of all acceptable answers follow the prompt in one sequence, as a tree: each token
attends to the prompt and to the tokens before it in its own answer, and has the position that it
would have there. So a question takes one forward pass. The common beginning of answers is computed
once, and so is the common beginning of all prompts. Shorter prompts of a batch are padded on the
left.
"""

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from inspect import signature
from math import exp
from typing import Any, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from hopscope.errors import LmError
from hopscope.lm.model import LanguageModel, Tokens, in_memory
from hopscope.lm.prompts import Question, first_line

T = TypeVar("T")
GREEDY = 0.0
"""The temperature at which the likeliest token is taken."""
BATCH_TOKENS = {"cpu": 2_048, "cuda": 65_536}
"""Tokens in a batch; larger batches do not fit in a CPU's cache and are slower."""
Tree = dict[Tokens, int]
"""All prefixes of some token sequences, numbered: the empty one is 0, parents come first."""


def probabilities(model: LanguageModel, questions: Sequence[Question]) -> list[list[float]]:
    """For each question and answer, the probability that the model gives the answer and stops."""
    texts = [model.text(each.prompt, each.opening) for each in questions]
    prompts = [model.tokens(text) for text in texts]
    spelled = [
        [model.spellings(text, answer) for answer in each.acceptable]
        for text, each in zip(texts, questions, strict=True)
    ]
    for each, answers in zip(questions, spelled, strict=True):
        if len(set(map(tuple, answers))) < len(answers):
            raise LmError(
                f"{model.name}'s tokenizer gives two of the answers {', '.join(each.acceptable)} "
                "the same tokens: take another formulation or model"
            )
    trees = [tree_of(spelling for some in each for spelling in some) for each in spelled]
    prefix = _prefix(model, prompts)
    stops = torch.tensor(model.stops, device=model.device)

    @torch.inference_mode()
    def score(chosen: list[int]) -> list[list[float]]:
        own = [prompts[n][prefix.length :] for n in chosen]
        logits = _logits(model, own, [trees[n] for n in chosen], prefix)
        _check_numbers(model, logits)
        return [
            answer_chances(row, trees[n], spelled[n], stops)
            for n, row in zip(chosen, logits, strict=True)
        ]

    sizes = [len(own) + len(tree) - 1 for own, tree in zip(prompts, trees, strict=True)]
    return _in_batches(model, sizes, score)


def tree_of(sequences: Iterable[Tokens]) -> Tree:
    """Return all prefixes of the sequences, each once."""
    tree: Tree = {(): 0}
    for sequence in sequences:
        for length in range(1, len(sequence) + 1):
            tree.setdefault(sequence[:length], len(tree))
    return tree


def answer_chances(
    logits: Float[Tensor, "node vocabulary"],
    tree: Tree,
    spelled: Sequence[Sequence[Tokens]],
    stops: Int[Tensor, "stop"],
) -> list[float]:
    """Return the probability of each answer: the sum over its spellings, each followed by a stop.

    Row n of the logits predicts the token after prefix n of the tree.
    """
    logs = torch.log_softmax(logits[: len(tree)].float(), dim=-1)
    ended = logs[:, stops].logsumexp(-1).tolist()
    nodes = list(tree)[1:]
    steps = logs[[tree[node[:-1]] for node in nodes], [node[-1] for node in nodes]].tolist()
    total: dict[Tokens, float] = {(): 0.0}
    for node, step in zip(nodes, steps, strict=True):
        total[node] = total[node[:-1]] + step
    return [sum(exp(total[each] + ended[tree[each]]) for each in some) for some in spelled]


@dataclass(frozen=True)
class _Prefix:
    """The model's key-value cache for the common first tokens of all prompts."""

    length: int
    cache: Any

    def repeated(self, count: int) -> Any:
        """Return a copy of the cache for a batch of `count` prompts."""
        copy = deepcopy(self.cache)
        if copy is not None:
            copy.batch_repeat_interleave(count)
        return copy


def _cache_of(model: LanguageModel) -> str:
    """The name that this model gives to its cache: another one since transformers 5.24."""
    return "cache" if "cache" in signature(model.model.forward).parameters else "past_key_values"


@torch.inference_mode()
def _prefix(model: LanguageModel, prompts: Sequence[Tokens]) -> _Prefix:
    """Compute the common beginning of all prompts; at least one token of each prompt is left."""
    first, last = min(prompts), max(prompts)
    most = min(map(len, prompts)) - 1
    shared = next((n for n in range(most) if first[n] != last[n]), most)
    if shared == 0:
        return _Prefix(0, None)
    step = torch.tensor([first[:shared]], device=model.device)
    output = model.model(input_ids=step, use_cache=True, logits_to_keep=1)
    return _Prefix(shared, getattr(output, _cache_of(model)))


def _logits(
    model: LanguageModel, prompts: Sequence[Tokens], trees: Sequence[Tree], prefix: _Prefix
) -> Float[Tensor, "prompt node vocabulary"]:
    """Return the logits of the token after each prompt, and after each node of its tree.

    The prompts follow the prefix; they are padded on the left, so that all end at the same place.
    """
    longest, nodes = max(map(len, prompts)), max(map(len, trees)) - 1
    shape = (len(prompts), longest + nodes)
    tokens, positions = torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.long)
    # Padding attends to itself, because a softmax over nothing is NaN.
    sees = torch.eye(shape[1], dtype=torch.bool).repeat(shape[0], 1, 1)
    for row, (prompt, tree) in enumerate(zip(prompts, trees, strict=True)):
        begin, root = longest - len(prompt), longest - 1
        tokens[row, begin:longest] = torch.tensor(prompt)
        positions[row, begin:longest] = prefix.length + torch.arange(len(prompt))
        sees[row, begin:longest, begin:longest] = torch.ones(len(prompt), len(prompt)).tril() > 0
        for node, number in list(tree.items())[1:]:
            place = root + number
            tokens[row, place] = node[-1]
            positions[row, place] = prefix.length + len(prompt) + len(node) - 1
            sees[row, place, begin:longest] = True
            sees[row, place, [root + tree[node[:n]] for n in range(1, len(node) + 1)]] = True
    sees = torch.cat([torch.ones(*shape, prefix.length, dtype=torch.bool), sees], dim=-1)
    dtype = model.model.dtype
    mask = torch.zeros(sees.shape, dtype=dtype).masked_fill_(~sees, torch.finfo(dtype).min)
    logits: Tensor = model.model(
        input_ids=tokens.to(model.device),
        attention_mask=mask[:, None].to(model.device),
        position_ids=positions.to(model.device),
        **{_cache_of(model): prefix.repeated(len(prompts))},
        use_cache=prefix.length > 0,
        logits_to_keep=nodes + 1,
    ).logits
    return logits


def _check_numbers(model: LanguageModel, logits: Tensor) -> None:
    """Raise LmError if a logit is NaN."""
    if bool(logits.isnan().any()):
        raise LmError(
            f"{model.name} gives logits that are not numbers (NaN), as damaged weights or a narrow "
            "dtype do: use --dtype float32, or another model"
        )


def _in_batches(
    model: LanguageModel, sizes: Sequence[int], work: Callable[[list[int]], list[T]]
) -> list[T]:
    """Return the results of `work` for all questions, batched by size up to a token limit."""
    most = BATCH_TOKENS.get(model.device.type, BATCH_TOKENS["cpu"])
    batches: list[list[int]] = []
    for number in sorted(range(len(sizes)), key=sizes.__getitem__):
        if batches and (len(batches[-1]) + 1) * sizes[number] <= most:
            batches[-1].append(number)
        else:
            batches.append([number])
    return in_memory(batches, work, sizes, model.device)


def complete(
    model: LanguageModel, questions: Sequence[Question], temperature: float, seeds: Sequence[int]
) -> list[str]:
    """Sample one answer to each question: its first line, up to the end token or the token limit.

    An answer depends on its seed, and not on how questions are grouped.
    """
    prompts = [model.tokens(model.text(each.prompt, each.opening)) for each in questions]
    prefix = _prefix(model, prompts)

    def answer(chosen: list[int]) -> list[str]:
        own = [prompts[n][prefix.length :] for n in chosen]
        generators = [torch.Generator().manual_seed(seeds[n]) for n in chosen]
        return _continued(model, own, temperature, generators, prefix)

    return _in_batches(model, [len(each) + model.max_tokens for each in prompts], answer)


@torch.inference_mode()
def _continued(
    model: LanguageModel,
    prompts: Sequence[Tokens],
    temperature: float,
    generators: Sequence[torch.Generator],
    prefix: _Prefix,
) -> list[str]:
    """Return the first line of each answer; computes one token of all answers at a time."""
    cache = prefix.repeated(len(prompts))
    aligned = partial(pad_sequence, batch_first=True, padding_side="left")
    step = aligned([torch.tensor(prompt) for prompt in prompts])
    seen = aligned([torch.ones(len(prompt), dtype=torch.long) for prompt in prompts])
    seen = torch.cat([torch.ones(len(prompts), prefix.length, dtype=torch.long), seen], dim=1)
    positions = (seen.cumsum(1) - 1)[:, prefix.length :]
    tokens: list[list[int]] = [[] for _ in prompts]
    texts = [""] * len(prompts)
    open_ = list(range(len(prompts)))
    for _ in range(model.max_tokens):
        output = model.model(
            input_ids=step.to(model.device),
            attention_mask=seen.to(model.device),
            position_ids=positions.clamp(min=0).to(model.device),
            **{_cache_of(model): cache},
            use_cache=True,
            logits_to_keep=1,
        )
        cache, logits = getattr(output, _cache_of(model)), output.logits[:, -1].float().cpu()
        _check_numbers(model, logits)
        drawn = {row: _drawn(logits[row], temperature, generators[row]) for row in open_}
        open_ = [row for row in open_ if drawn[row] not in model.ends]
        for row in open_:
            tokens[row].append(drawn[row])
            texts[row] = model.tokenizer.decode(tokens[row], skip_special_tokens=True)
        open_ = [row for row in open_ if first_line(texts[row]) == texts[row]]
        if not open_:
            break
        step = torch.tensor([drawn.get(row, 0) for row in range(len(prompts))])[:, None]
        seen = torch.cat([seen, torch.ones_like(step)], dim=1)
        positions = positions[:, -1:] + 1
    return [first_line(text) for text in texts]


def _drawn(
    logits: Float[Tensor, "vocabulary"], temperature: float, generator: torch.Generator
) -> int:
    if temperature == GREEDY:
        return int(logits.argmax())
    below = (logits - logits.max()).double() / temperature  # at most 0: never +inf
    weights = torch.softmax(below.float(), dim=-1)
    return int(torch.multinomial(weights, 1, generator=generator))
