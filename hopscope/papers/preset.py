"""A preset: a recipe with a name, and the source of each of its values in a paper."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from hopscope.configs import Recipe

R = TypeVar("R", bound=Recipe)

OURS = "ours"
"""The source of a value that is not from a paper."""


@dataclass(frozen=True)
class Preset(Generic[R]):
    """A named recipe with sources."""

    name: str
    summary: str
    recipe: R
    sources: dict[str, str]
    """Field (as in `model.layers`) → section of the paper, or the reason for our choice."""

    def fields(self) -> list[tuple[str, object, str]]:
        """Return every field with its value and source, in the order of the configs."""
        named = self.recipe.named().items()
        return [(field, value, self.sources.get(field, OURS)) for field, value in named]
