"""A language model in this process, through transformers."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from math import exp
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from hopscope.errors import LlmError
from hopscope.llm.answers import first_line, forms
from hopscope.llm.backend import GREEDY, begun, raw_text
from hopscope.llm.places import check, room
from hopscope.llm.tree import Tree, planted, sequence_logs

Template = Literal["chat", "raw"]
Tokens = tuple[int, ...]
BATCH_TOKENS = 2_048
"""Tokens in a batch; larger ones leave the processor's cache and are slower."""
JOINT = 8
"""Signs at the end of a text that decide how what follows is cut into tokens."""


@dataclass(frozen=True)
class _Beginning:
    """What a model keeps of the tokens that prompts have in common."""

    length: int
    state: Any

    def repeated(self, count: int) -> Any:
        """A copy for each of some prompts, for the model to go on from."""
        copy = deepcopy(self.state)
        if copy is not None:
            copy.batch_repeat_interleave(count)
        return copy


@dataclass
class LocalModel:
    """A causal language model with its tokenizer."""

    model: Any
    tokenizer: Any
    name: str
    template: Template = "chat"
    max_tokens: int = 16
    _room: tuple[int, str] | None = field(init=False, repr=False)
    _cut: dict[tuple[str, str], Tokens] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.template == "chat" and not self.tokenizer.chat_template:
            raise LlmError(f"{self.name} has no chat template: use --template raw")
        check(self.model, self.name)
        self._room = room(self.model)
        self.model.eval()

    @cached_property
    def ends(self) -> frozenset[int]:
        """The tokens by which the model itself ends an answer."""
        own = self.model.generation_config.eos_token_id
        return frozenset(own if isinstance(own, list) else [] if own is None else [own])

    @cached_property
    def stops(self) -> list[int]:
        """The tokens that end an answer: the model's own, and all that begin a new line behind it,
        blanks before that included.
        """
        word = self.tokenizer.encode("a", add_special_tokens=False)
        alone = self.tokenizer.decode(word)
        tokens = sorted(set(self.tokenizer.get_vocab().values()))
        # Behind a word, as many tokenizers take off what a text begins with.
        texts = self.tokenizer.batch_decode([[*word, token] for token in tokens])
        lines = {
            token
            for token, text in zip(tokens, texts, strict=True)
            if first_line(text) != text and first_line(text).rstrip() == alone
        }
        if not self.ends | lines:
            raise LlmError(
                f"{self.name} has no token that ends an answer, neither its own (eos_token_id) nor "
                "one that begins a new line: give its generation_config.json an eos_token_id"
            )
        return sorted(self.ends | lines)

    def text(self, prompt: str, opening: str = "") -> str:
        """The prompt as the model gets it, and the beginning of its answer."""
        if self.template == "raw":
            return raw_text(prompt, opening)
        said: str = self.tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}], tokenize=False, add_generation_prompt=True
        )
        return said + opening

    def tokens(self, text: str) -> Tokens:
        """The tokens of a text that the model gets."""
        found = tuple(self.tokenizer.encode(text, add_special_tokens=self.template == "raw"))
        if self._room is not None and len(found) + self.max_tokens > self._room[0]:
            raise LlmError(
                f"a prompt of {len(found)} tokens and {self.max_tokens} for the answer do not fit "
                f"into {self.name}'s {self._room[1]} of {self._room[0]}: ask for fewer hops or "
                "chains"
            )
        return found

    def spellings(self, text: str, answer: str) -> list[Tokens]:
        """The token sequences of an answer behind a text."""
        return [self._behind(text, form) for form in forms(answer, text)]

    def _behind(self, text: str, form: str) -> Tokens:
        """How a form is cut into tokens there; the end of the text decides."""
        joint = (text[-JOINT:], form)
        if joint not in self._cut:
            before, whole = self.tokens(text), self.tokens(text + form)
            if whole[: len(before)] != before:
                raise LlmError(
                    f"{self.name}'s tokenizer joins the end of the prompt with {form!r}: use the "
                    "other --template"
                )
            self._cut[joint] = whole[len(before) :]
        return self._cut[joint]

    def probabilities(
        self,
        prompts: Sequence[str],
        answers: Sequence[Sequence[str]],
        openings: Sequence[str] = (),
    ) -> list[list[float]]:
        """For each prompt, the probability that the model says each answer and then stops."""
        texts = [self.text(*each) for each in zip(prompts, begun(prompts, openings), strict=True)]
        tokens = [self.tokens(text) for text in texts]
        spelled = [
            [self.spellings(text, answer) for answer in each]
            for text, each in zip(texts, answers, strict=True)
        ]
        trees = [_tree(each) for each in spelled]
        found: list[list[float]] = [[] for _ in prompts]
        sizes = [len(own) + len(tree.tokens) for own, tree in zip(tokens, trees, strict=True)]
        beginning = self._beginning(tokens)
        for chosen in _batches(sizes):
            own = [tokens[n] for n in chosen]
            logits = self._logits(own, [trees[n] for n in chosen], beginning)
            for number, row in zip(chosen, logits, strict=True):
                # One after the other: all at once would fill the memory.
                logs = torch.log_softmax(row.float(), dim=-1).cpu()
                found[number] = [
                    sum(exp(sequence_logs(trees[number], logs, each, self.stops)) for each in some)
                    for some in spelled[number]
                ]
        return found

    @torch.inference_mode()
    def _logits(
        self, prompts: Sequence[Tokens], trees: Sequence[Tree], beginning: _Beginning
    ) -> Float[Tensor, "prompt node vocabulary"]:
        """For each prompt, what follows it and what follows each node of its tree."""
        shared = beginning.length
        batch = planted([each[shared:] for each in prompts], trees, shared)
        logits: Tensor = self.model(
            input_ids=batch.tokens.to(self.model.device),
            attention_mask=batch.mask(self.model.dtype).to(self.model.device),
            position_ids=batch.places.to(self.model.device),
            past_key_values=beginning.repeated(len(prompts)),
            use_cache=shared > 0,
            logits_to_keep=batch.nodes + 1,
        ).logits
        return logits

    @torch.inference_mode()
    def _beginning(self, prompts: Sequence[Tokens]) -> _Beginning:
        """Compute what all prompts begin with, once."""
        shared = _shared(prompts)
        if shared == 0:
            return _Beginning(0, None)
        step = torch.tensor([prompts[0][:shared]], device=self.model.device)
        kept = self.model(input_ids=step, use_cache=True, logits_to_keep=1).past_key_values
        return _Beginning(shared, kept)

    def complete(
        self,
        prompts: Sequence[str],
        temperature: float,
        seeds: Sequence[int],
        openings: Sequence[str] = (),
    ) -> list[str]:
        """One answer to each prompt: the first line of what is said before the model's own end, or
        the limit of tokens.
        """
        pairs = zip(prompts, begun(prompts, openings), strict=True)
        tokens = [self.tokens(self.text(*pair)) for pair in pairs]
        beginning = self._beginning(tokens)
        found = [""] * len(prompts)
        for chosen in _batches([len(each) + self.max_tokens for each in tokens]):
            own = [tokens[n] for n in chosen]
            said = self._said(own, temperature, [seeds[n] for n in chosen], beginning)
            for number, some in zip(chosen, said, strict=True):
                found[number] = first_line(self._text(some))
        return found

    def _text(self, tokens: Sequence[int]) -> str:
        text: str = self.tokenizer.decode(tokens, skip_special_tokens=True)
        return text

    @torch.inference_mode()
    def _said(
        self,
        prompts: Sequence[Tokens],
        temperature: float,
        seeds: Sequence[int],
        beginning: _Beginning,
    ) -> list[list[int]]:
        """The tokens of the answers, a token of every answer at a time."""
        shared = beginning.length
        cache = beginning.repeated(len(prompts))
        step, seen = _aligned([each[shared:] for each in prompts])
        seen = torch.cat([torch.ones(len(prompts), shared, dtype=torch.long), seen], dim=1)
        places = (seen.cumsum(1) - 1)[:, shared:]
        generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        said: list[list[int]] = [[] for _ in prompts]
        open_ = list(range(len(prompts)))
        for _ in range(self.max_tokens):
            output = self.model(
                input_ids=step.to(self.model.device),
                attention_mask=seen.to(self.model.device),
                position_ids=places.clamp(min=0).to(self.model.device),
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            )
            cache, logits = output.past_key_values, output.logits[:, -1].float().cpu()
            drawn = {row: _drawn(logits[row], temperature, generators[row]) for row in open_}
            open_ = [row for row in open_ if drawn[row] not in self.ends]
            for row in open_:
                said[row].append(drawn[row])
            texts = {row: self._text(said[row]) for row in open_}
            open_ = [row for row in open_ if first_line(texts[row]) == texts[row]]
            if not open_:
                break
            step = torch.tensor([drawn.get(row, 0) for row in range(len(prompts))])[:, None]
            seen = torch.cat([seen, torch.ones_like(step)], dim=1)
            places = places[:, -1:] + 1
        return said


def _drawn(
    logits: Float[Tensor, "vocabulary"], temperature: float, generator: torch.Generator
) -> int:
    if temperature == GREEDY:
        return int(logits.argmax())
    weights = torch.softmax(logits / temperature, dim=-1)
    return int(torch.multinomial(weights, 1, generator=generator))


def _aligned(rows: Sequence[Tokens]) -> tuple[Int[Tensor, "row seq"], Int[Tensor, "row seq"]]:
    """Rows that end at the same place, filled up in front, and which of it is theirs."""
    width = max(map(len, rows))
    tokens = [[0] * (width - len(row)) + list(row) for row in rows]
    own = [[0] * (width - len(row)) + [1] * len(row) for row in rows]
    return torch.tensor(tokens), torch.tensor(own)


def _shared(prompts: Sequence[Tokens]) -> int:
    """How many tokens all prompts begin with; at least one of each prompt is its own."""
    first, last = min(prompts), max(prompts)
    most = min(map(len, prompts)) - 1
    return next((n for n in range(most) if first[n] != last[n]), most)


def _tree(spelled: Sequence[Sequence[Tokens]]) -> Tree:
    tree = Tree()
    for spellings in spelled:
        for tokens in spellings:
            tree.add(tokens)
    return tree


def _batches(sizes: Sequence[int]) -> Iterator[list[int]]:
    """Numbers of similar sizes together, up to a number of tokens."""
    batch: list[int] = []
    for number in sorted(range(len(sizes)), key=sizes.__getitem__):
        if batch and (len(batch) + 1) * sizes[number] > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch
