"""How far a job is, from what its runs have committed: whoever trains them, and wherever."""

from pathlib import Path

from hopscope.configs import Experiment, read_recipe
from hopscope.errors import StoreError
from hopscope.store.manifest import read_manifest
from hopscope.workers.job import Job
from hopscope.workers.packing import together


def steps_of(job: Job) -> int:
    """Committed steps of all models of a job, trained as one or by themselves."""
    recipes, root = [read_recipe(text) for text in job.recipes], Path(job.store)
    alone = [_committed(root / recipe.run_name()) for recipe in recipes]
    alike = [recipe for recipe in recipes if isinstance(recipe, Experiment)]
    if len(recipes) == 1 or not alike:
        return sum(alone)
    fleet = _committed(root / together(alike).run_name())
    return sum(max(steps, fleet) for steps in alone)


def _committed(path: Path) -> int:
    """The steps that a run has committed; none, if it is not there or cannot be read."""
    try:
        return read_manifest(path).step
    except StoreError:
        return 0
