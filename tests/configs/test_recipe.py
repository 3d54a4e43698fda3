"""Recipes: their names are hashes of what they say, and of nothing else."""

import json
from typing import ClassVar, Literal

from hopscope.configs import (
    Experiment,
    KHop,
    LlmBench,
    Prompts,
    Recipe,
    Training,
)
from hopscope.configs.recipe import SHAPE, Seeds


class Plain(Recipe):
    """A recipe that overrides nothing that it need not."""

    kind: Literal["plain"] = "plain"
    task_kind: ClassVar = "plain"  # type: ignore[assignment]
    seeds: Seeds = (0,)

    @property
    def steps(self) -> int:
        return 1

    def title(self) -> str:
        return "plain"


def test_only_what_a_recipe_changes_enters_its_name() -> None:
    assert json.loads(Experiment().canonical_json()) == {"kind": "facts"}
    chosen = Experiment(task=KHop(hops=3), training=Training(lr=1e-3), seeds=(1, 2))
    assert json.loads(chosen.canonical_json()) == {
        "kind": "facts",
        "seeds": [1, 2],
        "task": {"hops": 3, "kind": "khop"},
    }
    asked = LlmBench(model="m", prompts=(Prompts(formulation="kingdoms"),))
    assert json.loads(asked.canonical_json()) == {
        "kind": "llm",
        "model": "m",
        "prompts": [{"formulation": "kingdoms"}],
    }


def test_names_of_runs_stay_what_they_were() -> None:
    """Runs on disk are found by these names: whoever changes a default needs a new value."""
    assert Experiment().run_name() == "retrieval-d3-l4h4-7cbd4ba0e2"


def test_what_a_recipe_without_these_answers() -> None:
    plain = Plain()
    assert plain.run_name() == f"plain-{plain.digest()[:10]}"
    assert (plain.unit, plain.chance) == ("step", None)
    assert plain.loss_names(2) == ["loss", "loss"]
    assert plain.shape() == dict.fromkeys(SHAPE)
