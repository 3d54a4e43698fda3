"""Where an answer ends: with tokenizers of every kind, a new line is a new line."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import DynamicCache, LlamaConfig, LlamaTokenizer, PreTrainedTokenizerFast

from hopscope.errors import LlmError
from hopscope.llm.local import LocalModel


class Says:
    """A model that goes from each token to the next by a table, and ends where that ends."""

    config, device, dtype = LlamaConfig(), "cpu", torch.float32

    def __init__(self, tokenizer: Any, words: list[str], end: str | None = None) -> None:
        self.tokens = tokenizer.convert_tokens_to_ids(words)
        self.size = len(tokenizer)
        eos = None if end is None else tokenizer.convert_tokens_to_ids(end)
        self.generation_config = SimpleNamespace(eos_token_id=eos)

    def eval(self) -> None:
        pass

    def __call__(self, **given: Any) -> Any:
        return self.forward(**given)

    def forward(
        self, input_ids: torch.Tensor, position_ids: Any = None, logits_to_keep: int = 1, **_: Any
    ) -> Any:
        follows = dict(zip(self.tokens, [*self.tokens[1:], self.tokens[-1]], strict=True))
        logits = torch.full((*input_ids.shape, self.size), -30.0)
        for row, tokens in enumerate(input_ids.tolist()):
            for place, token in enumerate(tokens):
                logits[row, place, follows.get(token, self.tokens[-1])] = 30.0
        return SimpleNamespace(logits=logits[:, -logits_to_keep:], past_key_values=DynamicCache())


def sentencepiece() -> Any:
    """A tokenizer as Llama 2 has one: texts get a blank in front, and "\\n" is a byte."""
    signs = [*"0123:?=.,abcdefghijklmnopqrstuvwxyzAW"]
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", *signs]
    return LlamaTokenizer(vocab={piece: n for n, piece in enumerate(pieces)}, merges=[])


def bytes_of(*merged: str) -> Any:
    """A tokenizer as GPT-2 has one: pairs of signs are one token."""
    signs = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {sign: n for n, sign in enumerate([*signs, *merged, "<end>"])}
    words = Tokenizer(models.BPE(vocabulary, [(pair[0], pair[1]) for pair in merged]))
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<end>")


def local(tokenizer: Any, words: list[str], end: str | None = None) -> LocalModel:
    return LocalModel(Says(tokenizer, words, end), tokenizer, "it", "raw", 6)


def stops(its: LocalModel) -> list[str]:
    words: list[str] = its.tokenizer.convert_ids_to_tokens(its.stops)
    return words


def test_a_new_line_ends_where_texts_get_a_blank_in_front() -> None:
    its = local(sentencepiece(), [":", "▁", "3", "<0x0A>", "a"], "</s>")
    assert stops(its) == ["</s>", "<0x0A>"]
    assert its.complete(["a = 3"], 0.0, [0]) == ["3"]
    ((no, yes),) = its.probabilities(["a = 3"], [["0", "3"]])
    assert (no, yes) == (pytest.approx(0, abs=1e-9), pytest.approx(1))


def test_whatever_begins_a_new_line_ends_an_answer_once_something_was_said() -> None:
    for line in ("Ċ", "ĊĊ", "ĠĊ"):
        its = local(bytes_of("Ġ3", "ĊĊ", "ĠĊ", ".Ċ"), [":", "Ġ3", line, "a"], "<end>")
        assert set(stops(its)) == {"<end>", "Ċ", "ĊĊ", "ĠĊ"}
        assert [each.strip() for each in its.complete(["a = 3"], 0.0, [0])] == ["3"]
        assert its.probabilities(["a = 3"], [["3"]]) == [[pytest.approx(1)]]
    its = local(bytes_of("Ġ3", ".Ċ"), [":", "Ġ3", ".Ċ", "a"], "<end>")
    assert its.complete(["a = 3"], 0.0, [0]) == [" 3."]  # a token that ends in a new line
    its = local(bytes_of("ĊĊ"), [":", "ĊĊ", "3", "Ċ", "a"], "<end>")
    assert its.complete(["a = 3"], 0.0, [0]) == ["\n\n3"]  # nothing was said before


def test_who_has_no_new_line_ends_with_a_token_of_its_own() -> None:
    words = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel({"<end>": 0, "a": 1}, "a"))
    )
    assert local(words, ["a"], "<end>").stops == [0]
    with pytest.raises(LlmError, match="it has no token that ends an answer, neither its own"):
        _ = local(words, ["a"]).stops
