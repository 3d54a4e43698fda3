"""`Recipe`: all settings of a run. The name of a run is a hash of the fields not at their default.

Fields at their default are not part of the hash, so that all earlier runs keep their names if a
field is added. Therefore the meaning of a default must never change: a new behaviour needs a new
value.
"""

import hashlib
import json
from abc import abstractmethod
from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

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


Split = Literal["train", "validation"]
SPLITS: tuple[Split, ...] = ("train", "validation")
SHAPE = ("hops", "layers", "heads", "d_model")
"""The numbers that tables of runs show."""


class Recipe(Config):
    """The settings of a run. The name of the run is a hash of its recipe."""

    if TYPE_CHECKING:  # each recipe declares its fields in its own order
        kind: str  # the kind of run: its name in `hopscope.configs.kinds.KINDS`
        seeds: tuple[int, ...]

    @property
    @abstractmethod
    def task_kind(self) -> str:
        """The kind of the task, in a word."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """The length of the whole run, in units of `unit`."""

    @property
    def unit(self) -> str:
        """What a step of the run is called, in the singular: step, epoch or question."""
        return "step"

    @property
    def chances(self) -> tuple[float, ...]:
        """Each loss at chance; empty if not known."""
        return ()

    @property
    def chance(self) -> float | None:
        """The mean loss at chance; None if not known."""
        return fmean(self.chances) if self.chances else None

    def asked_hops(self) -> tuple[int, ...]:
        """The hop, from 1, that each loss belongs to; (1,) without hops."""
        return (1,)

    def loss_names(self, count: int) -> list[str]:
        """The names of the columns of losses."""
        return ["loss"] * count

    def shape(self) -> dict[str, int | None]:
        """The numbers that tables of runs show; None for numbers that do not apply."""
        return dict.fromkeys(SHAPE)

    def warnings(self) -> list[str]:
        """A line for each setting that has no effect, since the run is too short for it."""
        return []

    @abstractmethod
    def title(self) -> str:
        """The readable part of the run's name."""

    def digest(self) -> str:
        """The SHA-256 of the recipe's canonical JSON."""
        return hashlib.sha256(self.canonical_json().encode()).hexdigest()

    def hash_without_seeds(self) -> str:
        """A SHA-256 without the seeds, equal for recipes that differ only in their seeds."""
        fields = self.non_defaults()
        fields.pop("seeds", None)
        return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()

    def run_name(self) -> str:
        """The name of the run folder: a readable title, and ten digits of the digest."""
        return f"{self.title()}-{self.digest()[:10]}"

    def written(self) -> bytes:
        """The recipe as JSON, with all fields; `read_recipe` reads it."""
        return (self.model_dump_json() + "\n").encode()

    def to_file(self) -> str:
        """The recipe as JSON that users can edit, with a field on each line."""
        return json.dumps(json.loads(self.written()), indent=2, ensure_ascii=False) + "\n"


R = TypeVar("R", bound=Recipe)


def of_seeds(recipe: R) -> list[R]:
    """A recipe for each of the seeds."""
    return [recipe.replace(seeds=(seed,)) for seed in recipe.seeds]


def differing(recipes: Sequence[Recipe]) -> dict[str, tuple[Any, ...]]:
    """The fields in which recipes differ, with the value in each recipe (None if it has no such
    field).
    """
    named = [recipe.named() for recipe in recipes]
    fields = dict.fromkeys(field for each in named for field in each)
    values = {field: tuple(each.get(field) for each in named) for field in fields}
    return {field: own for field, own in values.items() if any(one != own[0] for one in own)}
