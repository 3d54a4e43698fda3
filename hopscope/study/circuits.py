"""Comparison of two circuits: the steps of each, and the components they have in common."""

from dataclasses import dataclass
from typing import Any

from hopscope.circuits import Circuit
from hopscope.circuits.components import Component
from hopscope.circuits.pattern import Head
from hopscope.display import Displayed
from hopscope.facts import Role


@dataclass(frozen=True)
class Step:
    """A step from a source role to a destination role, and its heads in each circuit."""

    source: Role
    destination: Role
    first: tuple[Head, ...]
    second: tuple[Head, ...]

    @property
    def common(self) -> bool:
        """True if both circuits take this step, with any heads."""
        return bool(self.first and self.second)

    def __str__(self) -> str:
        return f"{self.source} → {self.destination}"


@dataclass(frozen=True, repr=False)
class Circuits(Displayed):
    """What two circuits have in common, and what only one of them has.

    A step is a source and its destination, whatever the head. A component is common only if the
    same heads do the same in both circuits.
    """

    steps: tuple[Step, ...]
    common: tuple[str, ...]
    """Components in both circuits: their heads, and what they do."""
    first: tuple[str, ...]
    """Components in the first circuit only."""
    second: tuple[str, ...]
    """Components in the second circuit only."""

    @classmethod
    def of(cls, first: Circuit, second: Circuit) -> "Circuits":
        """Compare two circuits: their steps, and the components in both or in one only."""
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

    def __repr__(self) -> str:
        return f"Circuits({self.in_common('the first', 'the second')})"

    def in_common(self, first: str, second: str) -> str:
        """What they have in common, in numbers."""
        return (
            f"{sum(step.common for step in self.steps)} of {len(self.steps)} steps are in both "
            f"circuits; components: {len(self.common)} in both, {len(self.first)} in {first} "
            f"alone, {len(self.second)} in {second} alone"
        )

    def components(self, names: tuple[str, str]) -> list[tuple[str, str]]:
        """Pairs of a circuit's name (or "both") and a component, for every component."""
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
    """Every component in words: its heads, and what it does. The weights of a mixture are left out,
    since they differ from model to model.
    """
    return [f"{each.name}  {_words(each)}" for each in circuit.components]


def _words(component: Component) -> str:
    sources = " + ".join(sorted(map(str, component.sources)))
    return f"{sources} → {', '.join(map(str, component.destinations))}"
