"""The config of questions in words: names, depths, refusals."""

import re

import pytest

from hopscope.configs import Asking, LlmBench
from hopscope.configs.prompts import FORMULATIONS, Prompts
from hopscope.errors import ConfigError


def test_depths_graphs_and_labels() -> None:
    named = [Prompts(formulation=short) for short in FORMULATIONS]
    assert [one.formulation for one in named] == list(FORMULATIONS.values())
    assert [one.depth for one in named] == [5, 5, 5, 2, 4]
    assert [one.label for one in named] == [
        "equations-d5", "lives-with-d5", "kingdoms", "functions", "relatives",
    ]  # fmt: skip
    assert Prompts(formulation="f1", hops=20, chains=8).label == "equations-d20-n8"
    assert [len(one.graph().known) for one in named] == [1, 1, 1, 2, 1]


def test_one_question_has_one_config() -> None:
    written = Prompts(formulation="f2", hops=5, chains=4)
    assert written == Prompts(formulation="lives-with")
    assert Prompts.from_json(written.canonical_json()) == written
    assert Prompts.from_json('{"formulation":"f3"}').hops is None


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"hops": 0}, "Prompts.hops: Input should be greater than or equal to 1, got 0"),
        ({"hops": 21}, "Prompts: hops is 21; a question has 1 to 20: ask for fewer"),
        (
            {"formulation": "kingdoms", "hops": 3},
            "hops is 3; kingdoms always has a depth of 5: leave hops out, or ask for equations or",
        ),
        ({"formulation": "f4", "hops": 2}, "Prompts: hops is 2; functions always has a depth of 2"),
        (
            {"formulation": "f5", "hops": 25},
            "Prompts: hops is 25; relatives always has a depth of 4",
        ),
        (
            {"formulation": "kingdoms", "chains": 40},
            "chains is 40; kingdoms has words for 8: ask for fewer, or for equations or functions",
        ),
        (
            {"formulation": "relatives", "chains": 5},
            "Prompts: chains is 5; relatives has words for 4",
        ),
        ({"formulation": "f2", "chains": 27}, "Prompts: chains is 27; lives-with has words for 26"),
        ({"chains": 1}, "Prompts.chains: Input should be greater than or equal to 2, got 1"),
        ({"formulation": "f6"}, "Prompts.formulation: Input should be 'equations', 'lives-with'"),
        ({"formulation": 3}, "Prompts.formulation: Input should be 'equations', 'lives-with'"),
        ({"depth": 3}, "Prompts.depth: unknown field"),
    ],
)
def test_what_cannot_be_asked_is_refused(fields: dict[str, object], text: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(text)) as refused:
        Prompts(**{"formulation": "equations", **fields})
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("asking", "opening", "words"),
    [
        (Asking(), False, "an endpoint tells no probabilities: use --protocol paper or greedy"),
        (Asking(protocol="greedy"), True, "a chat endpoint begins its answers itself"),
    ],
)
def test_what_endpoints_cannot_do_is_said_at_once(
    asking: Asking, opening: bool, words: str
) -> None:
    prompts = (Prompts(formulation="f1", hops=1, opening=opening),)
    with pytest.raises(ConfigError, match=words):
        LlmBench(model="http://127.0.0.1:1/v1#x", prompts=prompts, asking=asking)
