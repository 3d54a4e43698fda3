"""Two circuits side by side: which steps both take, and which parts they have in common."""

from dataclasses import dataclass
from typing import Any

from hopscope.circuits import Circuit
from hopscope.circuits.pattern import Head
from hopscope.circuits.parts import Part
from hopscope.facts import Role


@dataclass(frozen=True)
class Step:
    """One role reads another: the heads that do so in the first circuit, and in the second."""

    reader: Role
    source: Role
    first: tuple[Head, ...]
    second: tuple[Head, ...]

    @property
    def common(self) -> bool:
        """Do both circuits take it, by whatever heads?"""
        return bool(self.first and self.second)

    def __str__(self) -> str:
        return f"{self.reader} ← {self.source}"


@dataclass(frozen=True)
class Circuits:
    """What two circuits have in common, and what only one of them has.

    A step is who reads whom, by whatever head. A part is the same in both only if the same head
    does the same.
    """

    steps: tuple[Step, ...]
    common: tuple[str, ...]
    """Parts of both: their head, and what it does."""
    first: tuple[str, ...]
    """Parts of the first circuit alone."""
    second: tuple[str, ...]
    """Parts of the second circuit alone."""

    @classmethod
    def of(cls, first: Circuit, second: Circuit) -> "Circuits":
        """Compare two circuits: their steps, and the parts that both have or one alone."""
        one, other = _steps(first), _steps(second)
        steps = (
            Step(*ends, tuple(one.get(ends, ())), tuple(other.get(ends, ())))
            for ends in dict.fromkeys((*one, *other))
        )
        parts, others = _parts(first), _parts(second)
        return cls(
            tuple(steps),
            tuple(part for part in parts if part in others),
            tuple(part for part in parts if part not in others),
            tuple(part for part in others if part not in parts),
        )

    def parts(self, names: tuple[str, str]) -> list[tuple[str, str]]:
        """Every part behind the name of its circuit, or behind `both`."""
        whose = zip(("both", *names), (self.common, self.first, self.second), strict=True)
        return [(name, part) for name, parts in whose for part in parts]

    def to_dict(self) -> dict[str, Any]:
        """The comparison as dictionaries and lists, ready for JSON."""
        return {
            "steps": [
                {
                    "reader": str(step.reader),
                    "source": str(step.source),
                    "first": [f"{layer}.{head}" for layer, head in step.first],
                    "second": [f"{layer}.{head}" for layer, head in step.second],
                }
                for step in self.steps
            ],
            "parts": {
                "common": list(self.common),
                "first": list(self.first),
                "second": list(self.second),
            },
        }


def _steps(circuit: Circuit) -> dict[tuple[Role, Role], list[Head]]:
    """The heads that take each step, layer by layer."""
    found: dict[tuple[Role, Role], list[Head]] = {}
    for path in circuit.paths:
        found.setdefault((path.reader, path.source), []).append((path.layer, path.head))
    return found


def _parts(circuit: Circuit) -> list[str]:
    """Every part in words: its head, and what it does."""
    return [f"{part.layer}.{part.head}  {_told(circuit, part)}" for part in circuit.parts]


def _told(circuit: Circuit, part: Part) -> str:
    """Who reads what, without the weights of a mixture: these differ from model to model."""
    mechanism = circuit.mechanism(*part.at)
    readers: dict[str, list[str]] = {}
    for role in part.readers:
        targets = " + ".join(sorted(map(str, mechanism.of(role).targets)))
        readers.setdefault(targets, []).append(str(role))
    return "; ".join(f"{', '.join(of)} ← {targets}" for targets, of in readers.items())
