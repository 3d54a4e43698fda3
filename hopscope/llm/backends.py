"""Which backend answers a benchmark."""

from hopscope.configs import LlmBench
from hopscope.errors import ConfigError
from hopscope.llm.backend import Backend
from hopscope.llm.endpoint import Endpoint, EndpointSettings
from hopscope.llm.local import LocalModel
from hopscope.llm.models import load


def backend_of(bench: LlmBench) -> Backend:
    """An endpoint for a URL, and otherwise the model in this process."""
    asking = bench.asking
    if "://" not in bench.model:
        model, tokenizer = load(bench.model, asking.precision)
        return LocalModel(model, tokenizer, bench.model, asking.template, asking.max_tokens)
    url, _, name = bench.model.partition("#")
    if not name:
        raise ConfigError(f"{bench.model}: write the model's name behind the URL, as {url}#NAME")
    return Endpoint(
        EndpointSettings(url, name, chat=asking.template == "chat", max_tokens=asking.max_tokens)
    )
