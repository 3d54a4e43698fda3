"""A run of the n-gram experiment for the page; torch is imported when the run is opened."""

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from hopscope.configs import NgramExperiment
from hopscope.store.checkpoints import checkpoint_steps
from hopscope.web.curves import remembered_curves
from hopscope.web.questions import Ask
from hopscope.web.shown import ShownRun
from hopscope.web.tensors import packed

if TYPE_CHECKING:
    from hopscope.ngram.parameters import Course

SHOWN_SYMBOLS = 36
"""Least length of the sequence that the page shows first."""


class Ngram(ShownRun):
    """One model of an n-gram run."""

    @property
    def recipe(self) -> NgramExperiment:
        return self.folder.recipe_as(NgramExperiment)

    def description(self) -> dict[str, Any]:
        recipe = self.recipe
        return {
            "ngram": {
                **recipe.process.model_dump(mode="json"),
                **recipe.model.model_dump(mode="json"),
                "stages": [
                    {"trains": letters, "epochs": epochs}
                    for letters, epochs in recipe.descent.plan()
                ],
            },
            "seeds": list(recipe.seeds),
            "seed": self.seed,
            "member": self.folder.member(self.seed),
            "checkpoints": checkpoint_steps(self.folder),
        }

    @property
    def array_names(self) -> list[str]:
        return ["losses", "parameters"]

    def key(self, name: str, _step: int | None) -> Hashable:
        return name, self.folder.hashes("parameters/"), self.seed

    def kept(self, name: str) -> bytes | None:
        return remembered_curves(self.folder, self.memory) if name == "losses" else None

    def measured(self, _name: str, _step: int | None, _ask: Ask) -> bytes:
        from hopscope.ngram.run import NgramRun

        return parameters(self.recipe, self.seed, NgramRun(self.folder).course(self.seed))


def parameters(recipe: NgramExperiment, seed: int, course: "Course") -> bytes:
    """Return the parameters at every recorded epoch, as a file of arrays.

    It has the raw parameters, the quantities that the model computes from them (shares of sets,
    attention of heads), and the beginning of the first validation chain.
    """
    from hopscope.ngram.parameters import sets
    from hopscope.ngram.process import sample_chains

    chain = sample_chains(recipe.process, 1, seed, "validation").tokens[0, :-1]
    trained = {"c": course.c, "w": course.w, "a": course.a}
    read = {"shares": course.shares, "copied": course.attention}
    arrays = {name: array.astype(np.float32) for name, array in (trained | read).items()}
    start = chain[: max(SHOWN_SYMBOLS, recipe.model.window + 20)].astype(np.int32)
    about = {"sets": [list(heads) for heads in sets(recipe.model)]}
    return packed({"epochs": course.epochs, "sequence": start, **arrays}, about)
