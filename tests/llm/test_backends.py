"""Which backend a benchmark gets, and what backends have in common."""

from pathlib import Path

import pytest

from hopscope.configs import Asking, LlmBench, Prompts
from hopscope.errors import ConfigError
from hopscope.llm.backend import ScoringBackend, begun, raw_text
from hopscope.llm.backends import backend_of
from hopscope.llm.endpoint import Endpoint
from hopscope.llm.local import LocalModel

ASKING = Asking(protocol="greedy", template="raw", max_tokens=7)


def bench(model: str, asking: Asking = ASKING) -> LlmBench:
    return LlmBench(model=model, prompts=(Prompts(formulation="f1", hops=1),), asking=asking)


def test_a_url_is_an_endpoint_and_a_folder_a_model(tmp_path: Path, tiny: LocalModel) -> None:
    endpoint = backend_of(bench("http://127.0.0.1:9/v1#small"))
    assert isinstance(endpoint, Endpoint)
    assert endpoint.name == "small"
    assert isinstance(tiny, ScoringBackend)
    endpoint.close()
    tiny.model.save_pretrained(tmp_path / "mine")
    tiny.tokenizer.save_pretrained(tmp_path / "mine")
    local = backend_of(bench(str(tmp_path / "mine")))
    assert isinstance(local, LocalModel)
    assert (local.template, local.max_tokens) == ("raw", 7)


def test_an_endpoint_needs_the_model_s_name() -> None:
    with pytest.raises(ConfigError, match="write the model's name behind the URL, as http://127"):
        backend_of(bench("http://127.0.0.1:9/v1"))


def test_a_bare_prompt_asks_for_an_answer_on_a_line_of_its_own() -> None:
    assert raw_text("Who?") == "Who?\nAnswer:"
    assert raw_text("Who?", "It is") == "Who?\nAnswer: It is"
    assert begun(["a", "b"], ()) == ["", ""]
    assert begun(["a", "b"], ["x", "y"]) == ["x", "y"]
