"""Test a hypothesis about what a head does.

The hypothesis: in head 0.1 every value looks at the position before it. It is written as a target,
which replaces the target of the head's rows; the loss shows how good it is.
"""

from dataclasses import replace

import hopscope
from hopscope.circuits import Ablation, Ablator, Pattern, adapter_of, examples_of, target
from hopscope.circuits.pattern import PREVIOUS, UNIFORM, Target
from hopscope.circuits.tables import tables_of
from hopscope.facts import Role
from hopscope.study import RunStudy

VALUES = (Role("value", 0), Role("value", 1))


def doing(study: RunStudy, look: Target) -> Pattern:
    """The pattern of head 0.1 in which values have this target, and other rows the circuit's."""
    kept = study.circuit.pattern(0, 1)
    others = [(role, its) for role, its in kept.targets if role not in VALUES]
    return Pattern((*others, *((role, look) for role in VALUES)), kept.rest)


def main() -> None:
    study = hopscope.load("gallery/demo")
    circuit = dict(study.circuit.ablation().changes)
    hypotheses = {
        "as the circuit says": None,
        "the position before": PREVIOUS,
        "the key of the first pair": target("own", Role("key", 0)),
        "nothing in particular": UNIFORM,
    }
    variants = [
        Ablation.of(circuit if look is None else {**circuit, (0, 1): doing(study, look)})
        for look in hypotheses.values()
    ]
    examples = replace(examples_of(study.task, 256), tables=tables_of(study.circuit))
    ablator = Ablator(adapter_of(study.model), examples)
    for name, losses in zip(hypotheses, ablator.losses(variants).mean(1).tolist(), strict=True):
        print(f"{name:26} loss of each hop {[round(loss, 3) for loss in losses]}")


if __name__ == "__main__":
    main()
