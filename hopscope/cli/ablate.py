"""`hopscope ablate`: losses with the attention of heads replaced."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from hopscope.cli.arguments import parse
from hopscope.cli.subject import Examined, ModelArguments
from hopscope.errors import ConfigError
from hopscope.facts import parse_role
from hopscope.store.files import write_bytes

if TYPE_CHECKING:
    from hopscope.circuits.ablation import Change, Head


@dataclass(frozen=True)
class AblateArguments(ModelArguments):
    """Losses with heads changed; without --head, every head in turn."""

    head: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = field(default=())
    """LAYER.HEAD=WHAT, e.g. 3.0=uniform; may be given several times. WHAT is uniform, identity,
    previous, position, mean or resample (of what the head carries), or paths such as
    "query>value 0,value 1>key 1", the rest of the rows uniform (or "…/identity")."""
    examples: int = 256
    """Examples to measure on."""
    circuit: bool = False
    """Change heads of the discovered circuit instead of the model as it is."""
    sample: int = 0
    """Which examples: another number draws others."""
    data: Path | None = None
    """Also write losses and all settings, as JSON."""


def ablate(arguments: Sequence[str]) -> int:
    chosen = parse(AblateArguments, "ablate", arguments)
    examined = Examined(chosen)
    from hopscope.circuits import Ablation, Bench, probe_of, subject_of
    from hopscope.circuits.mechanism import ITSELF, PREVIOUS, UNIFORM, Mechanism

    bench = Bench(
        subject_of(examined.model), probe_of(examined.task, chosen.examples, chosen.sample)
    )
    base: dict[Head, Change] = {}
    if chosen.circuit:
        base = dict(examined.circuit().ablation().changes)
    if chosen.head:
        asked = {" ".join(chosen.head): dict(map(parse_change, chosen.head))}
    else:
        subject = bench.subject
        asked = {
            f"{layer}.{head}={name}": {(layer, head): Mechanism(rest=rest)}
            for layer in range(subject.layers)
            for head in range(subject.heads)
            for name, rest in (("uniform", UNIFORM), ("identity", ITSELF), ("previous", PREVIOUS))
        }
    names = ["the circuit" if chosen.circuit else "the model", *asked]
    variants = [base, *({**base, **changes} for changes in asked.values())]
    losses = bench.losses([Ablation.of(changes) for changes in variants]).mean(1)
    from hopscope.cli.tables import table

    hops = [f"hop {hop + 1}" for hop in range(losses.shape[1])]
    rows = [
        (name, f"{row.mean():.4f}", *(f"{x:.4f}" for x in row.tolist()))
        for name, row in zip(names, losses, strict=True)
    ]
    table(["changed", "loss", *hops], rows, f"{examined.name}, {chosen.examples} examples")
    if chosen.data:
        record = {
            "run": examined.run.name,
            "step": examined.step,
            "seed": chosen.seed,
            "examples": chosen.examples,
            "sample": chosen.sample,
            "of_the_circuit": chosen.circuit,
            "guess": bench.probe.guess,
            "losses": dict(zip(names, losses.tolist(), strict=True)),
        }
        write_bytes(chosen.data, json.dumps(record).encode())
        print(f"numbers: {chosen.data}")
    return 0


CHANGE = re.compile(r"(\d+)\.(\d+)=(.+)")


def parse_change(text: str) -> "tuple[Head, Change]":
    """What `--head` says: which head, and what it does instead."""
    from hopscope.circuits import Carried
    from hopscope.circuits.mechanism import BY_POSITION, ITSELF, PREVIOUS, UNIFORM, Mechanism, aim

    words = {"uniform": UNIFORM, "identity": ITSELF, "previous": PREVIOUS, "position": BY_POSITION}
    match = CHANGE.fullmatch(text)
    if match is None:
        raise ConfigError(f"--head is {text!r}; expected LAYER.HEAD=WHAT, e.g. 3.0=uniform")
    head, what = (int(match[1]), int(match[2])), match[3]
    if what in ("mean", "resample"):
        return head, Carried(what)  # type: ignore[arg-type]
    if what in words:
        return head, Mechanism(rest=words[what])
    paths, _, rest = what.partition("/")
    if ">" not in paths or rest not in ("", "uniform", "identity"):
        raise ConfigError(
            f"--head is {text!r}; WHAT is {', '.join(words)}, mean, resample, or paths like "
            '"query>value 0" with "/identity" for the other rows if not uniform'
        )
    pairs = [path.partition(">") for path in paths.split(",")]
    aims = tuple((parse_role(r.strip()), aim("own", parse_role(s.strip()))) for r, _, s in pairs)
    return head, Mechanism(aims, words[rest or "uniform"])
