"""Circuits known by hand: what does discovery find, beside ACDC and edge attribution patching?

    TQDM_DISABLE=1 python results/scripts/circuit_tools.py [--quick | --more]
        [--noise 0.0003] [--examples 128]

The models are planted: their weights are written by hand, so their circuits are known. Every tool
gets the same model, the same examples and the same process. A row per model and tool holds the
seconds of one run (of hopscope CPU seconds), and precision and recall of three things:

- heads: the (layer, head) of the true paths;
- rows: the (layer, head, destination's role) of the true paths;
- paths: with the role that is read from, which edges between components cannot name (null).

The peers are auto-circuit's ACDC, edge attribution patching (EAP) and EAP with integrated
gradients, on edges per token position; every input is corrupted by another example. The model
is rebuilt as a TransformerLens model whose embedding is the input map; `parity` is the largest
difference between the outputs of both. Chance and doubt count for the peers:

- their thresholds are the best that there are, chosen by the truth for every model and for heads
  and rows each on their own; only one run is timed, though ACDC needs one for every threshold;
- an edge counts only if it lies on a way of kept edges from the input to the output;
- a row is found if any of the role's positions is (or if most are: whichever is better).

Of ACDC's edges there are too many for all examples (one forward pass for each edge), so it gets
the first few, and models with more edges than `--edges` get one of its thresholds. Needs
auto-circuit 1.0 and transformer-lens 2, whose 2.0 computes the outputs of single heads by matrix
products (2.18 takes up to ten times as long); without them hopscope runs alone.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import torch
from circuit_peers import Peers
from known_circuits import (
    Case,
    Found,
    Score,
    add_noise,
    cases,
    grade,
    heads_of,
    loss_over_guess,
    more_cases,
    rows_of,
)

from hopscope.circuits import discover
from hopscope.configs import Discovery
from hopscope.errors import NotLearned
from hopscope.machine import processor

OURS = "hopscope circuit"


def by_hopscope(case: Case, examples: int) -> Found:
    grown = case.grown
    begun = time.process_time()
    circuit = discover(grown.model, grown.task, examples=examples)
    seconds = time.process_time() - begun
    found = set(circuit.paths)
    true = set(grown.paths)
    return Found(
        seconds,
        grade(heads_of(found), heads_of(true)),
        grade(rows_of(found), rows_of(true)),
        grade(found, true),
        notes=(
            ("not_true", [str(path) for path in sorted(found - true)]),
            ("not_found", [str(path) for path in sorted(true - found)]),
            ("prescribed", round(circuit.recovered("prescribed"), 4)),
            ("computed", round(circuit.recovered("computed"), 4)),
        ),
    )


def row(case: Case, tool: str, examples: int, found: Found) -> dict[str, Any]:
    packages = ("hopscope",) if tool == OURS else ("auto-circuit", "transformer-lens")
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    head = {"benchmark": "circuit_tools", "tool": tool, "version": versions, "model": case.name}
    grades: dict[str, float | None] = {}
    for name in ("head", "row", "path"):
        score: Score | None = getattr(found, f"{name}s")
        grades[f"{name}_precision"] = None if score is None else round(score.precision, 3)
        grades[f"{name}_recall"] = None if score is None else round(score.recall, 3)
    seconds = round(found.seconds, 2)
    return {**head, "seconds": seconds, **grades, "examples": examples, **dict(found.notes)}


def compared(case: Case, chosen: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row for every tool, if the model (still) solves its task."""
    count = chosen.examples
    left_out = {"benchmark": "circuit_tools", "model": case.name, "left_out": "too much noise"}
    if loss_over_guess(case, count) > Discovery().unlearned:
        yield left_out
        return
    try:
        yield row(case, OURS, count, by_hopscope(case, count))
    except NotLearned:  # near the limit other examples, on which the circuit is measured, decide
        yield left_out
        return
    if chosen.more:
        return
    if find_spec("auto_circuit") is None:
        yield {"benchmark": "circuit_tools", "model": case.name, "missing": "auto-circuit"}
        return
    peers = Peers(case, count)
    tools: dict[str, tuple[int, Callable[[], Found]]] = {
        "EAP": (count, lambda: peers.eap(squared=False, steps=None)),
        "EAP, squared error": (count, lambda: peers.eap(squared=True, steps=None)),
        f"EAP, squared error, {chosen.steps} steps": (
            count, lambda: peers.eap(squared=True, steps=chosen.steps)
        ),
        "ACDC": (chosen.acdc_examples, lambda: peers.acdc(chosen.acdc_examples, chosen.edges)),
    }  # fmt: skip
    for tool, (examples, run) in tools.items():
        yield row(case, tool, examples, run())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three small models")
    parser.add_argument("--more", action="store_true", help="15 other models, hopscope alone")
    parser.add_argument("--only", default="", help="models with this in their names")
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--examples", type=int, default=128)
    parser.add_argument("--acdc-examples", type=int, default=32)
    parser.add_argument("--edges", type=int, default=2_000, help="more get one threshold of ACDC")
    parser.add_argument("--steps", type=int, default=10, help="of the integrated gradients")
    chosen = parser.parse_args()
    for case in more_cases() if chosen.more else cases(chosen.quick):
        if chosen.only not in case.name:
            continue
        add_noise(case.grown.model, chosen.noise)
        about: dict[str, Any] = {
            "noise": chosen.noise,
            "machine": processor(),
            "threads": torch.get_num_threads(),
        }
        about["loss_over_guess"] = loss_over_guess(case, chosen.examples)
        for each in compared(case, chosen):
            print(json.dumps({**each, **about}), flush=True)


if __name__ == "__main__":
    main()
