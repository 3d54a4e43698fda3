"""Shares of a sweep, for jobs that know nothing of each other, such as those of a SLURM array.

Every job reads the same file and takes share K of N. The split depends on the set of recipes and
on N alone: not on their order in the file, on what is complete, or on who asks. Recipes that
differ in their seeds alone stay together in pieces of up to a fair share, so that a share can
still train them as fleets; pieces are dealt out, the costliest first, each to the share that has
the least, and among equals by their hash.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from hopscope.configs import Recipe
from hopscope.errors import ConfigError

MOST = 10_000
"""Shares of one sweep."""


@dataclass(frozen=True)
class Shard:
    """Share `number` of `of`; the first is 1."""

    number: int
    of: int

    @classmethod
    def read(cls, text: str) -> "Shard":
        """The share that a text K/N names."""
        match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text, re.ASCII)
        number, of = map(int, match.groups()) if match else (0, 0)
        if not 1 <= number <= of <= MOST:
            raise ConfigError(
                f"--shard is {text!r}; expected K/N with K from 1 to N, and N at most {MOST:,}"
            )
        return cls(number, of)

    def of_recipes(self, recipes: Sequence[Recipe]) -> tuple[Recipe, ...]:
        """The recipes of this share, in their order."""
        own = {recipe.digest() for recipe in split(recipes, self.of)[self.number - 1]}
        return tuple(recipe for recipe in recipes if recipe.digest() in own)


def split(recipes: Sequence[Recipe], shares: int) -> list[list[Recipe]]:
    """All recipes, dealt out to so many shares; some are empty if there are few recipes."""
    dealt: list[list[Recipe]] = [[] for _ in range(shares)]
    loads = [0] * shares
    for piece in sorted(_pieces(recipes, shares), key=lambda piece: (-_cost(piece), _mark(piece))):
        least = loads.index(min(loads))
        dealt[least] += piece
        loads[least] += _cost(piece)
    return dealt


def _pieces(recipes: Sequence[Recipe], shares: int) -> list[list[Recipe]]:
    """Recipes that are alike, in the order of their seeds, in pieces of up to a fair share."""
    groups = defaultdict(list)
    for recipe in recipes:
        groups[recipe.hash_without_seeds()].append(recipe)
    most = max(1, -(-len(recipes) // shares))
    found = []
    for group in groups.values():
        ordered = sorted(group, key=lambda recipe: recipe.seeds)
        found += [ordered[first : first + most] for first in range(0, len(ordered), most)]
    return found


def _cost(piece: Sequence[Recipe]) -> int:
    """Steps of all models: known before anything has run."""
    return sum(recipe.steps * len(recipe.seeds) for recipe in piece)


def _mark(piece: Sequence[Recipe]) -> str:
    return min(recipe.digest() for recipe in piece)
