"""A language model of a few thousand weights, with a tokenizer of words."""

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from calling import hopscope, root  # noqa: F401

from hopscope.configs import LmCircuit, Prompts, Tracing
from hopscope.lm.model import LanguageModel

SENTENCE = "What is the value of Say directly only numeric without any other words Answer"
WORDS = ["<end>", "<unk>", *"abcdefgh0123?=.,:", "Berlin", "New", "York", "\n", *SENTENCE.split()]


def tokenizer_of(words: list[str]) -> Any:
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    found = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, "<unk>"))
    found.pre_tokenizer = pre_tokenizers.Split(Regex(r"\w+|\S|\n"), "removed", invert=True)
    return PreTrainedTokenizerFast(tokenizer_object=found, eos_token="<end>", unk_token="<unk>")


def llama(words: list[str], name: str, template: str, **shape: Any) -> LanguageModel:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=len(words), bos_token_id=None, eos_token_id=0, attn_implementation="eager",
        rope_parameters={"rope_type": "default", "rope_theta": 1e12}, **shape,
    )  # fmt: skip
    return LanguageModel(LlamaForCausalLM(config).float(), tokenizer_of(words), name, template, 4)


def tiny_model(template: str = "raw", seed: int = 0, more: Iterable[str] = ()) -> LanguageModel:
    torch.manual_seed(seed)
    return llama(
        list(dict.fromkeys([*WORDS, *more])), "tiny", template, hidden_size=48,
        intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=64, initializer_range=0.4,
    )  # fmt: skip


def planted_model(*, stacked: bool) -> LanguageModel:
    """A model whose circuit for equations of two hops is known: see planted_llama.py."""
    from planted_llama import HEADS, SIZE, WIDTH, plant

    words = [*WORDS, "4"]
    found = llama(
        words, "planted", "raw", hidden_size=SIZE, intermediate_size=8, num_hidden_layers=3,
        num_attention_heads=HEADS, num_key_value_heads=HEADS, head_dim=WIDTH,
        max_position_embeddings=96, tie_word_embeddings=False,
    )  # fmt: skip
    plant(found.model, words, 16, stacked=stacked)
    return found


@pytest.fixture(scope="session")
def tiny() -> LanguageModel:
    return tiny_model()


@pytest.fixture(scope="session")
def make_tiny() -> object:
    return tiny_model


@pytest.fixture(scope="session")
def mine(tiny: LanguageModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It in a folder, as transformers keeps it."""
    folder = tmp_path_factory.mktemp("models") / "mine"
    tiny.model.save_pretrained(folder)
    tiny.tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def planted() -> Callable[[bool], LanguageModel]:
    """Both models of known circuit, made once: stacked, and in place."""
    return cache(lambda stacked: planted_model(stacked=stacked))


RECIPE = LmCircuit(
    model="planted", prompts=Prompts(formulation="equations", hops=2), questions=10,
    tracing=Tracing(searched=10, proved=10), template="raw",
)  # fmt: skip


@pytest.fixture(scope="session")
def recipe() -> LmCircuit:
    """A circuit of a few questions."""
    return RECIPE


@pytest.fixture(scope="session")
def traced(
    planted: Callable[[bool], LanguageModel], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[bool], Path]:
    """For each of them, the folder of the run that found its circuit."""
    from solving import find_circuit, in_one_piece

    @cache
    def folder(stacked: bool) -> Path:
        store = tmp_path_factory.mktemp("stacked" if stacked else "in-place")
        with nullcontext() if stacked else in_one_piece():
            return find_circuit(RECIPE, lambda: planted(stacked), store).path

    return folder
