"""A circuit on the way to its final form: three states of the model, and units that may go."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hopscope.circuits.ablation import Head
from hopscope.circuits.mechanism import Aim, Mechanism
from hopscope.circuits.parts import paths_of
from hopscope.circuits.state import Row, Sources, State
from hopscope.facts import Role
from hopscope.theory import Path

Step = tuple[Role, Role]
"""Who reads whom, in whichever layer and head: reader, source."""


@dataclass(frozen=True)
class Unit:
    """A removable unit of a draft: one row that forms paths, or rows of one head that form none and
    look at the same. A unit is kept or removed whole.
    """

    head: Head
    rows: tuple[Row, ...]
    paths: tuple[Path, ...] = ()
    named: bool = False
    """True if the rows form no paths, and yet follow something that the task names: a relation."""

    @property
    def heads(self) -> tuple[Head, ...]:
        """The heads whose rows it has: more than one where they do the same step together."""
        return tuple(dict.fromkeys(head for head, _ in self.rows))


@dataclass(frozen=True)
class Conditions:
    """The three states of the model in which units are judged."""

    ideal: State
    """Every head follows its mechanism."""
    untouched: State
    """The model: all rows keep its attention."""

    @property
    def own(self) -> State:
        """The circuit's rows compute their attention themselves; everything else is ablated."""
        return self.ideal.computed

    def without(self, unit: Unit, sources: Sources) -> "Conditions":
        """The same states with one unit removed from each."""
        return Conditions(
            ideal=self.ideal.doing_nothing(unit.rows),
            untouched=self.untouched.looking_elsewhere(unit.rows, sources),
        )


@dataclass(frozen=True)
class Draft:
    """An unfinished circuit: its units, and the states of the model in which they are judged."""

    states: Conditions
    units: tuple[Unit, ...]
    averaged: frozenset[Head] = frozenset()
    """Heads without work that were given their average attention back."""

    def removed(self, unit: Unit) -> "Draft":
        """The draft without a unit; the model itself stays as it is."""
        rest = tuple(other for other in self.units if other != unit)
        ideal = self.states.ideal.doing_nothing(unit.rows)
        return replace(self, states=replace(self.states, ideal=ideal), units=rest)

    def locates(self, unit: Unit) -> bool:
        """True if the unit can tell later heads where to look: a path in a later layer reads at
        the unit's positions, or from them. What the unit itself looks at does not matter: a head
        that attends evenly, or to itself, adds something by which others may find their places.
        """
        if any(other.named and other.head[0] > unit.head[0] for other in self.units):
            return True  # relations hold at every position
        readers = {role for _, role in unit.rows}
        return any(
            path.layer > unit.head[0] and readers & {path.reader, path.source}
            for other in self.units
            for path in other.paths
        )

    @property
    def shared_steps(self) -> dict[Step, list[Unit]]:
        """Steps (who reads whom) that units of more than one head do."""
        steps: dict[Step, list[Unit]] = {}
        for unit in self.units:
            for path in unit.paths:
                steps.setdefault((path.reader, path.source), []).append(unit)
        return {step: units for step, units in sorted(steps.items()) if len(units) > 1}


def drafted(states: Conditions, path_share: float) -> Draft:
    """All rows in units: those that form paths one by one; of each head, those others together
    that look at the same.
    """
    units: list[Unit] = []
    for head, mechanism in states.ideal.mechanisms.items():
        paths = paths_of(head, mechanism, path_share)
        readers = sorted({path.reader for path in paths})
        for reader in readers:
            mine = tuple(path for path in paths if path.reader == reader)
            units.append(Unit(head, ((head, reader),), mine))
        units += _pathless(head, mechanism, readers)
    return Draft(states, tuple(units))


def _pathless(head: Head, mechanism: Mechanism, readers: Sequence[Role]) -> list[Unit]:
    """The other rows: those with the same aim together."""
    rows: dict[Aim, list[Row]] = {}
    for role, its in mechanism.aims:
        if role not in readers:
            rows.setdefault(its, []).append((head, role))
    return [Unit(head, tuple(its)) for its in rows.values()]
