"""What people call a run or a model: never by a hash."""

from collections.abc import Callable, Mapping
from typing import Any

from hopscope.configs import Experiment, Recipe
from hopscope.papers import presets
from hopscope.report.symbols import counted, seeds_told
from hopscope.store import RunFolder, Store
from hopscope.study.run import RunStudy


def run_title(folder: RunFolder) -> str:
    """A run by its tags, its place in the gallery or its preset, and what was trained."""
    tags = () if folder.gallery else Store(folder.path.parent).tags().get(folder.path.name, ())
    preset = next((p.name for p in presets().values() if p.recipe == folder.recipe), "")
    called = folder.name if folder.gallery else ", ".join(tags) or preset
    return ": ".join(filter(None, (called, described(folder.recipe))))


def model_title(study: RunStudy) -> str:
    """One model of a run: the run, of a fleet the seed, and the step if it is not the last."""
    seed = "" if study.member is None else f", seed {study.seed}"
    return f"{run_title(study.run.folder)}{seed}{'' if study.last else f', step {study.step:,}'}"


def described(recipe: Recipe) -> str:
    """What a run trains or asks, in a few words; of kinds that have none, the title of the run."""
    told = IN_WORDS.get(recipe.kind)
    return told(recipe) if told else recipe.title()


def _trained(experiment: Experiment) -> str:
    task, model = experiment.task, experiment.model
    hops = counted(max(task.asked_hops()), "hop")
    shape = f"{counted(model.layers, 'layer')} × {counted(model.heads, 'head')}"
    return f"{task.kind}, {hops}, {shape}, {seeds_told(experiment.seeds)}"


IN_WORDS: Mapping[str, Callable[[Any], str]] = {"facts": _trained}
"""For a kind of recipe, what says it in a few words."""
