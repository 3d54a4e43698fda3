"""`NgramRun`: a run of the n-gram experiment, its models and recorded parameters."""

from dataclasses import dataclass

import numpy as np

from hopscope.configs import NgramExperiment
from hopscope.ngram.parameters import Course, initial, numbers, sets
from hopscope.runs.view import PlainRun
from hopscope.store.checkpoints import chosen_step
from hopscope.store.metrics import parameter_series


@dataclass(frozen=True, repr=False)
class NgramRun(PlainRun):
    """One training of the n-gram experiment on disk: its recipe, parameters and losses."""

    @property
    def recipe(self) -> NgramExperiment:
        """The recipe of the run."""
        return self.folder.recipe_as(NgramExperiment)

    def state(self, seed: int, epoch: int | None = None) -> dict[str, np.ndarray]:
        """All parameters of one seed's model at the epoch of a checkpoint (default: the last)."""
        from hopscope.runs.checkpoint import weights_at  # torch

        weights = weights_at(self.folder, chosen_step(self.folder, epoch))
        number = self.folder.member(seed)
        return {name: value[number].numpy() for name, value in weights.items()}

    def course(self, seed: int) -> Course:
        """The parameters of one seed's model at every recorded epoch."""
        self.folder.member(seed)
        model, series = self.recipe.model, parameter_series(self.folder, seed)
        names = list(numbers(model, initial(model).named()))
        if missing := set(names) - set(series):
            raise self.folder.damaged(f"the parameters of {self.name} lack {min(missing)}")
        count = len(sets(model))
        table = np.stack([series[name] for name in names], axis=1)
        w = table[:, count:-1].reshape(-1, model.heads, model.window)
        return Course(table[:, :count], w, table[:, -1], series["step"].astype(np.int32))
