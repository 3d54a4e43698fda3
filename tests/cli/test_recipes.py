"""Recipes leave as files and come back: of every preset, every kind of run, every kind of task."""

import json
from pathlib import Path

import pytest

from hopscope.cli.arguments import parse
from hopscope.cli.main import run as hopscope
from hopscope.cli.training import arguments_for
from hopscope.configs import (
    MQAR,
    ConditionalRetrieval,
    Experiment,
    Induction,
    KHop,
    LlmBench,
    LlmMechanism,
    MarkovExperiment,
    Prompts,
    Recipe,
    Retrieval,
    Task,
    Tracing,
    read_recipe,
)
from hopscope.configs.kinds import KINDS
from hopscope.errors import ConfigError, StoreUnwritable
from hopscope.papers import presets
from hopscope.store import Store
from hopscope.tasks.kinds import BY_KIND

TASKS: list[Task] = [Retrieval(hops=2), Induction(), ConditionalRetrieval(), KHop(), MQAR()]
RECIPES: list[Recipe] = [
    *(Experiment(task=task, seeds=(3, 5)) for task in TASKS),
    MarkovExperiment(seeds=(1, 2)),
    LlmBench(model="mine.gguf", prompts=(Prompts(formulation="equations", hops=2),), questions=7),
    LlmMechanism(
        model="mine.gguf",
        prompts=Prompts(formulation="equations", hops=2),
        elsewhere=Prompts(formulation="lives-with", hops=2),
        tracing=Tracing(searched=2, every=4),
    ),
]


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOPSCOPE_STORE", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_task_and_every_kind_is_tried() -> None:
    assert {task.kind for task in TASKS} == {*BY_KIND}
    assert {recipe.kind for recipe in RECIPES} == {*KINDS}


def flags_of(recipe: Recipe) -> Recipe:
    """What `hopscope train FILE.json` makes of a file's recipe, without any flag."""
    form = arguments_for(recipe)
    again: Recipe = parse(form, "train", [], default=form(recipe)).recipe
    return again


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.task_kind)
def test_show_config_is_what_train_takes(
    recipe: Recipe, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = Store().create(recipe).name
    assert hopscope(["show", name, "--config"]) == 0
    (root / "mine.json").write_text(capsys.readouterr().out)
    again = read_recipe((root / "mine.json").read_text())
    assert again == recipe
    assert flags_of(again).run_name() == name


@pytest.mark.parametrize("name", presets())
def test_presets_are_written_as_recipes(name: str, root: Path) -> None:
    assert hopscope(["presets", name, "--out", "sub/mine.json"]) == 0
    again = read_recipe((root / "sub/mine.json").read_text())
    assert again == presets()[name].recipe
    assert flags_of(again).run_name() == presets()[name].recipe.run_name()


def test_a_file_is_for_people(root: Path) -> None:
    hopscope(["presets", "demo", "--out", "mine.json"])
    text = (root / "mine.json").read_text()
    assert '\n    "hops": 2,\n' in text
    fields = json.loads(text)
    assert next(iter(fields)) == "kind"
    fields["task"]["hops"] = 3
    again = read_recipe(json.dumps(fields))
    assert isinstance(again, Experiment)
    assert again.task.chosen_hops() == 3


@pytest.mark.parametrize(
    ("words", "error", "text"),
    [
        (["--out", "x.json"], ConfigError, "--out writes one preset: name it"),
        (["demo", "--out", "x.toml"], ConfigError, "expected a name that ends in .json"),
        (["nope", "--out", "x.json"], ConfigError, "unknown preset 'nope'"),
        (["demo", "--out", "file/x.json"], StoreUnwritable, "cannot write file/x.json"),
    ],
)
def test_mistakes_are_one_line(
    words: list[str], error: type[Exception], text: str, root: Path
) -> None:
    (root / "file").write_text("")
    with pytest.raises(error, match=text):
        hopscope(["presets", *words])
    assert not (root / "x.json").exists()
