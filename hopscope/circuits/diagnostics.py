"""Optional checks of a circuit: which heads could replace a component (backup heads), and what is
gained by restoring single heads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from hopscope.circuits.ablation import Ablation, Row
from hopscope.circuits.ablator import Ablator
from hopscope.circuits.adapters import AnyModel, adapter_of
from hopscope.circuits.circuit import Circuit, check_circuit
from hopscope.circuits.components import Component, Estimate
from hopscope.circuits.examples import Questions, check_interval, examples_of, questions_of
from hopscope.circuits.pattern import UNTOUCHED, Head, Target
from hopscope.circuits.proposals import proposed_targets
from hopscope.circuits.tables import tables_of
from hopscope.configs import Config, Discovery

EXAMPLES = 128


class Backup(Config):
    """A head that can replace a component (the field's backup head): the circuit leaves out its
    rows from the component's destination roles.
    """

    head: Head
    instead_of: Component
    recovered: Estimate
    """What the circuit recovers with this head in the component's place (computed attention)."""


class Restored(Config):
    """A head that the circuit leaves out, with its own attention restored."""

    head: Head
    gained: Estimate
    """How much more is recovered with this head restored and all other attention prescribed."""


class Diagnostics(Config):
    """The results of `diagnose`."""

    backups: tuple[Backup, ...]
    restored: tuple[Restored, ...]

    def __str__(self) -> str:
        lines = [
            f"could stand in: {each.head[0]}.{each.head[1]} for {each.instead_of.name} "
            f"{each.instead_of.target} ({each.recovered.mean:.1%} recovered)"
            for each in self.backups
        ]
        lines += [
            f"restoring {each.head[0]}.{each.head[1]} recovers {each.gained} more"
            for each in self.restored
            if round(each.gained.low, 3) > 0  # as it is printed
        ]
        return "\n".join(lines) or "no head could stand in, and restoring none recovers more"


def diagnose(
    model: AnyModel,
    circuit: Circuit,
    task: Questions | None = None,
    examples: int = EXAMPLES,
    seed: int = 0,
) -> Diagnostics:
    """Backup heads and restored heads of a circuit, on a task (default: the circuit's)."""
    check_circuit(circuit)
    check_interval(examples)
    questions = questions_of(circuit, task)
    adapter = adapter_of(model)
    circuit.check_model(adapter.digest())
    drawn = replace(examples_of(questions, examples, seed, "diagnosis"), tables=tables_of(circuit))
    state = circuit.ablation()
    measure = _Measure(Ablator(adapter, drawn), state)
    return Diagnostics(
        backups=_backups(measure, circuit),
        restored=_restored(measure),
    )


class _Measure:
    """Measures what states of a model recover, compared with a circuit's state."""

    def __init__(self, ablator: Ablator, state: Ablation) -> None:
        self.ablator, self.state = ablator, state
        nothing = state.without(state.live)
        self.losses = self._losses([Ablation(), nothing, state])

    def _losses(self, states: list[Ablation]) -> np.ndarray:
        found = self.ablator.losses(states).mean(-1)
        losses: np.ndarray = found.double().cpu().numpy()
        return losses

    def recovered(
        self, states: list[Ablation], than: Literal["nothing", "circuit"] = "nothing"
    ) -> list[Estimate | None]:
        """The share of the gap that each state recovers, minus what `than` recovers."""
        if not states:
            return []
        model, nothing, circuit = self.losses
        start = nothing if than == "nothing" else circuit
        return [Estimate.ratio(start - its, nothing - model) for its in self._losses(states)]


def _backups(measure: _Measure, circuit: Circuit) -> tuple[Backup, ...]:
    """For every component, heads whose left-out rows look at its target and recover enough in its
    place.
    """
    ablator = measure.ablator
    looks = proposed_targets(ablator.examples, ablator.adapter, Discovery().noticed)
    found = []
    for component in circuit.components:
        if component.written != "rule":
            continue
        heads = _same_target(looks, measure.state, component)
        less = measure.state.without(component.rows)
        states = [
            less.looking_at([(head, role) for role in component.destinations], component.target)
            for head in heads
        ]
        shares = measure.recovered([state.computed for state in states])
        found += [
            Backup(head=head, instead_of=component, recovered=share)
            for head, share in zip(heads, shares, strict=True)
            if share and share.mean >= circuit.enough
        ]
    return tuple(found)


def _same_target(
    looks: Mapping[Row, Sequence[Target]], state: Ablation, component: Component
) -> list[Head]:
    """The heads whose rows from the component's destination roles look at its target, though the
    circuit leaves these rows out.
    """
    live = {*state.live}
    rows = {head: [(head, role) for role in component.destinations] for head, _ in state.changes}
    return [
        head
        for head, its in rows.items()
        if not live & {*its} and all(component.target in looks.get(row, []) for row in its)
    ]


def _restored(measure: _Measure) -> tuple[Restored, ...]:
    changes, live = dict(measure.state.changes), {head for head, _ in measure.state.live}
    idle = [head for head in changes if head not in live]
    states = [Ablation.of({**changes, head: UNTOUCHED}) for head in idle]
    gains = measure.recovered(states, "circuit")
    return tuple(Restored(head=h, gained=g) for h, g in zip(idle, gains, strict=True) if g)
