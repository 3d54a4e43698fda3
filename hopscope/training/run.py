"""`Run`: a trained experiment on disk."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hopscope.configs import Experiment
from hopscope.errors import ConfigError, ModelError
from hopscope.runs.view import PlainRun
from hopscope.shapes import Float32
from hopscope.store.checkpoints import checkpoint_name, chosen_step
from hopscope.store.metrics import final_losses, learned_steps

if TYPE_CHECKING:
    from hopscope.models import Transformer


@dataclass(frozen=True, repr=False)
class Run(PlainRun):
    """A trained experiment on disk: recipe, models and losses."""

    @property
    def recipe(self) -> Experiment:
        """The recipe of the run."""
        return self.folder.recipe_as(Experiment)

    @cached_property
    def model(self) -> "Transformer":
        """The model, or the fleet as stacked models, with the last weights."""
        return self.model_at(chosen_step(self.folder))

    def model_at(self, step: int) -> "Transformer":
        """The model (or fleet) at a step that has a checkpoint."""
        from hopscope.models import model_from  # torch
        from hopscope.runs.checkpoint import weights_at

        chosen_step(self.folder, step)
        weights, source = weights_at(self.folder, step), f"{self.name}/{checkpoint_name(step)}"
        seeds = self.recipe.seeds if len(self.recipe.seeds) > 1 else ()
        try:
            interface = self.recipe.task.interface()
            return model_from(weights, self.recipe.model, interface, source, seeds)
        except ModelError as error:
            raise self.folder.damaged(str(error)) from error

    def learned(self, below: float | None = None) -> list[list[int | None]]:
        """The step at which each model learned each hop, or None (`hopscope.milestones.learned`).

        A hop counts as learned below the loss `below` (default: two thirds of its loss at chance).
        """
        return learned_steps(self.folder, below)

    def final_losses(self) -> Float32[np.ndarray, "model hop"]:
        """The final validation losses, means over the last 100 steps. Raises ConfigError if the run
        is not complete or has no losses.
        """
        steps, values = self.losses("validation")
        if not self.folder.manifest.complete:
            raise ConfigError(
                f"{self.name} is not complete: step {self.folder.manifest.step:,} of "
                f"{self.recipe.steps:,}; `{self.folder.command('resume')}` goes on"
            )
        if not len(steps):
            raise ConfigError(f"{self.name} has no losses: nothing was trained")
        if steps[-1] < self.recipe.steps:
            raise self.folder.damaged(f"the metrics of {self.name} lack its last steps")
        return final_losses(steps, values)
