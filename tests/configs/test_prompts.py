"""The config of questions in words: names, depths, refusals."""

from hopscope.configs.prompts import FORMULATIONS, Prompts


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
