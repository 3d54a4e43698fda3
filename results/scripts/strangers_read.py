"""What hopscope reads in the two models of strangers.py: seconds, memory, losses, steps.

    python results/scripts/strangers_read.py khop --folder models [--save circuit.json]
    python results/scripts/strangers_read.py retrieval --folder models

A JSON row has the seconds of the search, the losses hop by hop (of the model, of the circuit with
prescribed and with computed attention, and with everything ablated), the shares of the gap that are
recovered, and every component of the circuit. For `khop` also what the same circuit does on
sequences of half the length, at the positions from which the hops lead somewhere, and at those from
which they lead nowhere.
"""

import argparse
import json
import math
import pathlib
import resource
import time
from dataclasses import replace
from typing import Any

import strangers
import torch
from strangers import (
    CHAINS,
    LENGTH,
    LETTERS,
    MOST,
    NONE,
    khop_examples,
    landing,
    retrieval_examples,
)
from torch import Tensor, nn

from hopscope.circuits import (
    Ablation,
    Ablator,
    Adapter,
    Circuit,
    Drawn,
    EncoderAdapter,
    OwnTask,
    adapter_of,
    discover,
    exam_of,
)
from hopscope.circuits.tables import tables_of

DRAWN_FROM = 1_000_000
"""Seeds of examples that no training step had."""


def khop_drawn(count: int, seed: int) -> Drawn:
    """Count token and letters; every letter answers; relations from every position."""
    generator = torch.Generator().manual_seed(DRAWN_FROM + seed)
    tokens, answers = khop_examples(count, generator)
    first, hops = landing(tokens[:, 1:]), tokens[:, 0] - LETTERS + 1
    nowhere = torch.full((count, 1), -1)  # from the count token
    hop = torch.cat((nowhere, torch.where(first >= 0, first + 1, -1)), 1)
    return Drawn(
        tokens,
        answers,
        roles=["count", *["letter"] * (tokens.shape[1] - 1)],
        hop=(hops - 1)[:, None].expand_as(answers),
        relations={"hop": hop, "same": torch.where(hop > 0, hop - 1, -1), "firsts": _firsts(hop)},
        conditions={f"k={k}": hops == k for k in range(1, MOST + 1)},
    )


def _firsts(hop: Tensor) -> Tensor:
    """From every letter: all letters so far that stand there for the first time."""
    count, length = hop.shape
    letters = torch.arange(length) > 0
    first = (hop < 0) & letters
    return first[:, None] & letters[:, None] & torch.ones(count, 1, 1).bool()


def khop_task() -> OwnTask:
    """Every letter is as likely as any other to one who guesses."""
    return OwnTask(khop_drawn, roles=["count", "letter"], guess=math.log(LETTERS), hops=MOST)


def only(where: str) -> OwnTask:
    """The same, marked at the positions from which the hops lead somewhere, or nowhere, alone."""

    def drawn(count: int, seed: int) -> Drawn:
        whole = khop_drawn(count, seed)
        other = (whole.targets == NONE) == (where == "somewhere")
        return replace(whole, targets=whole.targets.masked_fill(other, -1))

    return OwnTask(
        drawn, roles=["count", "letter"], guess=math.log(LETTERS), hops=MOST, loss=_marked
    )


def _marked(outputs: Tensor, targets: Tensor) -> Tensor:
    """Targets of -1 are not marked; the rest count for more, so that a mean is over them alone."""
    losses = nn.functional.cross_entropy(
        outputs.flatten(0, 1), targets.flatten(), reduction="none", ignore_index=-1
    ).view(targets.shape)
    asked = (targets >= 0).float()
    return losses * asked.numel() / asked.sum()


def retrieval_drawn(count: int, seed: int) -> Drawn:
    inputs, targets, order = retrieval_examples(
        count, torch.Generator().manual_seed(DRAWN_FROM + seed)
    )
    pairs = order[:, :2].repeat_interleave(2, dim=-1).flatten(1)
    names = [*["key 1", "value 1"] * CHAINS, *["key 0", "value 0"] * CHAINS, *["query"] * CHAINS]
    return Drawn(inputs, targets, names, chain=torch.cat((pairs, order[:, 2]), 1))


def hops_apart(outputs: Tensor, targets: Tensor) -> Tensor:
    """A loss for each answer and hop."""
    return (outputs - targets).square().unflatten(-1, (2, -1)).mean(-1)


def subject_and_task(name: str, model: nn.Module) -> tuple[Any, OwnTask]:
    if name == "khop":
        return adapter_of(model), khop_task()
    roles = ["key 0", "value 0", "key 1", "value 1", "query"]
    facts = ["x0->x1", "x1->x2"]
    guess = 1 - 1 / CHAINS
    task = OwnTask(retrieval_drawn, roles=roles, guess=guess, hops=2, loss=hops_apart, facts=facts)
    parts: Any = model
    walked = EncoderAdapter(
        parts.encoder, embed=parts.into, unembed=parts.out, model=model, causal=True
    )
    return walked, task


def row(name: str, folder: pathlib.Path, examples: int) -> tuple[dict[str, Any], Circuit]:
    """One model, read."""
    subject, task = subject_and_task(name, strangers.trained(name, folder))
    begun, cpu = time.perf_counter(), time.process_time()

    def watch(what: str) -> None:
        now = round(time.perf_counter() - begun, 1), round(time.process_time() - cpu, 1)
        print(f"[{now[0]:6.1f} s, {now[1]:6.1f} CPU s] {what}", flush=True)

    circuit = discover(subject, task, examples=examples, watch=watch)
    losses = circuit.losses
    found: dict[str, Any] = {
        "benchmark": "strangers", "model": name, "weights": circuit.model[:12],
        "examples": examples,
        "seconds": round(time.perf_counter() - begun, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10),
        "losses": {each: [round(x, 4) for x in getattr(losses, each)]
                   for each in ("model", "prescribed", "computed", "ablated")},
        "chance": round(losses.chance, 4), "verdict": circuit.verdict,
        "recovered": {"prescribed": round(circuit.recovered("prescribed"), 3),
                      "computed": round(circuit.recovered("computed"), 3)},
        "components": [f"{each.name} {circuit.described(each)}: {each.kind}, {each.lost}"
                       for each in circuit.components],
    }  # fmt: skip
    return found | (elsewhere(subject, circuit) if name == "khop" else {}), circuit


def elsewhere(subject: Adapter, circuit: Circuit) -> dict[str, Any]:
    """The circuit where it was not searched: shorter sequences, and where there is no answer."""
    found = {}
    half = khop_task()
    tasks = {name: (only(name), LENGTH) for name in ("somewhere", "nowhere")}
    for name, (task, length) in {**tasks, "half the length": (half, LENGTH // 2)}.items():
        strangers.LENGTH = length
        exam = replace(exam_of(task, 192, seed=7), tables=tables_of(circuit))
        ablator = Ablator(subject, exam)
        losses = ablator.losses([Ablation(), circuit.ablation()]).mean((1, 2)).tolist()
        found[name] = dict(zip(("model", "prescribed"), (round(x, 4) for x in losses), strict=True))
    strangers.LENGTH = LENGTH
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=strangers.STRANGERS)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("models"))
    parser.add_argument("--examples", type=int, default=128)
    parser.add_argument("--save", type=pathlib.Path, help="keep the circuit here")
    chosen = parser.parse_args()
    found, circuit = row(chosen.name, chosen.folder, chosen.examples)
    print(json.dumps(found, ensure_ascii=False), flush=True)
    if chosen.save:
        circuit.save(chosen.save)


if __name__ == "__main__":
    main()
