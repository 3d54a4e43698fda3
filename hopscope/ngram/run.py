"""A run of the n-gram experiment: its models, and how their parameters went."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float32, Int32

from hopscope.configs import InductionModel, NgramExperiment
from hopscope.display import Displayed
from hopscope.errors import ConfigError, RunDamaged
from hopscope.ngram.parameters import Parameters, initial, set_name, sets
from hopscope.store import RunFolder, parameters
from hopscope.store.checkpoints import check_step, checkpoint_steps
from hopscope.store.metrics import losses
from hopscope.store.query import Question, metrics_of


def numbers(model: InductionModel, state: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Every trained number by its name: `c{1,2}`, `w1[2]` (head 1, lag 2), `a`."""
    found = {
        f"c{set_name(heads)}": float(c) for heads, c in zip(sets(model), state["c"], strict=True)
    }
    for (head, lag), weight in np.ndenumerate(state["w"]):
        found[f"w{head + 1}[{lag + 1}]"] = float(weight)
    return {**found, "a": float(state["a"])}


@dataclass(frozen=True)
class Course:
    """The parameters of one seed's model during training."""

    epochs: Int32[np.ndarray, "epoch"]
    c: Float[np.ndarray, "epoch set"]
    w: Float[np.ndarray, "epoch head lag"]
    a: Float[np.ndarray, "epoch"]

    @property
    def shares(self) -> Float[np.ndarray, "epoch set"]:
        """Each set's part in the sum of squared coefficients."""
        shares: np.ndarray = self.c**2 / (self.c**2).sum(axis=1, keepdims=True)
        return shares

    def at(self, number: int) -> Parameters:
        """The parameters at `epochs[number]`."""
        return Parameters(self.c[number], self.w[number], np.array(self.a[number]))


@dataclass(frozen=True)
class NgramRun(Displayed):
    """One training of the n-gram experiment on disk: its recipe, parameters and losses."""

    folder: RunFolder

    def __repr__(self) -> str:
        return f"NgramRun({self.name!r})"

    @property
    def name(self) -> str:
        """The name of the run in its store."""
        return self.folder.name

    @property
    def recipe(self) -> NgramExperiment:
        """The recipe that the run is made from."""
        return self.folder.recipe_as(NgramExperiment)

    @property
    def checkpoints(self) -> list[int]:
        """The epochs of which everything trained is kept."""
        return checkpoint_steps(self.folder)

    def state(self, seed: int, epoch: int | None = None) -> dict[str, np.ndarray]:
        """Everything trained of one seed's model, after a checkpoint's epoch; unset: the last."""
        from hopscope.runs.checkpoint import weights_at  # torch

        if not self.checkpoints:
            raise RunDamaged(f"{self.name} has no checkpoint: `hopscope resume {self.name}`")
        last = self.checkpoints[-1]
        check_step(last if epoch is None else epoch, self.checkpoints, self.name)
        self._check_seed(seed)
        weights = weights_at(self.folder, last if epoch is None else epoch)
        number = self.recipe.seeds.index(seed)
        return {name: value[number].numpy() for name, value in weights.items()}

    def course(self, seed: int) -> Course:
        """The parameters of one seed's model at every epoch that was recorded."""
        self._check_seed(seed)
        model, series = self.recipe.model, parameters.values(self.folder, seed)
        names = list(numbers(model, initial(model).named()))
        if set(names) - set(series):
            raise RunDamaged(
                f"the parameters of {self.name} lack {min(set(names) - set(series))}: restore them "
                f"from a copy, or `hopscope rm {self.name}` and train again"
            )
        count = len(sets(model))
        table = np.stack([series[name] for name in names], axis=1)
        w = table[:, count:-1].reshape(-1, model.heads, model.window)
        return Course(series["step"].astype(np.int32), table[:, :count], w, table[:, -1])

    def losses(
        self, split: str = "train"
    ) -> tuple[Int32[np.ndarray, "step"], Float32[np.ndarray, "step model hop"]]:
        """Recorded epochs, and every seed's loss at each (on an axis of one hop)."""
        return losses(self.folder, split)

    def _check_seed(self, seed: int) -> None:
        if seed not in self.recipe.seeds:
            known = ", ".join(map(str, self.recipe.seeds))
            raise ConfigError(f"seed is {seed!r}; {self.name} has the seeds {known}")

    def metrics(self) -> Question:
        """All its losses: `.df()`, `.arrow()` or `.rows()` of split, step, seed, hop, loss."""
        return metrics_of(self.folder)
