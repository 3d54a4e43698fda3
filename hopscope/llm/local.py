"""A language model in this process, through transformers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from hopscope.errors import LlmError
from hopscope.llm.answers import forms
from hopscope.llm.backend import GREEDY
from hopscope.llm.tree import Tree, planted, sequence_logs

Template = Literal["chat", "raw"]
RAW_END = "\nAnswer:"
"""What a prompt without a chat template ends with."""
BATCH_TOKENS = 2_048
"""Tokens in a batch; larger ones leave the processor's cache and are slower."""


@dataclass
class LocalModel:
    """A causal language model with its tokenizer."""

    model: Any
    tokenizer: Any
    name: str
    template: Template = "chat"
    max_tokens: int = 16

    def __post_init__(self) -> None:
        if self.template == "chat" and not self.tokenizer.chat_template:
            raise LlmError(f"{self.name} has no chat template: use --template raw")
        self.model.eval()

    @property
    def stops(self) -> list[int]:
        """The tokens that end an answer: the model's own, and those that begin a new line."""
        own = self.model.generation_config.eos_token_id
        ends = own if isinstance(own, list) else [own]
        line = self.tokenizer.encode("\n", add_special_tokens=False)
        return sorted({token for token in (*ends, *line[:1]) if token is not None})

    def text(self, prompt: str) -> str:
        """The prompt as the model gets it."""
        if self.template == "raw":
            return prompt + RAW_END
        said: str = self.tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}], tokenize=False, add_generation_prompt=True
        )
        return said

    def tokens(self, prompt: str) -> list[int]:
        """The tokens of the prompt as the model gets it."""
        special = self.template == "raw"
        found: list[int] = self.tokenizer.encode(self.text(prompt), add_special_tokens=special)
        room = getattr(self.model.config, "max_position_embeddings", None)
        if room is not None and len(found) + self.max_tokens > room:
            raise LlmError(
                f"a prompt of {len(found)} tokens and {self.max_tokens} for the answer do not fit "
                f"into {self.name}'s context of {room}: ask for fewer hops or chains"
            )
        return found

    def probabilities(
        self, prompts: Sequence[str], answers: Sequence[Sequence[str]]
    ) -> list[list[float]]:
        """For each prompt, the probability that the model says each answer and then stops."""
        tokens = [self.tokens(prompt) for prompt in prompts]
        found: list[list[float]] = [[] for _ in prompts]
        for chosen in _batches(tokens, answers):
            scored = self._scored([tokens[n] for n in chosen], [answers[n] for n in chosen])
            for number, values in zip(chosen, scored, strict=True):
                found[number] = values
        return found

    @torch.inference_mode()
    def _scored(
        self, prompts: Sequence[Sequence[int]], answers: Sequence[Sequence[str]]
    ) -> list[list[float]]:
        spelled = [[self._spellings(answer) for answer in each] for each in answers]
        trees = [_tree(each) for each in spelled]
        batch = planted(prompts, trees)
        logits = self.model(
            input_ids=batch.tokens.to(self.model.device),
            attention_mask=batch.mask(self.model.dtype).to(self.model.device),
            position_ids=batch.places.to(self.model.device),
            use_cache=False,
            logits_to_keep=batch.nodes + 1,
        ).logits
        return [
            [self._probability(tree, logs, spellings) for spellings in each]
            for tree, logs, each in zip(trees, _logs(logits), spelled, strict=True)
        ]

    def _probability(
        self,
        tree: Tree,
        logs: Float[Tensor, "node vocabulary"],
        spellings: Sequence[tuple[int, ...]],
    ) -> float:
        return sum(
            float(torch.tensor(sequence_logs(tree, logs, tokens, self.stops)).exp())
            for tokens in spellings
        )

    def _spellings(self, answer: str) -> list[tuple[int, ...]]:
        """The different token sequences of an answer's forms."""
        encoded = (self.tokenizer.encode(form, add_special_tokens=False) for form in forms(answer))
        return list(dict.fromkeys(tuple(tokens) for tokens in encoded))

    def complete(
        self, prompts: Sequence[str], temperature: float, seeds: Sequence[int]
    ) -> list[str]:
        """One answer to each prompt: up to a stop, or the limit of tokens."""
        found = []
        for prompt, seed in zip(prompts, seeds, strict=True):
            found.append(self._completed(self.tokens(prompt), temperature, seed))
        return found

    @torch.inference_mode()
    def _completed(self, tokens: list[int], temperature: float, seed: int) -> str:
        generator = torch.Generator().manual_seed(seed)
        cache, said, stops = None, list[int](), set(self.stops)
        step = torch.tensor([tokens], device=self.model.device)
        while len(said) < self.max_tokens:
            output = self.model(
                input_ids=step, past_key_values=cache, use_cache=True, logits_to_keep=1
            )
            cache, logits = output.past_key_values, output.logits[0, -1].float().cpu()
            token = _drawn(logits, temperature, generator)
            if token in stops:
                break
            said.append(token)
            step = torch.tensor([[token]], device=self.model.device)
        text: str = self.tokenizer.decode(said, skip_special_tokens=True)
        return text


def _drawn(
    logits: Float[Tensor, "vocabulary"], temperature: float, generator: torch.Generator
) -> int:
    if temperature == GREEDY:
        return int(logits.argmax())
    weights = torch.softmax(logits / temperature, dim=-1)
    return int(torch.multinomial(weights, 1, generator=generator))


def _tree(spelled: Sequence[Sequence[tuple[int, ...]]]) -> Tree:
    tree = Tree()
    for spellings in spelled:
        for tokens in spellings:
            tree.add(tokens)
    return tree


def _logs(
    logits: Float[Tensor, "batch node vocabulary"],
) -> Iterator[Float[Tensor, "node vocabulary"]]:
    """Log-probabilities, one prompt after the other: all at once would fill the memory."""
    for row in logits:
        yield torch.log_softmax(row.float(), dim=-1).cpu()


def _batches(
    tokens: Sequence[Sequence[int]], answers: Sequence[Sequence[str]]
) -> Iterator[list[int]]:
    """Prompts of similar length together, up to a number of tokens."""
    order = sorted(range(len(tokens)), key=lambda number: len(tokens[number]))
    batch: list[int] = []
    for number in order:
        # A guess at the tree: four forms of two tokens for each answer.
        size = len(tokens[number]) + 8 * len(answers[number])
        if batch and (len(batch) + 1) * size > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch
