"""What a run is made from: a recipe. The name of a run is a hash of what its recipe changes.

Fields that are left at their default do not enter the hash, so that a field can be added and every
earlier run keeps its name. Therefore a default never changes its meaning: what behaves in another
way is another value.
"""

import hashlib
import json
from abc import abstractmethod
from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import AfterValidator, Field

from hopscope.configs.config import Config, Whole


def _each_once(seeds: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"seeds are {seeds}: each may appear once")
    return seeds


Seeds = Annotated[
    tuple[Annotated[Whole, Field(ge=0, lt=2**31)], ...],
    Field(min_length=1),
    AfterValidator(_each_once),
]


SHAPE = ("hops", "layers", "heads", "d_model")
"""The numbers that tables of runs show."""


class Recipe(Config):
    """What a run can be made from. The name of the run is a hash of the recipe."""

    if TYPE_CHECKING:  # each recipe declares its fields in an order of its own
        kind: str  # which kind of run it makes: its name in `hopscope.configs.kinds.KINDS`
        seeds: tuple[int, ...]

    @property
    @abstractmethod
    def task_kind(self) -> str:
        """What is learned or asked, in a word: the kind of the task."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """Length of the whole run, in units."""

    @property
    def unit(self) -> str:
        """The word for what a run is counted in, in the singular: step, epoch or question."""
        return "step"

    @property
    def chances(self) -> tuple[float, ...]:
        """Each loss at chance; empty where that is not known."""
        return ()

    @property
    def chance(self) -> float | None:
        """The loss at chance, the mean over its losses; None where that is not known."""
        return fmean(self.chances) if self.chances else None

    def asked_hops(self) -> tuple[int, ...]:
        """The hop that each of its losses belongs to, from 1; (1,) where there are no hops."""
        return (1,)

    def loss_names(self, count: int) -> list[str]:
        """The name of each column of its losses."""
        return ["loss"] * count

    def shape(self) -> dict[str, int | None]:
        """The numbers that tables of runs show; None for what it does not have."""
        return dict.fromkeys(SHAPE)

    def warnings(self) -> list[str]:
        """Settings that take no effect since the run is too short for them, a line each."""
        return []

    @abstractmethod
    def title(self) -> str:
        """The readable part of the run's name."""

    def digest(self) -> str:
        """The SHA-256 of what this recipe changes."""
        return hashlib.sha256(self.canonical_json().encode()).hexdigest()

    def hash_without_seeds(self) -> str:
        """The SHA-256 of all but the seeds: equal for recipes that differ only in their seeds."""
        fields = self.non_defaults()
        fields.pop("seeds", None)
        return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()

    def run_name(self) -> str:
        """The name of the run folder: a readable title, and ten digits of the digest."""
        return f"{self.title()}-{self.digest()[:10]}"

    def written(self) -> bytes:
        """The recipe as a file, all its fields in it; `read_recipe` reads it again."""
        return (self.model_dump_json() + "\n").encode()

    def to_file(self) -> str:
        """The same for people, who may change it: a field on each line."""
        return json.dumps(json.loads(self.written()), indent=2, ensure_ascii=False) + "\n"


R = TypeVar("R", bound=Recipe)


def of_seeds(recipe: R) -> list[R]:
    """The recipe once for each of its seeds."""
    return [recipe.replace(seeds=(seed,)) for seed in recipe.seeds]


def differing(recipes: Sequence[Recipe]) -> dict[str, tuple[Any, ...]]:
    """The fields in which recipes differ, with the value that each has; None where it has no such
    field.
    """
    named = [recipe.named() for recipe in recipes]
    fields = dict.fromkeys(field for each in named for field in each)
    values = {field: tuple(each.get(field) for each in named) for field in fields}
    return {field: own for field, own in values.items() if any(one != own[0] for one in own)}
