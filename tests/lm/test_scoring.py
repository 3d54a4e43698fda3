"""All answers in one pass are each answer alone; where an answer ends; batches and memory."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from calling import Patch
from families import FAMILIES, LLAMA, of_family
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    DynamicCache,
    LlamaConfig,
    LlamaForCausalLM,
    LlamaTokenizer,
    PreTrainedTokenizerFast,
)

from hopscope.errors import LmError
from hopscope.lm.model import LanguageModel
from hopscope.lm.prompts import Question, answered, forms, raw_text
from hopscope.lm.scoring import BATCH_TOKENS, complete, probabilities

PROMPTS = ["a = 1 b = a b = ?", "c = 2 d", "e = 3 f = e g = f h = g h ?"]
ANSWERS = [["0", "1", "2"], ["New York", "Berlin"], ["0", "New", "New York", "3"]]


def asking(prompt: str, answers: Sequence[str] = ("0",), opening: str = "") -> Question:
    return Question(prompt, answers[0], tuple(answers), (), 0, 0, opening)


ASKED = [asking(*each) for each in zip(PROMPTS, ANSWERS, strict=True)]


@torch.no_grad()
def alone(local: LanguageModel, text: str, answer: str) -> float:
    """The probability of an answer, spelling by spelling, token by token, without any cache."""
    total = 0.0
    for form in forms(answer, text):
        tokens = local.tokenizer.encode(form, add_special_tokens=False)
        sequence, chance = list(local.tokens(text)), 1.0
        for token in tokens:
            logits = local.model(torch.tensor([sequence])).logits[0, -1]
            chance *= float(torch.softmax(logits, -1)[token])
            sequence = [*sequence, token]
        logits = local.model(torch.tensor([sequence])).logits[0, -1]
        total += chance * float(torch.softmax(logits, -1)[local.stops].sum())
    return total


def each_alone(local: LanguageModel, asked: list[Question]) -> list[Any]:
    texts = [local.text(each.prompt, each.opening) for each in asked]
    return [
        pytest.approx([alone(local, text, answer) for answer in each.acceptable], rel=1e-4)
        for text, each in zip(texts, asked, strict=True)
    ]


def test_all_answers_in_one_pass_are_each_alone(tiny: LanguageModel, monkeypatch: Patch) -> None:
    shared = [f"a = 1 b = a c = b {end}" for end in ("a = ?", "b = ? c", "?")]
    for prompts in (PROMPTS, shared):
        asked = [asking(*each) for each in zip(prompts, ANSWERS, strict=True)]
        expected, found = each_alone(tiny, asked), probabilities(tiny, asked)
        assert found == expected
        assert all(0 < sum(values) < 1 for values in found)
        with monkeypatch.context() as small:
            small.setitem(BATCH_TOKENS, "cpu", 1)
            assert probabilities(tiny, asked) == expected


SCORED = ("gpt2", "opt", "gpt_neox", "qwen3", "gemma2", "gemma3_text", "gpt_oss")
"""Soft caps, sinks, windows, and attention of its own; each with the attention that transformers
takes for it."""


def test_a_model_of_any_family_scores_as_if_each_answer_were_alone(tiny: LanguageModel) -> None:
    shared = [asking(f"a = 1 b = {end}", answers) for end, answers in (("a", ["0"]), ("b", ["1"]))]
    room = dict.fromkeys(("n_positions", "max_position_embeddings", "sliding_window"), 64)
    sizes = {"vocab_size": len(tiny.tokenizer), "eos_token_id": 0, "initializer_range": 0.4, **room}
    for family in SCORED:
        model = of_family(family, None, **FAMILIES[family][0] | sizes)
        its = LanguageModel(model, tiny.tokenizer, family, "raw", 4)
        for asked in (ASKED, shared):
            assert probabilities(its, asked) == each_alone(its, asked), family
        together = complete(its, ASKED, 1.0, [1, 2, 3])
        assert together == [complete(its, [q], 1.0, [s])[0] for s, q in enumerate(ASKED, 1)]


def test_an_opening_is_part_of_the_prompt(tiny: LanguageModel) -> None:
    openings = ["b is", "e", "3 ,"]
    opened = [asking(*each) for each in zip(PROMPTS, ANSWERS, openings, strict=True)]
    assert tiny.text(PROMPTS[0], "b is") == raw_text(PROMPTS[0], "b is")
    assert probabilities(tiny, opened) == each_alone(tiny, opened)
    assert probabilities(tiny, opened) != probabilities(tiny, ASKED)
    assert complete(tiny, opened, 0.0, [0] * 3) != complete(tiny, ASKED, 0.0, [0] * 3)


def test_sampling_comes_to_the_exact_probabilities(tiny: LanguageModel) -> None:
    """The paper's protocol, many times: shares of accepted answers."""
    acceptable = ["0", "1", "Berlin"]
    asked = asking(PROMPTS[0], acceptable)
    (exact,) = probabilities(tiny, [asked])
    tries = 3_000
    said = complete(tiny, [asked] * tries, 1.0, range(tries))
    # The rules accept "= 0 ?" as well, which is no spelling that is scored; so tidy texts alone.
    tally = Counter(answered(text, acceptable) for text in said if text.strip(" .").isalnum())
    for answer, chance in zip(acceptable, exact, strict=True):
        spread = (chance * (1 - chance) / tries) ** 0.5
        assert abs(tally[answer] / tries - chance) < 4 * spread + 1e-3


def test_greedy_takes_the_likeliest_token(tiny: LanguageModel) -> None:
    (text,) = complete(tiny, ASKED[:1], 0.0, [0])
    for temperature in (1e-38, 5e-324):  # those at which logits overflow
        assert complete(tiny, ASKED[:1], temperature, [0]) == [text]
    sequence, words = list(tiny.tokens(tiny.text(PROMPTS[0]))), []
    for _ in range(tiny.max_tokens):
        token = int(tiny.model(torch.tensor([sequence])).logits[0, -1].argmax())
        if token in tiny.stops:
            break
        words.append(token)
        sequence.append(token)
    assert text == tiny.tokenizer.decode(words)


def test_where_memory_is_short_batches_are_smaller(tiny: LanguageModel, monkeypatch: Patch) -> None:
    expected, forward = probabilities(tiny, ASKED * 4), tiny.model.forward

    def short_of_memory(**given: Any) -> Any:
        if len(given["input_ids"]) > 3:
            raise torch.OutOfMemoryError
        return forward(**given)

    monkeypatch.setattr(tiny.model, "forward", short_of_memory)
    found = probabilities(tiny, ASKED * 4)
    assert found == [pytest.approx(values, rel=1e-4) for values in expected]


def test_logits_that_are_not_numbers_are_refused(
    make_tiny: Callable[..., LanguageModel],
) -> None:
    broken = make_tiny()
    broken.model.lm_head.weight.data.fill_(torch.nan)
    for ask in (
        partial(probabilities, broken, ASKED),
        partial(complete, broken, ASKED, 1.0, [0] * 3),
    ):
        with pytest.raises(LmError, match=r"^tiny gives logits that are not numbers \(NaN\)"):
            ask()


def test_a_tokenizer_of_another_model_is_refused(tiny: LanguageModel) -> None:
    config = LlamaConfig(**LLAMA | {"vocab_size": 5, "bos_token_id": None, "eos_token_id": 0})
    small = LanguageModel(LlamaForCausalLM(config), tiny.tokenizer, "small", "raw", 4)
    with pytest.raises(LmError, match="tokenizer gives token .*, the model has 5 tokens"):
        probabilities(small, ASKED)


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


def saying(tokenizer: Any, words: list[str], end: str | None = None) -> LanguageModel:
    return LanguageModel(Says(tokenizer, words, end), tokenizer, "it", "raw", 6)


def stops(its: LanguageModel) -> list[str]:
    words: list[str] = its.tokenizer.convert_ids_to_tokens(its.stops)
    return words


def test_a_new_line_ends_where_texts_get_a_blank_in_front() -> None:
    its = saying(sentencepiece(), [":", "▁", "3", "<0x0A>", "a"], "</s>")
    assert stops(its) == ["</s>", "<0x0A>"]
    assert complete(its, [asking("a = 3")], 0.0, [0]) == ["3"]
    ((no, yes),) = probabilities(its, [asking("a = 3", ["0", "3"])])
    assert (no, yes) == (pytest.approx(0, abs=1e-9), pytest.approx(1))


def test_whatever_begins_a_new_line_ends_an_answer_once_something_was_said() -> None:
    for line in ("Ċ", "ĊĊ", "ĠĊ"):
        its = saying(bytes_of("Ġ3", "ĊĊ", "ĠĊ", ".Ċ"), [":", "Ġ3", line, "a"], "<end>")
        assert set(stops(its)) == {"<end>", "Ċ", "ĊĊ", "ĠĊ"}
        assert [each.strip() for each in complete(its, [asking("a = 3")], 0.0, [0])] == ["3"]
        assert probabilities(its, [asking("a = 3", ["3"])]) == [[pytest.approx(1)]]
    its = saying(bytes_of("Ġ3", ".Ċ"), [":", "Ġ3", ".Ċ", "a"], "<end>")
    assert complete(its, [asking("a = 3")], 0.0, [0]) == [" 3."]  # a token that ends in a new line
    its = saying(bytes_of("ĊĊ"), [":", "ĊĊ", "3", "Ċ", "a"], "<end>")
    assert complete(its, [asking("a = 3")], 0.0, [0]) == ["\n\n3"]  # nothing was said before


def test_an_answer_that_is_joined_with_the_prompt_is_refused() -> None:
    joining = bytes_of(":Ġ")
    whole = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    joining.backend_tokenizer.pre_tokenizer = whole
    with pytest.raises(LmError, match="joins the end of the prompt with ' 3': use another model"):
        probabilities(saying(joining, [":"], "<end>"), [asking("a = 3", ["3"])])


def test_answers_of_the_same_tokens_are_refused(tiny: LanguageModel) -> None:
    with pytest.raises(LmError, match="gives two of the answers 0, 8, 9 the same tokens: take"):
        probabilities(tiny, [asking("a = 8", ["0", "8", "9"])])  # both are <unk>


def test_who_has_no_new_line_ends_with_a_token_of_its_own() -> None:
    words = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel({"<end>": 0, "a": 1}, "a"))
    )
    assert saying(words, ["a"], "<end>").stops == [0]
    with pytest.raises(LmError, match="it has no token that ends an answer, neither its own"):
        _ = saying(words, ["a"]).stops
