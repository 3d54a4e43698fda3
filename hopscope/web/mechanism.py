"""The run of a language model's circuit for the page: what roles hold, the heads, and the proof."""

from collections.abc import Hashable
from typing import Any

from hopscope.configs import LmCircuit
from hopscope.web.questions import Ask
from hopscope.web.shown import ShownRun
from hopscope.web.tensors import packed

ROWS = "rows/"
"""Prefix of the files with measurements."""


class Traced(ShownRun):
    """The run of a language model's circuit."""

    def description(self) -> dict[str, Any]:
        recipe = self.folder.recipe_as(LmCircuit)
        return {
            "traced": {
                "model": recipe.model,
                "questions": recipe.prompts.label,
            },
        }

    @property
    def array_names(self) -> list[str]:
        return ["findings"] * self.folder.manifest.complete

    def key(self, name: str, _step: int | None) -> Hashable:
        return name, self.folder.hashes(ROWS)

    def measured(self, _name: str, _step: int | None, _ask: Ask) -> bytes:
        return packed({}, self.findings())

    def findings(self) -> dict[str, Any]:
        """Return the findings of a complete run, with each component of the circuit in words."""
        from hopscope.lm.findings import LmCircuitRun

        found = LmCircuitRun(self.folder).findings
        told = found.to_dict()
        circuit = found.circuit
        told["circuit"] = [
            {"name": component.name, "told": circuit.described(component)}
            for component in circuit.components
        ]
        return told
