"""What the page can ask of a run that took a language model apart: where which symbol is held, the
heads that bring it, and how they were proved.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hopscope.configs import LlmMechanism
from hopscope.store import RunFolder
from hopscope.web.memory import Memory

ROWS = "rows/"
"""What the names of files begin with that hold what was measured."""
SIZE = 2**20
"""Bytes that the findings of a run take, at most."""


@dataclass(frozen=True)
class Traced:
    """A mechanism of a language model."""

    folder: RunFolder
    memory: Memory
    asked_seed: int | None = None

    def description(self) -> dict[str, Any]:
        name, recipe = self.folder.name, self.folder.recipe_as(LlmMechanism)
        return {
            "traced": {
                "model": recipe.model,
                "questions": recipe.prompts.label,
                "findings": self.findings() if self.folder.manifest.complete else None,
            },
            "panes": ["mechanism"],
            "arrays": [],
            "command": {"mechanism": f"hopscope show {name}"},
            "python": {"mechanism": f'import hopscope\nhopscope.load("{name}").findings.verdict()'},
        }

    def findings(self) -> dict[str, Any]:
        """What the rows of a complete run come to, with each part of the circuit in words."""
        rows = tuple(self.folder.manifest.files[name].sha256 for name in self.folder.files(ROWS))
        return self.memory.get(("findings", rows), self._findings, lambda _: SIZE)

    def _findings(self) -> dict[str, Any]:
        from hopscope.llm.mechanism import MechanismRun
        from hopscope.web.described import circuit_of

        found = MechanismRun(self.folder).findings
        told = found.to_dict()
        parts: list[Mapping[str, Any]] = circuit_of(found.circuit)["parts"]
        told["circuit"] = [{"name": part["name"], "told": part["told"]} for part in parts]
        return told
