"""Base classes of what the page shows: a run or a study. This module does not import torch."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hopscope.errors import ConfigError
from hopscope.memory import Memory
from hopscope.store import RunFolder
from hopscope.web.questions import AblateQuestion, Ask, CostsQuestion, ExampleQuestion


class Shown:
    """A run or a study on the page: its description, its arrays by name, and its answers."""

    memory: Memory

    @property
    def kind(self) -> str:
        """The kind in words, such as `a run of kind lm`."""
        raise NotImplementedError

    def description(self) -> dict[str, Any]:
        """Return the data that the page needs first."""
        raise NotImplementedError

    @property
    def array_names(self) -> list[str]:
        """The names of all arrays."""
        return []

    def key(self, name: str, step: int | None) -> Hashable:
        """Return the cache key of an array; it changes with the run."""
        raise NotImplementedError

    def kept(self, _: str) -> bytes | None:
        """Return arrays that are stored with the run or quick to read; None for all others."""
        return None

    def measured(self, name: str, step: int | None, ask: Ask) -> bytes:
        """Compute arrays."""
        raise NotImplementedError

    def at_hand(self, name: str, step: int | None = None) -> bytes | None:
        """Return arrays that are stored or cached; None if they must be computed."""
        if name not in self.array_names:
            has = ", ".join(self.array_names) or "none yet"
            raise ConfigError(f"{self.kind} has no arrays {name[:40]!r}; this one has {has}")
        if step is not None and name != "contents":
            raise ConfigError(f"{name!r} is not of one step; expected contents")
        found = self.kept(name) if step is None else None
        return self.memory.known(self.key(name, step)) if found is None else found

    def arrays(self, name: str, step: int | None = None, ask: Ask = lambda: None) -> bytes:
        """Return arrays as a file of safetensors: of all checkpoints, or (contents) of one."""
        found = self.at_hand(name, step)
        if found is not None:
            return found
        ask()
        return self.memory.get(self.key(name, step), lambda: self.measured(name, step, ask), len)

    def example(self, _: ExampleQuestion) -> bytes:
        """Return one example: tokens, answers and attention."""
        raise self._without("example")

    def ablate(self, _: AblateQuestion, __: Ask) -> dict[str, Any]:
        """Return the losses without and with changes."""
        raise self._without("ablate")

    def over_time(self, _: AblateQuestion, __: Ask) -> Iterator[dict[str, Any]]:
        """Yield the losses without and with changes at every checkpoint."""
        raise self._without("over time")

    def costs(self, _: CostsQuestion, __: Ask) -> Iterator[dict[str, Any]]:
        """Yield the losses with every head and every path changed in turn."""
        raise self._without("costs")

    def _without(self, what: str) -> ConfigError:
        return ConfigError(f"{self.kind} has no {what}")


@dataclass(frozen=True)
class ShownRun(Shown):
    """A run; for a fleet, its model with seed `asked_seed` (None: the first)."""

    folder: RunFolder
    memory: Memory
    asked_seed: int | None = None

    @property
    def kind(self) -> str:
        return f"a run of kind {self.folder.recipe.kind}"

    @cached_property
    def seed(self) -> int:
        return self.folder.recipe.seeds[self.folder.member(self.asked_seed)]
