"""What the page can ask of a run that took a language model apart: where which symbol is held, the
heads that bring it, and how they were proved.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hopscope.configs import LmCircuit
from hopscope.errors import ConfigError
from hopscope.store import RunFolder
from hopscope.web.memory import Memory
from hopscope.web.tensors import packed

ROWS = "rows/"
"""What the names of files begin with that hold what was measured."""


@dataclass(frozen=True)
class Traced:
    """A mechanism of a language model."""

    folder: RunFolder
    memory: Memory
    asked_seed: int | None = None

    def description(self) -> dict[str, Any]:
        recipe = self.folder.recipe_as(LmCircuit)
        return {
            "traced": {
                "model": recipe.model,
                "questions": recipe.prompts.label,
            },
            "arrays": ["findings"] * self.folder.manifest.complete,
        }

    def at_hand(self, name: str) -> bytes | None:
        """The findings, if they are remembered."""
        if name != "findings" or not self.folder.manifest.complete:
            has = "findings" if self.folder.manifest.complete else "none before all is measured"
            raise ConfigError(f"{self.folder.name} has no arrays {name[:40]!r}; it has {has}")
        found: bytes | None = self.memory.known(self._key())
        return found

    def arrays(self, name: str, _: Callable[[], bool]) -> bytes:
        """The findings: torch is imported to read them."""
        found = self.at_hand(name)
        return self.memory.get(self._key(), self._packed, len) if found is None else found

    def _key(self) -> tuple[object, ...]:
        return "findings", self.folder.hashes(ROWS)

    def _packed(self) -> bytes:
        found = self.findings()
        return packed({"layers": np.array(found["layers"], np.int32)}, found)

    def findings(self) -> dict[str, Any]:
        """What the rows of a complete run come to, with each component of the circuit in words."""
        from hopscope.lm.findings import LmCircuitRun

        found = LmCircuitRun(self.folder).findings
        told = found.to_dict()
        circuit = found.circuit
        told["circuit"] = [
            {"name": component.name, "told": circuit.described(component)}
            for component in circuit.components
        ]
        return told
