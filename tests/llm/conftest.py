"""A language model of a few thousand weights, with a tokenizer of words."""

import pytest
import torch

from hopscope.llm.local import LocalModel

SENTENCE = "What is the value of Say directly only numeric without any other words Answer"
WORDS = ["<end>", "<unk>", *"abcdefgh0123?=.,:", "Berlin", "New", "York", "\n", *SENTENCE.split()]


def tiny_model(template: str = "raw", seed: int = 0) -> LocalModel:
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({word: n for n, word in enumerate(WORDS)}, "<unk>"))
    words.pre_tokenizer = pre_tokenizers.Split(Regex(r"\w+|\S|\n"), "removed", invert=True)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<end>")
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(WORDS), hidden_size=48, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
        bos_token_id=None, eos_token_id=0,
        rope_parameters={"rope_type": "default", "rope_theta": 1e12}, initializer_range=0.4,
        attn_implementation="eager",
    )  # fmt: skip
    return LocalModel(LlamaForCausalLM(config).float(), tokenizer, "tiny", template, 4)


@pytest.fixture(scope="session")
def tiny() -> LocalModel:
    return tiny_model()


@pytest.fixture(scope="session")
def make_tiny() -> object:
    return tiny_model
