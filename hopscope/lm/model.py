"""A causal language model of transformers with its tokenizer, on any device.

All answers to a question are scored in one sequence, as a tree (see `scoring`). So all layers must
use the positions and the mask that they are given, and a prompt must fit into the narrowest window
of attention. Other models are refused when they are opened, longer prompts when they are tokenized.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from inspect import signature
from typing import Any, Literal, TypeVar, cast, get_args

import torch

from hopscope.circuits.adapters.decoder import windows_of
from hopscope.configs import Dtype
from hopscope.errors import LmError
from hopscope.lm.known import open_model
from hopscope.lm.prompts import first_line, forms, raw_text
from hopscope.machine import out_of_memory
from hopscope.training.device import device_of

T = TypeVar("T")
Template = Literal["chat", "raw"]
Tokens = tuple[int, ...]

NATIVE_BFLOAT16 = (8, 0)
"""The lowest compute capability of GPUs that multiply bfloat16."""
JOINT = 8
"""Number of characters at the end of a text that affect the tokens of the text after it."""
LAYER_TYPES = {"full_attention", "sliding_attention", "chunked_attention"}
"""Types of layers (in transformers) that use the given positions."""


@dataclass
class LanguageModel:
    """A causal language model with its tokenizer."""

    model: Any
    tokenizer: Any
    name: str
    template: Template = "chat"
    max_tokens: int = 16
    """Largest number of tokens of a sampled answer."""
    _cut: dict[tuple[str, str], Tokens] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.template == "chat" and not self.tokenizer.chat_template:
            raise LmError(f"{self.name} has no chat template: use --template raw")
        _check(self.model, self.name)
        self.model.eval()

    @property
    def device(self) -> torch.device:
        """The device of the model's weights."""
        return torch.device(self.model.device)

    @cached_property
    def room(self) -> tuple[int, str] | None:
        """The largest number of tokens, and the name of this limit; None without a limit."""
        config = self.model.config.get_text_config()
        limits = [
            (min(windows_of(config).values(), default=None), "window of attention"),
            (getattr(config, "max_position_embeddings", None), "context"),
        ]
        return min(((size, what) for size, what in limits if size and size > 0), default=None)

    @cached_property
    def ends(self) -> frozenset[int]:
        """The model's own end-of-sequence tokens."""
        own = self.model.generation_config.eos_token_id
        return frozenset(own if isinstance(own, list) else [] if own is None else [own])

    @cached_property
    def stops(self) -> list[int]:
        """The tokens that end an answer: the end-of-sequence tokens, and all tokens with a line
        break before any other text.
        """
        word = self.tokenizer.encode("a", add_special_tokens=False)
        alone = self.tokenizer.decode(word)
        tokens = sorted(set(self.tokenizer.get_vocab().values()))
        # Decoded after a word, because many tokenizers strip the beginning of a text.
        texts = self.tokenizer.batch_decode([[*word, token] for token in tokens])
        lines = {
            token
            for token, text in zip(tokens, texts, strict=True)
            if first_line(text) != text and first_line(text).rstrip() == alone
        }
        if not self.ends | lines:
            raise LmError(
                f"{self.name} has no token that ends an answer, neither its own (eos_token_id) nor "
                "one that begins a new line: give its generation_config.json an eos_token_id"
            )
        return sorted(self.ends | lines)

    def text(self, prompt: str, opening: str = "") -> str:
        """Return the model's input: the prompt in its template, and the opening of the answer."""
        if self.template == "raw":
            return raw_text(prompt, opening)
        try:
            asked: str = self.tokenizer.apply_chat_template(
                [{"role": "user", "content": prompt}], tokenize=False, add_generation_prompt=True
            )
        except Exception as error:  # a template can raise any exception
            why = " ".join(str(error).split())[:120]
            raise LmError(
                f"{self.name}'s chat template refuses a question: {why}: use --template raw"
            ) from error
        if asked.count(prompt) != 1:
            raise LmError(
                f"{self.name}'s chat template changes the question, or prints it twice: use "
                "--template raw"
            )
        return asked + opening

    def tokens(self, text: str) -> Tokens:
        """Return the tokens of a text; raises LmError if the model cannot read it."""
        found = tuple(self.tokenizer.encode(text, add_special_tokens=self.template == "raw"))
        if self.template == "raw" and found[-1:] == (self.tokenizer.eos_token_id,):
            found = found[:-1]  # added by the tokenizer: an answer follows
        size = self.model.config.get_text_config().vocab_size
        if max(found, default=0) >= size:
            raise LmError(
                f"{self.name}'s tokenizer gives token {max(found)}, the model has {size} tokens; "
                "expected a model with its own tokenizer: save both again"
            )
        if self.room is not None and len(found) + self.max_tokens > self.room[0]:
            raise LmError(
                f"a prompt of {len(found)} tokens and {self.max_tokens} for the answer do not fit "
                f"into {self.name}'s {self.room[1]} of {self.room[0]}: ask for fewer hops or chains"
            )
        return found

    def spellings(self, text: str, answer: str) -> list[Tokens]:
        """The token sequences of an answer after a text."""
        return [self._after(text, form) for form in forms(answer, text)]

    def _after(self, text: str, form: str) -> Tokens:
        """Return the tokens of a form after a text (cached by the end of the text)."""
        joint = (text[-JOINT:], form)
        if joint not in self._cut:
            before, whole = self.tokens(text), self.tokens(text + form)
            if whole[: len(before)] != before:
                other = "the other --template" if self.tokenizer.chat_template else "another model"
                raise LmError(
                    f"{self.name}'s tokenizer joins the end of the prompt with {form!r}: use "
                    f"{other}"
                )
            self._cut[joint] = whole[len(before) :]
        return self._cut[joint]


def _check(model: Any, name: str) -> None:
    """Raise LmError for a model without logits, or one that does not use the given positions."""
    takes, config = signature(model.forward).parameters, model.config.get_text_config()
    if "logits_to_keep" not in takes:
        raise LmError(
            f"{name} is a {type(model).__name__}, which gives no logits of next tokens; expected a "
            "model with a language-model head: load it with AutoModelForCausalLM"
        )
    kinds = set(getattr(config, "layer_types", None) or ())
    if kinds - LAYER_TYPES or getattr(model, "_is_stateful", False):
        does = "has layers other than plain attention"
    elif getattr(config, "alibi", False) or "position_ids" not in takes:
        does = "counts the positions of tokens itself (as ALiBi does)"
    else:
        return
    raise LmError(
        f"{name} is a model of type {config.model_type}, which {does}: its answers cannot be "
        "scored side by side; serve it, and ask the endpoint with --protocol paper or greedy"
    )


def dtype_of(name: str, device: str = "auto") -> Dtype:
    """Return the dtype with this name; auto is bfloat16 on a GPU that multiplies it, else float32
    (so that all CPUs have the same results).
    """
    if name not in ("auto", *get_args(Dtype)):
        raise LmError(f"dtype is {name!r}; expected auto, {', '.join(get_args(Dtype))}")
    if name != "auto":
        return cast(Dtype, name)
    where = device_of(device)
    fast = where.type == "cuda" and torch.cuda.get_device_capability(where) >= NATIVE_BFLOAT16
    return "bfloat16" if fast else "float32"


def load(
    where: str,
    dtype: str = "auto",
    device: str = "auto",
    template: Template = "chat",
    max_tokens: int = 16,
) -> LanguageModel:
    """Open a known model or OWNER/NAME that was fetched before, a folder, or a GGUF file.

    Nothing is downloaded.
    """
    target = device_of(device)
    tokenizer, model = open_model(where, dtype_of(dtype, device))
    try:
        model = model.to(target)
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        raise no_room(where, target) from error
    return LanguageModel(model, tokenizer, where, template, max_tokens)


def no_room(what: str, device: torch.device) -> LmError:
    """Return the error for something that does not fit into memory."""
    return LmError(
        f"{what} does not fit into the memory of {device}: use --dtype bfloat16, a smaller model, "
        "or --device cpu"
    )


def in_memory(
    batches: Sequence[list[int]],
    work: Callable[[list[int]], Sequence[T]],
    sizes: Sequence[int],
    device: torch.device,
) -> list[T]:
    """Call `work` on each batch of question numbers; return the results in order of the questions.

    If memory runs out, all remaining batches are halved. `sizes` are the tokens of each question.
    """
    found: dict[int, T] = {}
    waiting = list(batches)
    while waiting:
        try:
            made = work(waiting[0])
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
            if len(waiting[0]) == 1:
                raise no_room(f"one question of {sizes[waiting[0][0]]} tokens", device) from error
            halves = [(each[: len(each) // 2], each[len(each) // 2 :]) for each in waiting]
            waiting = [half for both in halves for half in both if half]
        else:
            found |= zip(waiting.pop(0), made, strict=True)
    return [found[number] for number in range(len(sizes))]
