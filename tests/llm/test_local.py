"""All answers in one pass are each answer alone; where an answer ends, and who is refused."""

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers
from calling import Patch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    AutoModelForCausalLM,
    DynamicCache,
    LlamaConfig,
    LlamaTokenizer,
    PreTrainedTokenizerFast,
)

from hopscope.errors import LlmError
from hopscope.llm.answers import answered, forms
from hopscope.llm.backend import raw_text
from hopscope.llm.local import LocalModel
from hopscope.llm.places import room
from hopscope.llm.tree import Tree, planted, sequence_logs

PROMPTS = ["a = 1 b = a b = ?", "c = 2 d", "e = 3 f = e g = f h = g h ?"]
ANSWERS = [["0", "1", "2"], ["New York", "Berlin"], ["0", "New", "New York", "3"]]


@torch.no_grad()
def alone(local: LocalModel, text: str, answer: str) -> float:
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


def test_all_answers_in_one_pass_are_each_alone(tiny: LocalModel, monkeypatch: Patch) -> None:
    for prompts in (PROMPTS, [f"a = 1 b = a c = b {end}" for end in ("a = ?", "b = ? c", "?")]):
        expected = [
            pytest.approx([alone(tiny, tiny.text(prompt), answer) for answer in answers], rel=1e-4)
            for prompt, answers in zip(prompts, ANSWERS, strict=True)
        ]
        found = tiny.probabilities(prompts, ANSWERS)
        assert found == expected
        assert all(0 < sum(values) < 1 for values in found)
        with monkeypatch.context() as small:
            small.setattr("hopscope.llm.local.BATCH_TOKENS", 1)
            assert tiny.probabilities(prompts, ANSWERS) == expected


def test_an_opening_is_part_of_the_prompt(tiny: LocalModel) -> None:
    opened = tiny.probabilities(PROMPTS, ANSWERS, ["b is", "e", "3 ,"])
    longer = [raw_text(*each) for each in zip(PROMPTS, ["b is", "e", "3 ,"], strict=True)]
    for text, answers, values in zip(longer, ANSWERS, opened, strict=True):
        assert values == pytest.approx([alone(tiny, text, each) for each in answers], rel=1e-4)
    assert opened != tiny.probabilities(PROMPTS, ANSWERS)
    said = tiny.complete(PROMPTS, 0.0, [0] * 3, ["b is", "e", "3 ,"])
    assert said != tiny.complete(PROMPTS, 0.0, [0] * 3)


def test_answers_come_alone_as_they_come_together(tiny: LocalModel) -> None:
    for temperature in (0.0, 1.0):
        together = tiny.complete(PROMPTS * 4, temperature, range(12))
        alone_ = [tiny.complete([p], temperature, [s])[0] for s, p in enumerate(PROMPTS * 4)]
        assert together == alone_
        assert (len({*together[::3]}) > 1) == bool(temperature)


def test_sampling_comes_to_the_exact_probabilities(tiny: LocalModel) -> None:
    """The paper's protocol, many times: shares of accepted answers."""
    acceptable = ["0", "1", "Berlin"]
    (exact,) = tiny.probabilities(PROMPTS[:1], [acceptable])
    tries = 3_000
    said = tiny.complete(PROMPTS[:1] * tries, 1.0, range(tries))
    # The rules accept "= 0 ?" as well, which is no spelling that is scored; so tidy texts alone.
    tally = Counter(answered(text, acceptable) for text in said if text.strip(" .").isalnum())
    for answer, chance in zip(acceptable, exact, strict=True):
        spread = (chance * (1 - chance) / tries) ** 0.5
        assert abs(tally[answer] / tries - chance) < 4 * spread + 1e-3


def test_greedy_takes_the_likeliest_token(tiny: LocalModel) -> None:
    (text,) = tiny.complete(PROMPTS[:1], 0.0, [0])
    sequence, words = list(tiny.tokens(tiny.text(PROMPTS[0]))), []
    for _ in range(tiny.max_tokens):
        token = int(tiny.model(torch.tensor([sequence])).logits[0, -1].argmax())
        if token in tiny.stops:
            break
        words.append(token)
        sequence.append(token)
    assert text == tiny.tokenizer.decode(words)


def test_what_cannot_be_asked_is_said(make_tiny: Callable[[str], LocalModel]) -> None:
    with pytest.raises(LlmError, match="tiny has no chat template: use --template raw"):
        make_tiny("chat")
    with pytest.raises(LlmError, match="of 73 tokens and 4 for the answer do not fit .* of 64"):
        make_tiny("raw").complete(["a " * 70], 0.0, [0])


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


def saying(tokenizer: Any, words: list[str], end: str | None = None) -> LocalModel:
    return LocalModel(Says(tokenizer, words, end), tokenizer, "it", "raw", 6)


def stops(its: LocalModel) -> list[str]:
    words: list[str] = its.tokenizer.convert_ids_to_tokens(its.stops)
    return words


def test_a_new_line_ends_where_texts_get_a_blank_in_front() -> None:
    its = saying(sentencepiece(), [":", "▁", "3", "<0x0A>", "a"], "</s>")
    assert stops(its) == ["</s>", "<0x0A>"]
    assert its.complete(["a = 3"], 0.0, [0]) == ["3"]
    ((no, yes),) = its.probabilities(["a = 3"], [["0", "3"]])
    assert (no, yes) == (pytest.approx(0, abs=1e-9), pytest.approx(1))


def test_whatever_begins_a_new_line_ends_an_answer_once_something_was_said() -> None:
    for line in ("Ċ", "ĊĊ", "ĠĊ"):
        its = saying(bytes_of("Ġ3", "ĊĊ", "ĠĊ", ".Ċ"), [":", "Ġ3", line, "a"], "<end>")
        assert set(stops(its)) == {"<end>", "Ċ", "ĊĊ", "ĠĊ"}
        assert [each.strip() for each in its.complete(["a = 3"], 0.0, [0])] == ["3"]
        assert its.probabilities(["a = 3"], [["3"]]) == [[pytest.approx(1)]]
    its = saying(bytes_of("Ġ3", ".Ċ"), [":", "Ġ3", ".Ċ", "a"], "<end>")
    assert its.complete(["a = 3"], 0.0, [0]) == [" 3."]  # a token that ends in a new line
    its = saying(bytes_of("ĊĊ"), [":", "ĊĊ", "3", "Ċ", "a"], "<end>")
    assert its.complete(["a = 3"], 0.0, [0]) == ["\n\n3"]  # nothing was said before


def test_who_has_no_new_line_ends_with_a_token_of_its_own() -> None:
    words = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel({"<end>": 0, "a": 1}, "a"))
    )
    assert saying(words, ["a"], "<end>").stops == [0]
    with pytest.raises(LlmError, match="it has no token that ends an answer, neither its own"):
        _ = saying(words, ["a"]).stops


COMMON: dict[str, Any] = {
    "vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": None, "eos_token_id": 0,
}  # fmt: skip
LLAMA = COMMON | {"intermediate_size": 32, "num_key_value_heads": 2}


def of_family(tokenizer: Any, family: str, **options: Any) -> LocalModel:
    config = getattr(transformers, f"{family}Config")(**options)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    return LocalModel(model, tokenizer, "tiny", "raw", 4)


COUNTS, OTHER = (
    "counts the places of tokens itself (ALiBi does",
    "has layers other than plain atten",
)
REFUSED = [
    ("Mpt", {"d_model": 32, "n_heads": 4, "n_layers": 1}, COUNTS),
    ("Bloom", {"hidden_size": 32, "n_head": 4, "n_layer": 1}, COUNTS),
    ("Falcon", COMMON | {"alibi": True}, COUNTS),
    ("Mamba", {"hidden_size": 32, "num_hidden_layers": 1}, OTHER),
    ("Lfm2", LLAMA | {"layer_types": ["conv", "full_attention"]}, OTHER),
]


def test_who_goes_by_other_places_is_refused(tiny: LocalModel) -> None:
    for family, options, does in REFUSED:
        with pytest.raises(LlmError) as refused:
            of_family(tiny.tokenizer, family, **options | {"vocab_size": 64})
        line = str(refused.value)
        assert line.startswith(f"tiny is a model of type {family.lower()}, which {does}")
        assert line.endswith("serve it, and ask the endpoint with --protocol paper or greedy")
        assert "\n" not in line


MIXED = ["sliding_attention", "full_attention"]
WINDOW, CONTEXT = (24, "window of attention"), (64, "context")
ROOMS = [
    ("Llama", {}, CONTEXT),
    ("Mistral", {"sliding_window": 24}, WINDOW),
    ("Mistral", {"sliding_window": 100}, CONTEXT),
    ("Mistral", {"sliding_window": None}, CONTEXT),
    ("Gemma3Text", {"sliding_window": 24, "layer_types": MIXED}, WINDOW),
    ("Gemma3Text", {"sliding_window": 24, "layer_types": MIXED[1:] * 2}, CONTEXT),
    ("Qwen2", {"sliding_window": 24}, CONTEXT),
    ("Llama4Text", {"attention_chunk_size": 24}, WINDOW),
    ("GPTNeo", {"window_size": 24, "attention_types": [[["global", "local"], 1]]}, WINDOW),
]


def test_the_smallest_of_context_and_windows_is_the_room(tiny: LocalModel) -> None:
    for family, options, expected in ROOMS:
        config = getattr(transformers, f"{family}Config")(**LLAMA | options)
        assert room(transformers.PreTrainedModel(config)) == expected, (family, options)
    its = of_family(tiny.tokenizer, "Gemma3Text", **LLAMA, head_dim=8, sliding_window=16)
    short, long = "a = 1 a ?", "a = 1 b = a c = b c = ?"
    (together,) = its.probabilities([short], [["0", "1"]])
    assert all(0 < chance < 1 for chance in together)
    for ask in (lambda: its.probabilities([long], [["0"]]), lambda: its.complete([long], 0.0, [0])):
        with pytest.raises(LlmError, match="do not fit into tiny's window of attention of 16: ask"):
            ask()


sequences = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), min_size=1, max_size=6)


def grown(several: list[list[int]]) -> Tree:
    tree = Tree()
    for sequence in several:
        tree.add(sequence)
    return tree


@given(sequences)
def test_every_beginning_has_one_node_and_the_way_to_it_spells_it(several: list[list[int]]) -> None:
    tree = grown(several)
    beginnings = {tuple(each[:n]) for each in several for n in range(1, len(each) + 1)}
    assert set(tree.ends) == beginnings
    assert len(tree.tokens) == len(beginnings)
    for sequence, node in tree.ends.items():
        assert tuple(tree.tokens[n] for n in reversed(tree.above(node))) == sequence


@given(sequences, st.integers(1, 3), st.integers(0, 2))
def test_a_token_sees_what_is_before_it_in_its_own_answer(
    several: list[list[int]], length: int, before: int
) -> None:
    tree = grown(several)
    batch = planted([[5] * length, [6] * (length + 2)], [tree, tree], before)
    longest = length + 2
    for row, own in enumerate((length, longest)):
        for sequence, node in tree.ends.items():
            sees = batch.sees[row, longest + node]
            assert sees[:before].all()  # what all have in common
            mine = sees[before:]
            assert int(mine[:longest].sum()) == own
            seen = [n for n in range(len(tree.tokens)) if mine[longest + n]]
            assert sorted(seen) == sorted(tree.above(node))
            assert int(batch.places[row, longest + node]) == before + own + len(sequence) - 1


def test_no_row_of_the_mask_is_without_anything_to_see() -> None:
    batch = planted([[1], [1, 2, 3]], [grown([[4]]), grown([[4], [5]])])
    mask = batch.mask(torch.float32)
    assert ((mask == 0).sum(-1) > 0).all()
    assert (mask[~batch.sees[:, None]] == torch.finfo(torch.float32).min).all()


def test_a_sequence_has_the_product_of_its_steps_and_any_stop() -> None:
    tree = grown([[1, 2], [1, 0]])
    logs = torch.log_softmax(torch.randn(4, 3, generator=torch.Generator().manual_seed(0)), -1)
    chances = logs.exp().double()
    expected = chances[0, 1] * chances[1, 2] * (chances[2, 0] + chances[2, 1])
    found = sequence_logs(tree, logs, [1, 2], [0, 1])
    assert found == pytest.approx(float(expected.log()), abs=1e-6)
