"""What people call a run or a model: never by a hash."""

from hopscope.configs import Experiment, Recipe
from hopscope.papers import presets
from hopscope.plots.symbols import counted, seed_text
from hopscope.store import RunFolder, Store


def run_title(folder: RunFolder) -> str:
    """A run by its tags, its place in the gallery or its preset, and what was trained."""
    tags = () if folder.gallery else Store(folder.path.parent).tags().get(folder.path.name, ())
    preset = next((p.name for p in presets().values() if p.recipe == folder.recipe), "")
    called = folder.name if folder.gallery else ", ".join(tags) or preset
    return ": ".join(filter(None, (called, described(folder.recipe))))


def described(recipe: Recipe) -> str:
    """What a run trains, in a few words; of other kinds, the title of the run."""
    if not isinstance(recipe, Experiment):
        return recipe.title()
    task, model = recipe.task, recipe.model
    hops = counted(max(task.asked_hops()), "hop")
    shape = f"{counted(model.layers, 'layer')} × {counted(model.heads, 'head')}"
    return f"{task.kind}, {hops}, {shape}, {seed_text(recipe.seeds)}"
