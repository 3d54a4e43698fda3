"""Recipes leave as files and come back: of every preset, every kind of run, every kind of task."""

import re
from pathlib import Path

import pytest
from calling import Said

from hopscope.cli.changes import changed
from hopscope.configs import (
    Experiment,
    KHop,
    LmBench,
    LmCircuit,
    NgramExperiment,
    Prompts,
    Recipe,
    Tracing,
    read_recipe,
)
from hopscope.configs.kinds import KINDS
from hopscope.errors import ConfigError
from hopscope.papers import presets
from hopscope.store import Store
from hopscope.tasks.samplers import SAMPLERS

PROMPTS = Prompts(formulation="equations", hops=2)
RECIPES: list[Recipe] = [
    *(Experiment(task={"kind": kind}, seeds=(3, 5)) for kind in SAMPLERS),  # type: ignore[arg-type]
    NgramExperiment(seeds=(1, 2)),
    LmBench(model="mine.gguf", prompts=(PROMPTS,), questions=7),
    LmCircuit(
        model="mine.gguf",
        prompts=PROMPTS,
        elsewhere=Prompts(formulation="lives-with", hops=2),
        tracing=Tracing(searched=10, every=4),
    ),
]


def test_show_config_is_what_train_takes(root: Path, said: Said) -> None:
    assert {recipe.kind for recipe in RECIPES} == {*KINDS}
    for recipe in RECIPES:
        name = Store().create(recipe).name
        again = read_recipe(said("show", name, "--config"))
        assert again == recipe
        assert changed(again, (), "it").run_name() == name


def test_presets_are_written_as_recipes(root: Path, said: Said) -> None:
    listed = said("presets")
    for name, preset in presets().items():
        assert name in listed
        said("presets", name, "--save", "sub/mine.json")
        again = read_recipe((root / "sub/mine.json").read_text())
        assert again == preset.recipe
        assert changed(again, (), "it").run_name() == preset.recipe.run_name()
    said_of_it = said("presets", "demo", "--save", "my demo.json")
    assert said_of_it == "recipe: my demo.json; `hopscope train 'my demo.json'` trains it\n"
    with_sources = said("presets", "musat/transformer-a")
    assert re.search(r"training\.steps +24000 +§8\.1: 24k", with_sources)


def test_words_change_fields(root: Path) -> None:
    recipe = presets()["demo"].recipe
    words = ("training.steps=10", "model.mlp=false", "training.betas=0.9,0.95", "seeds=3")
    made = changed(recipe, words, "demo")
    assert (made.training.steps, made.model.mlp, made.seeds) == (10, False, (3,))
    assert made.training.betas == (0.9, 0.95)
    for epochs in ("500", "500,"):
        words = ("descent.stages=CWa", f"descent.epochs={epochs}")
        assert changed(NgramExperiment(), words, "it").descent.epochs == (500,)
    other = changed(recipe, ("task.length=9", "task.kind=khop"), "demo").task
    assert isinstance(other, KHop)
    assert other.length == 9
    for word, line in {
        "steps=1": "demo has no field 'steps': did you mean training.steps?",
        "zzz=1": "docs/fields.md lists all",
        "training.steps": "expected key=value, such as training.steps=1000",
        "model.layers=0": "greater than or equal to 1, got 0",
        "task.kind=nothing": "task",
    }.items():
        with pytest.raises(ConfigError, match=line):
            changed(recipe, (word,), "demo")
