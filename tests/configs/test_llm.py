"""Configs of benchmarks: what cannot be asked is refused."""

from collections.abc import Callable
from typing import Any

import pytest

from hopscope.configs import Asking, LlmBench, Prompts
from hopscope.errors import ConfigError


def bench(protocol: str = "paper", questions: int = 60, **asking: Any) -> LlmBench:
    kinds = (Prompts(formulation="equations", hops=2), Prompts(formulation="equations", hops=3))
    return LlmBench(
        model="solver", prompts=kinds, questions=questions,
        asking=Asking(protocol=protocol, template="raw", **asking),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: LlmBench(model="x", prompts=()), "prompts"),
        (lambda: LlmBench(model="x", prompts=(Prompts(formulation="f1"),) * 2), "once"),
        (lambda: bench().model_copy() and LlmBench(**{**bench().model_dump(), "seeds": (0, 1)}),
         "a benchmark has one"),
        (lambda: Asking(protocol="guess"), "'exact', 'paper' or 'greedy', got 'guess'"),
    ],
)  # fmt: skip
def test_benchmarks_that_make_no_sense(make: Callable[[], object], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        make()
