"""Recipes leave as files and come back: of every preset, every kind of run, every kind of task."""

import re
from pathlib import Path

from calling import Said

from hopscope.cli.arguments import parse
from hopscope.cli.training import arguments_for
from hopscope.configs import (
    Experiment,
    LlmBench,
    LlmMechanism,
    NgramExperiment,
    Prompts,
    Recipe,
    Tracing,
    read_recipe,
)
from hopscope.configs.kinds import KINDS
from hopscope.papers import presets
from hopscope.store import Store
from hopscope.tasks.samplers import SAMPLERS

PROMPTS = Prompts(formulation="equations", hops=2)
RECIPES: list[Recipe] = [
    *(Experiment(task={"kind": kind}, seeds=(3, 5)) for kind in SAMPLERS),  # type: ignore[arg-type]
    NgramExperiment(seeds=(1, 2)),
    LlmBench(model="mine.gguf", prompts=(PROMPTS,), questions=7),
    LlmMechanism(
        model="mine.gguf",
        prompts=PROMPTS,
        elsewhere=Prompts(formulation="lives-with", hops=2),
        tracing=Tracing(searched=2, every=4),
    ),
]


def flags_of(recipe: Recipe) -> Recipe:
    """What `hopscope train FILE.json` makes of a file's recipe, without any flag."""
    form = arguments_for(recipe)
    again: Recipe = parse(form, "train", [], default=form(recipe)).recipe
    return again


def test_show_config_is_what_train_takes(root: Path, said: Said) -> None:
    assert {recipe.kind for recipe in RECIPES} == {*KINDS}
    for recipe in RECIPES:
        name = Store().create(recipe).name
        again = read_recipe(said("show", name, "--config"))
        assert again == recipe
        assert flags_of(again).run_name() == name


def test_presets_are_written_as_recipes(root: Path, said: Said) -> None:
    listed = said("presets")
    for name, preset in presets().items():
        assert name in listed
        said("presets", name, "--out", "sub/mine.json")
        again = read_recipe((root / "sub/mine.json").read_text())
        assert again == preset.recipe
        assert flags_of(again).run_name() == preset.recipe.run_name()
    with_sources = said("presets", "musat/transformer-a")
    assert re.search(r"training\.steps +24000 +§8\.1: 24k", with_sources)
