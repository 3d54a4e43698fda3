"""Readable names of runs and models, without hashes."""

from hopscope.configs import Experiment, Recipe
from hopscope.papers import presets
from hopscope.plots.symbols import counted, seed_text
from hopscope.store import RunFolder, Store


def run_title(folder: RunFolder) -> str:
    """Return a run's title: its tags, its name in the gallery or its preset, and what it trains."""
    tags = () if folder.gallery else Store(folder.path.parent).tags().get(folder.path.name, ())
    preset = next((p.name for p in presets().values() if p.recipe == folder.recipe), "")
    called = folder.name if folder.gallery else ", ".join(tags) or preset
    return ": ".join(filter(None, (called, described(folder.recipe))))


def described(recipe: Recipe) -> str:
    """Return what a run trains in a few words; for other kinds, the recipe's title."""
    if not isinstance(recipe, Experiment):
        return recipe.title()
    task, model = recipe.task, recipe.model
    hops = counted(max(task.asked_hops()), "hop")
    shape = f"{counted(model.layers, 'layer')} × {counted(model.heads, 'head')}"
    return f"{task.kind}, {hops}, {shape}, {seed_text(recipe.seeds)}"
