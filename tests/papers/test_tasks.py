"""One preset for each task that has no paper's own."""

from pathlib import Path

import pytest

from hopscope.configs import Experiment, read_recipe
from hopscope.configs.tasks import Task
from hopscope.papers import preset
from hopscope.papers.tasks import presets
from hopscope.tasks.kinds import BY_KIND
from hopscope.theory import flow

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_every_other_task_has_one() -> None:
    assert [*presets()] == [f"task/{kind}" for kind in BY_KIND if kind != "retrieval"]
    for name, found in presets().items():
        assert preset(name) == found
        assert found.recipe.task.kind == name.removeprefix("task/")


@pytest.mark.parametrize("name", presets())
def test_sources_are_of_fields_that_there_are(name: str) -> None:
    found = presets()[name]
    assert {*found.sources} <= {field for field, _, _ in found.fields()}


@pytest.mark.parametrize("name", presets())
def test_layers_are_the_fewest_that_theory_gives(name: str) -> None:
    experiment = presets()[name].recipe
    task: Task = experiment.task
    graph = task.graph()
    assert graph is not None
    needed = flow(graph, causal=True).minimum
    assert experiment.model.layers == max(needed[fact.value] or 0 for fact in graph.facts)


def test_mqar_is_the_example() -> None:
    kept = read_recipe((EXAMPLES / "mqar.json").read_text())
    assert isinstance(kept, Experiment)
    assert presets()["task/mqar"].recipe == kept
