"""`hopscope ablate`: losses with the attention of heads replaced."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from hopscope.cli.arguments import JsonArguments
from hopscope.cli.output import note, say
from hopscope.cli.subject import FoundArguments
from hopscope.store.files import write_bytes
from hopscope.store.writable import check_files

if TYPE_CHECKING:
    from hopscope.circuits.ablation import Change, Head


@dataclass(frozen=True)
class AblateArguments(FoundArguments, JsonArguments):
    """Losses with heads changed; without --head, every head in turn."""

    head: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = field(default=())
    """LAYER.HEAD=WHAT, e.g. 3.0=uniform; may be given several times. WHAT is where the head
    looks: uniform (everywhere), itself, previous, position (the model's average there); or mean or
    resample (mean and resample ablation of what it carries); or paths, reader<source, such as
    "query<value 0,value 1<key 1", with the rest of the rows uniform (or "…/itself"). Or
    LAYER.HEAD:READER=WHAT, e.g. 3.0:query=uniform: the rows of one role alone."""
    examples: int = 256
    """Examples to measure on."""
    circuit: bool = False
    """Change heads of the discovered circuit instead of the model as it is (as --circuit-file
    does)."""
    sample: int = 0
    """Which examples: another number draws others."""
    out: Path | None = None
    """Also write losses and all settings to this file, as JSON."""


def ablate(chosen: AblateArguments) -> int:
    examined = chosen.study()
    from hopscope.circuits import Ablation, Ablator, exam_of, subject_of
    from hopscope.circuits.changes import changes_of
    from hopscope.cli.tables import print_rows

    check_files(*filter(None, [chosen.out]))
    examined.check_fits(chosen.examples)
    subject = subject_of(examined.model)
    ablator = Ablator(subject, exam_of(examined.task, chosen.examples, chosen.sample))
    of_circuit = chosen.circuit or chosen.circuit_file is not None
    base = dict(examined.circuit.ablation().changes) if of_circuit else {}
    asked = (
        {" ".join(chosen.head): changes_of(chosen.head, base)}
        if chosen.head
        else _every_head(subject.layers, subject.heads, base)
    )
    for changes in asked.values():
        ablator.check_paths(changes)
    names = ["the circuit" if of_circuit else "the model", *asked]
    variants = [base, *asked.values()]
    found = ablator.losses([Ablation.of(changes) for changes in variants]).mean(1).tolist()
    losses = dict(zip(names, found, strict=True))
    rows = [
        {"changed": name, "loss": sum(hops) / len(hops)}
        | {f"hop_{hop}": loss for hop, loss in enumerate(hops, 1)}
        for name, hops in losses.items()
    ]
    formats = dict.fromkeys(rows[0], ".4f") | {"changed": ""}
    print_rows(rows, formats, f"{examined.name}, {chosen.examples} examples", json=chosen.json)
    if chosen.out:
        settings = {
            "run": examined.run.name,
            "step": examined.step,
            "seed": chosen.seed,
            "examples": chosen.examples,
            "sample": chosen.sample,
            "of_the_circuit": of_circuit,
            "guess": ablator.exam.guess,
        }
        write_bytes(chosen.out, json.dumps({**settings, "losses": losses}).encode())
        (note if chosen.json else say)(f"numbers: {chosen.out}")
    return 0


def _every_head(
    layers: int, heads: int, base: "dict[Head, Change]"
) -> "dict[str, dict[Head, Change]]":
    """Every head in turn, doing nothing in three ways."""
    from hopscope.circuits.mechanism import ITSELF, PREVIOUS, UNIFORM, Mechanism

    ways = {"uniform": UNIFORM, "itself": ITSELF, "previous": PREVIOUS}
    return {
        f"{layer}.{head}={name}": {**base, (layer, head): Mechanism(rest=rest)}
        for layer in range(layers)
        for head in range(heads)
        for name, rest in ways.items()
    }
