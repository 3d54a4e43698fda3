"""Two circuits side by side: which steps both take, and which components they have in common."""

from dataclasses import dataclass
from typing import Any

from hopscope.circuits import Circuit
from hopscope.circuits.components import Component
from hopscope.circuits.pattern import Head
from hopscope.facts import Role


@dataclass(frozen=True)
class Step:
    """One role looks at another: the heads that do so in the first circuit, and in the second."""

    source: Role
    destination: Role
    first: tuple[Head, ...]
    second: tuple[Head, ...]

    @property
    def common(self) -> bool:
        """Do both circuits take it, by whatever heads?"""
        return bool(self.first and self.second)

    def __str__(self) -> str:
        return f"{self.source} → {self.destination}"


@dataclass(frozen=True)
class Circuits:
    """What two circuits have in common, and what only one of them has.

    A step is a source and its destination, by whatever head. A component is the same in both only
    if the same heads do the same.
    """

    steps: tuple[Step, ...]
    common: tuple[str, ...]
    """Components of both: their heads, and what they do."""
    first: tuple[str, ...]
    """Components of the first circuit alone."""
    second: tuple[str, ...]
    """Components of the second circuit alone."""

    @classmethod
    def of(cls, first: Circuit, second: Circuit) -> "Circuits":
        """Compare two circuits: their steps, and the components of both or of one alone."""
        one, other = first.steps, second.steps
        steps = (
            Step(*ends, tuple(one.get(ends, ())), tuple(other.get(ends, ())))
            for ends in dict.fromkeys((*one, *other))
        )
        components, others = _components(first), _components(second)
        return cls(
            tuple(steps),
            tuple(each for each in components if each in others),
            tuple(each for each in components if each not in others),
            tuple(each for each in others if each not in components),
        )

    def components(self, names: tuple[str, str]) -> list[tuple[str, str]]:
        """Every component after the name of its circuit, or after `both`."""
        whose = zip(("both", *names), (self.common, self.first, self.second), strict=True)
        return [(name, each) for name, components in whose for each in components]

    def to_dict(self) -> dict[str, Any]:
        """The comparison as dictionaries and lists, ready for JSON."""
        return {
            "steps": [
                {
                    "destination": str(step.destination),
                    "source": str(step.source),
                    "first": [f"{layer}.{head}" for layer, head in step.first],
                    "second": [f"{layer}.{head}" for layer, head in step.second],
                }
                for step in self.steps
            ],
            "components": {
                "common": list(self.common),
                "first": list(self.first),
                "second": list(self.second),
            },
        }


def _components(circuit: Circuit) -> list[str]:
    """Every component in words: its heads, and what it does, without the weights of a mixture
    (these differ from model to model).
    """
    return [f"{each.name}  {_words(each)}" for each in circuit.components]


def _words(component: Component) -> str:
    sources = " + ".join(sorted(map(str, component.sources)))
    return f"{sources} → {', '.join(map(str, component.destinations))}"
