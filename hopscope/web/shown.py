"""What the page shows, a run or a study, and what can be asked of it; no torch here."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hopscope.errors import ConfigError
from hopscope.store import RunFolder
from hopscope.web.memory import Memory
from hopscope.web.questions import AblateQuestion, Ask, CostsQuestion, ExampleQuestion


class Shown:
    """Anything on the page: its description, arrays by name, and answers as far as it has them."""

    memory: Memory

    @property
    def kind(self) -> str:
        """What it is, in words: `a run of kind lm`."""
        raise NotImplementedError

    def description(self) -> dict[str, Any]:
        """What the page shows before anything is asked."""
        raise NotImplementedError

    @property
    def array_names(self) -> list[str]:
        """The arrays that can be asked for."""
        return []

    def key(self, name: str, step: int | None) -> Hashable:
        """What tells these arrays from others, and from what they were before."""
        raise NotImplementedError

    def kept(self, _: str) -> bytes | None:
        """Arrays that travel with the run, or are read at once; None for all others."""
        return None

    def measured(self, name: str, step: int | None, ask: Ask) -> bytes:
        """Arrays that have to be computed."""
        raise NotImplementedError

    def at_hand(self, name: str, step: int | None = None) -> bytes | None:
        """Arrays that are kept or remembered; None if they have to be computed."""
        if name not in self.array_names:
            has = ", ".join(self.array_names) or "none yet"
            raise ConfigError(f"{self.kind} has no arrays {name[:40]!r}; this one has {has}")
        if step is not None and name != "contents":
            raise ConfigError(f"{name!r} is not of one step; expected contents")
        found = self.kept(name) if step is None else None
        return self.memory.known(self.key(name, step)) if found is None else found

    def arrays(self, name: str, ask: Ask, step: int | None = None) -> bytes:
        """Arrays as a file of safetensors: of all checkpoints, or (contents) of one."""
        found = self.at_hand(name, step)
        if found is not None:
            return found
        ask()
        return self.memory.get(self.key(name, step), lambda: self.measured(name, step, ask), len)

    def example(self, _: ExampleQuestion) -> bytes:
        """One example: tokens, answers and attention."""
        raise self._without("example")

    def ablate(self, _: AblateQuestion, __: Ask) -> dict[str, Any]:
        """Losses as the model is, and with changes."""
        raise self._without("ablate")

    def over_time(self, _: AblateQuestion, __: Ask) -> Iterator[dict[str, Any]]:
        """The same at every checkpoint, one after the other."""
        raise self._without("over time")

    def costs(self, _: CostsQuestion, __: Ask) -> Iterator[dict[str, Any]]:
        """Losses with every head and every path changed in turn."""
        raise self._without("costs")

    def _without(self, what: str) -> ConfigError:
        return ConfigError(f"{self.kind} has no {what}")


@dataclass(frozen=True)
class ShownRun(Shown):
    """A run, and of a fleet the model with this seed (unset: the first)."""

    folder: RunFolder
    memory: Memory
    asked_seed: int | None = None

    @property
    def kind(self) -> str:
        return f"a run of kind {self.folder.recipe.kind}"

    @cached_property
    def seed(self) -> int:
        return self.folder.recipe.seeds[self.folder.member(self.asked_seed)]
