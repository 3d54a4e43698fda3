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
    from hopscope.circuits.ablating import Ablations
    from hopscope.circuits.ablation import Change
    from hopscope.circuits.components import Estimate
    from hopscope.circuits.pattern import Head
    from hopscope.configs import Task
    from hopscope.study import RunStudy

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
    looks: uniform (everywhere; so does LAYER.HEAD alone), itself, previous, position (its mean
    attention on other examples); or mean or resample (ablation of what it brings); or paths,
    source>destination, such as "value 0>query,key 1>value 1", with all other rows uniform (or
    "…/itself"). Or LAYER.HEAD:ROLE=WHAT, e.g. 3.0:query=uniform: the rows of one role alone."""
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
    from hopscope.circuits import ablating
    from hopscope.cli.tables import print_rows

    check_files(chosen.out)
    examined.check_fits(chosen.examples)
    of_circuit = chosen.circuit or chosen.circuit_file is not None
    circuit = examined.circuit if of_circuit else None
    whole = "the circuit" if of_circuit else "the model"
    task = examined.task if chosen.order is None else examined.task.ordered(chosen.order)
    asked = _asked(chosen, examined, dict(circuit.ablation().changes) if circuit else {})

    def losses(task: "Task", changed: "Mapping[str, Mapping[Head, Change]]") -> "Ablations":
        return ablating.ablate(
            examined.model,
            task,
            changed,
            circuit,
            examples=chosen.examples,
            seed=chosen.sample,
        )

    found = losses(task, asked)
    named: dict[str, tuple[tuple[float, ...], Estimate | None]]
    named = {_named(whole, chosen.order): (found.model, None)}
    if chosen.order is not None:
        named = {whole: (losses(examined.task, {}).model, None)} | named
    named |= {row.changed: (row.losses, row.rise) for row in found.rows}
    rows = [
        {"changed": name, "loss": sum(hops) / len(hops)}
        | {f"hop_{hop}": loss for hop, loss in zip(task.asked_hops(), hops, strict=True)}
        | {"rise": None if rise is None else f"{rise.mean:.4f} ± {rise.mean - rise.low:.4f}"}
        for name, (hops, rise) in named.items()
    ]
    formats = dict.fromkeys(rows[0], ".4f") | {"changed": "", "rise": ""}
    print_rows(rows, formats, f"{examined.name}, {chosen.examples} examples", json=chosen.json)
    settings = {
        "run": examined.run.name,
        "step": examined.step,
        "seed": chosen.seed,
        "examples": chosen.examples,
        "sample": chosen.sample,
        "order": chosen.order,
        "of_the_circuit": of_circuit,
        "chance": found.chance,
    }
    losses_by_name = {name: list(hops) for name, (hops, _) in named.items()}
    told = {**settings, "losses": losses_by_name}
    write_numbers(told, chosen.out, teller(json_alone=chosen.json))
    return 0


def _named(whole: str, order: Order | None) -> str:
    return whole if order is None else f"{whole}, facts {FACTS[order]}"


def _asked(
    chosen: AblateArguments, examined: "RunStudy", base: "dict[Head, Change]"
) -> "dict[str, dict[Head, Change]]":
    """What is changed, by its name."""
    from hopscope.circuits import ablating

    if chosen.head:
        return ablating.asked_for(chosen.head, base)
    if chosen.order is not None:
        return {}
    config = examined.recipe.model
    return ablating.every_head(config.layers, config.heads, base)
