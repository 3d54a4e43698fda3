"""Shards of a sweep, for jobs that do not communicate, such as those of a SLURM array.

Every job reads the same file and takes shard K of N. Packs of runs (`hopscope.workers.fleets`) are
assigned in order of falling cost, each to the shard with the lowest cost so far. So the split
depends only on the set of recipes, the pack and N, not on the order of recipes or on complete runs.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hopscope.configs import Recipe
from hopscope.errors import ConfigError
from hopscope.workers.fleets import Pack, packs

MOST = 10_000
"""Largest number of shards of one sweep."""


@dataclass(frozen=True)
class Shard:
    """Shard `number` of `of`; the first is 1."""

    number: int
    of: int

    @classmethod
    def read(cls, text: str) -> "Shard":
        """Parse a text K/N; raises ConfigError for any other text."""
        match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text, re.ASCII)
        number, of = map(int, match.groups()) if match else (0, 0)
        if not 1 <= number <= of <= MOST:
            raise ConfigError(
                f"--shard is {text!r}; expected K/N with K from 1 to N, and N at most {MOST:,}"
            )
        return cls(number, of)

    def of_recipes(self, recipes: Sequence[Recipe], pack: int) -> tuple[Recipe, ...]:
        """The recipes of this shard, in their order."""
        own = {recipe.digest() for recipe in split(recipes, self.of, pack)[self.number - 1]}
        return tuple(recipe for recipe in recipes if recipe.digest() in own)


def split(recipes: Sequence[Recipe], shards: int, pack: int) -> list[list[Recipe]]:
    """Assign all recipes to shards; some shards are empty if there are few packs."""
    dealt: list[list[Recipe]] = [[] for _ in range(shards)]
    loads = [0] * shards
    for each in sorted(packs(recipes, pack), key=lambda each: (-_cost(each), each[0].digest())):
        least = loads.index(min(loads))
        dealt[least] += each
        loads[least] += _cost(each)
    return dealt


def _cost(pack: Pack) -> int:
    """The steps of all models."""
    return sum(recipe.steps * len(recipe.seeds) for recipe in pack)
