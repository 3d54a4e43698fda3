"""A hypothesis of what a head does, held against the model.

Somebody says: by head 0.1 every value simply looks at the position before it. The hypothesis is an
aim; it takes the place of the head's rows, and the loss says how well it does.
"""

import hopscope
from hopscope.circuits import Ablation, Ablator, Mechanism, adapter_of, aim, exam_of
from hopscope.circuits.ablation import Change
from hopscope.circuits.mechanism import PREVIOUS, UNIFORM, Aim
from hopscope.facts import Role
from hopscope.study import Study

VALUES = (Role("value", 0), Role("value", 1))


def doing(study: Study, look: Aim) -> Change:
    """Head 0.1, whose values look there and whose other rows are as the circuit has them."""
    kept = study.circuit.mechanism(0, 1)
    others = [(reader, its) for reader, its in kept.aims if reader not in VALUES]
    return Mechanism((*others, *((reader, look) for reader in VALUES)), kept.rest)


def main() -> None:
    study = hopscope.load("gallery/demo")
    circuit = dict(study.circuit.ablation().changes)
    hypotheses = {
        "as the circuit says": None,
        "the position before": PREVIOUS,
        "the key of the first pair": aim("own", Role("key", 0)),
        "nothing in particular": UNIFORM,
    }
    variants = [
        Ablation.of(circuit if look is None else {**circuit, (0, 1): doing(study, look)})
        for look in hypotheses.values()
    ]
    ablator = Ablator(adapter_of(study.model), exam_of(study.task, 256))
    for name, losses in zip(hypotheses, ablator.losses(variants).mean(1).tolist(), strict=True):
        print(f"{name:26} loss of each hop {[round(loss, 3) for loss in losses]}")


if __name__ == "__main__":
    main()
