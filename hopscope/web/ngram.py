"""What the page can ask of a run of the n-gram experiment. torch is imported when it is opened."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hopscope.configs import NgramExperiment
from hopscope.errors import ConfigError
from hopscope.store import RunFolder
from hopscope.store.checkpoints import checkpoint_steps
from hopscope.web.curves import remembered_curves
from hopscope.web.memory import Memory
from hopscope.web.tensors import packed

if TYPE_CHECKING:
    from hopscope.ngram.parameters import Course

ARRAYS = ["losses", "parameters"]
SHOWN = 36
"""Symbols of the sequence that the page begins with."""


@dataclass(frozen=True)
class Ngram:
    """One model of an n-gram run."""

    folder: RunFolder
    memory: Memory
    asked_seed: int | None = None

    @property
    def recipe(self) -> NgramExperiment:
        return self.folder.recipe_as(NgramExperiment)

    @cached_property
    def seed(self) -> int:
        return self.recipe.seeds[self.folder.member(self.asked_seed)]

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
            "checkpoints": checkpoint_steps(self.folder),
            "arrays": ARRAYS,
        }

    def at_hand(self, name: str) -> bytes | None:
        """Arrays that need no computing."""
        if name not in ARRAYS:
            raise ConfigError(
                f"{self.folder.name} has no arrays {name[:40]!r}; it has {', '.join(ARRAYS)}"
            )
        return remembered_curves(self.folder, self.memory) if name == "losses" else None

    def arrays(self, name: str, _: Callable[[], bool]) -> bytes:
        found = self.at_hand(name)
        if found is not None:
            return found
        return parameters(self.recipe, self.seed, self.course)

    @cached_property
    def course(self) -> "Course":
        """The parameters at every epoch that was recorded, read or remembered."""
        from hopscope.ngram.run import NgramRun

        return self.memory.get(
            ("course", self.folder.hashes("parameters/"), self.seed),
            lambda: NgramRun(self.folder).course(self.seed),
            lambda course: course.c.nbytes + course.w.nbytes + course.a.nbytes,
        )


def parameters(recipe: NgramExperiment, seed: int, course: "Course") -> bytes:
    """Everything trained at every epoch that was recorded, as it is and as the model reads it
    (shares of sets, what heads copy), and the begin of the first validation chain.
    """
    from hopscope.ngram.parameters import sets, softmax
    from hopscope.ngram.process import sample_chains

    chain = sample_chains(recipe.process, 1, seed, "validation").tokens[0, :-1]
    trained = {"c": course.c, "w": course.w, "a": course.a}
    read = {"shares": course.shares, "copied": softmax(course.w)}
    arrays = {name: array.astype(np.float32) for name, array in (trained | read).items()}
    start = chain[: max(SHOWN, recipe.model.window + 20)].astype(np.int32)
    about = {"sets": [list(heads) for heads in sets(recipe.model)]}
    return packed({"epochs": course.epochs, "sequence": start, **arrays}, about)
