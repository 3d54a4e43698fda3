"""A preset: a recipe with a name, and where in a paper each of its values comes from."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from hopscope.configs import Recipe

R = TypeVar("R", bound=Recipe)

OURS = "ours"
"""The source of a value that no paper gives."""


@dataclass(frozen=True)
class Preset(Generic[R]):
    """A recipe that can be asked for by name."""

    name: str
    summary: str
    recipe: R
    sources: dict[str, str]
    """Field (as in `model.layers`) → section of the paper, or the reason for our choice."""

    def fields(self) -> list[tuple[str, object, str]]:
        """Every field with its value and source, in the order of the configs."""
        named = self.recipe.named().items()
        return [(field, value, self.sources.get(field, OURS)) for field, value in named]
