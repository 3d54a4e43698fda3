"""`hopscope ablate`: losses with the attention of heads replaced, or with facts elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from hopscope.cli.arguments import JsonArguments
from hopscope.cli.drawing import write_numbers
from hopscope.cli.output import teller
from hopscope.cli.subject import FoundArguments
from hopscope.configs.tasks import Order
from hopscope.store.files import check_files

if TYPE_CHECKING:
    from hopscope.circuits import Ablator
    from hopscope.circuits.ablation import Change
    from hopscope.circuits.pattern import Head
    from hopscope.configs import Task
    from hopscope.study import Study

FACTS: Mapping[Order, str] = {
    "backward": "last hop first",
    "forward": "first hop first",
    "shuffled": "shuffled",
}
"""Orders of facts, in words."""


@dataclass(frozen=True)
class AblateArguments(FoundArguments, JsonArguments):
    """Losses with heads changed, or with facts elsewhere; with neither, every head in turn."""

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
    order: Order | None = None
    """Ask with the facts in this order, and not in that of training: does the model know them by
    what they say, or by where they stand? The first line is still with those of training."""
    sample: int = 0
    """Which examples: another number draws others."""
    out: Path | None = None
    """Also write losses and all settings to this file, as JSON."""


def ablate(chosen: AblateArguments) -> int:
    examined = chosen.study()
    from hopscope.cli.tables import print_rows

    check_files(chosen.out)
    examined.check_fits(chosen.examples)
    of_circuit = chosen.circuit or chosen.circuit_file is not None
    base = dict(examined.circuit.ablation().changes) if of_circuit else {}
    whole = "the circuit" if of_circuit else "the model"
    task = examined.task
    if chosen.order is not None:
        task = task.ordered(chosen.order)
    ablator = _ablator(examined, task, chosen)
    asked = _asked(chosen, ablator, base)
    losses = _losses(ablator, {_named(whole, chosen.order): base, **asked})
    if chosen.order is not None:
        losses = _losses(_ablator(examined, examined.task, chosen), {whole: base}) | losses
    asked_hops = task.asked_hops()
    rows = [
        {"changed": name, "loss": sum(hops) / len(hops)}
        | {f"hop_{hop}": loss for hop, loss in zip(asked_hops, hops, strict=True)}
        for name, hops in losses.items()
    ]
    formats = dict.fromkeys(rows[0], ".4f") | {"changed": ""}
    print_rows(rows, formats, f"{examined.name}, {chosen.examples} examples", json=chosen.json)
    settings = {
        "run": examined.run.name,
        "step": examined.step,
        "seed": chosen.seed,
        "examples": chosen.examples,
        "sample": chosen.sample,
        "order": chosen.order,
        "of_the_circuit": of_circuit,
        "guess": ablator.exam.guess,
    }
    write_numbers({**settings, "losses": losses}, chosen.out, teller(json_alone=chosen.json))
    return 0


def _named(whole: str, order: Order | None) -> str:
    return whole if order is None else f"{whole}, facts {FACTS[order]}"


def _ablator(examined: "Study", task: "Task", chosen: AblateArguments) -> "Ablator":
    from hopscope.circuits import Ablator, adapter_of, exam_of

    exam = exam_of(task, chosen.examples, chosen.sample)
    return Ablator(adapter_of(examined.model), exam)


def _asked(
    chosen: AblateArguments, ablator: "Ablator", base: "dict[Head, Change]"
) -> "dict[str, dict[Head, Change]]":
    """What is changed, by its name."""
    from hopscope.circuits.changes import changes_of

    if chosen.head:
        asked = {" ".join(chosen.head): changes_of(chosen.head, base)}
    elif chosen.order is None:
        asked = _every_head(ablator.adapter.layers, ablator.adapter.heads, base)
    else:
        asked = {}
    for changes in asked.values():
        ablator.check_paths(changes)
    return asked


def _losses(ablator: "Ablator", changed: "dict[str, dict[Head, Change]]") -> dict[str, list[float]]:
    """The loss of every hop with each of these changes."""
    from hopscope.circuits import Ablation

    found = ablator.losses([Ablation.of(changes) for changes in changed.values()]).mean(1)
    return dict(zip(changed, found.tolist(), strict=True))


def _every_head(
    layers: int, heads: int, base: "dict[Head, Change]"
) -> "dict[str, dict[Head, Change]]":
    """Every head in turn, doing nothing in three ways."""
    from hopscope.circuits.pattern import ITSELF, PREVIOUS, UNIFORM, Pattern

    ways = {"uniform": UNIFORM, "itself": ITSELF, "previous": PREVIOUS}
    return {
        f"{layer}.{head}={name}": {**base, (layer, head): Pattern(rest=rest)}
        for layer in range(layers)
        for head in range(heads)
        for name, rest in ways.items()
    }
