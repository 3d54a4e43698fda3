"""The limit of the law of depth: how far back two layers find the second hop with a window.

    python benchmarks/windows.py train [--store runs] [--only 4x4 8x4] [--device cuda]
    python benchmarks/windows.py table          # of the rows in results/windows.jsonl

k-hop induction with learned position embeddings, trained as fleets of three seeds: models of 2
layers with 1 to 16 heads and 4 to 64 letters, for one and for two hops (the law allows one); and
models of 3 layers for four hops (the law allows three). A row for each seed has the error of each
hop, and

* the error by how far the last hop goes back from where the hop before it led;
* the error with the first layer's attention limited to a number of letters back (and scaled up to
  sum to 1), with the error that `hopscope.theory.known_hops` predicts for a model that knows all
  that can be known with such a window, and guesses the rest evenly.

Runs are saved in the store and can be continued. A fleet takes about 20 minutes on one thread, or
ten seconds on an H100. `train` appends its rows.
"""

import argparse
import math
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from rows import RESULTS, add_row, print_table, read_rows
from torch import Tensor

from hopscope.circuits import adapter_of
from hopscope.circuits.engine import Adapter, Attend, Brought, Heads, forward
from hopscope.configs import Experiment, KHop, Model, Training
from hopscope.papers.judge import group
from hopscope.runs import train
from hopscope.runs.computing import processor_of
from hopscope.tasks import dataset
from hopscope.tasks.khop import landings
from hopscope.theory import known_hops

ROWS = RESULTS / "windows.jsonl"
LENGTH, EXAMPLES, FEW = 64, 2048, 50
"""Positions, measured examples, and the fewest answers for which an error is reported."""
COLUMNS = ("layers, hops", "letters", "heads", "seeds", "error", "half of chance at", "equal to")
CUTS = (1, 2, 3, 4, 6, 8)
SHAPES = {
    f"{letters}x{heads}": (letters, heads, 2, 2)
    for letters, heads in [
        *((4, heads) for heads in (1, 2, 4, 8, 16)),
        *((letters, 4) for letters in (8, 16, 32, 64)),
        *((16, heads) for heads in (1, 8, 16)),
    ]
} | {f"4x{heads}, 3 layers": (4, heads, 3, 4) for heads in (4, 8)}


def recipe(letters: int, heads: int, layers: int, hops: int) -> Experiment:
    """The recipe for three seeds of one shape."""
    return Experiment(
        task=KHop(hops=hops, alphabet=letters, length=LENGTH),
        model=Model(layers=layers, heads=heads, d_model=128, init="fan-in"),
        training=Training(
            steps=4_000, batch=64, lr=1e-3, schedule="cosine", warmup=200, weight_decay=0.01,
            examples=2**20, validate_every=200, checkpoint_every=1_000,
        ),
        seeds=(0, 1, 2),
    )  # fmt: skip


def within(letters: int | None) -> Attend:
    """The model's attention, with the first layer limited to `letters` letters back (None: all)."""

    def attend(layer: int, heads: Heads) -> Brought:
        weights = heads.weights()
        if layer == 0 and letters is not None:
            seen = torch.ones(weights.shape[-2:], dtype=torch.bool).triu(-letters)
            weights = weights * seen
            weights = weights / weights.sum(-1, keepdim=True)
        return weights @ heads.values

    return attend


@torch.no_grad()
def wrong(
    adapter: Adapter, inputs: Tensor, targets: Tensor, letters: int | None = None
) -> Float[Tensor, "example position hop"]:
    """1 where an answer is wrong."""
    found = []
    for some, right in zip(inputs.split(128), targets.split(128), strict=True):
        outputs = adapter.unembed(forward(adapter, adapter.embed(some), within(letters)))
        answers = outputs.unflatten(-1, (right.shape[-1], -1)).argmax(-1)
        found.append((answers != right).double())
    return torch.cat(found)


def by_distance(
    errors: Float[Tensor, "example position hop"], landed: Int[Tensor, "example position hop"]
) -> dict[int, float]:
    """The error of the last hop, by how far it goes back from where the hop before it led."""
    before, last = landed[..., -2], landed[..., -1]
    back = torch.where(last >= 0, before - last, -1)
    return {
        distance: round(float(errors[..., -1][back == distance].mean()), 4)
        for distance in range(LENGTH)
        if int((back == distance).sum()) >= FEW
    }


def predicted(letters: Tensor, layers: int, window: int, hops: int) -> list[float]:
    """The error of each hop if every hop that can be known is right, and all others are guessed."""
    known = torch.from_numpy(known_hops(letters.numpy(), layers, window, hops))
    answered = landings(letters, hops) >= 0
    guessed = 1 - 1 / (int(letters.max()) + 1)
    return [
        round(guessed * float((known < hop)[answered[..., hop - 1]].double().mean()), 4)
        for hop in range(1, hops + 1)
    ]


def rows(name: str, store: Path, device: str) -> Iterator[dict[str, Any]]:
    """A row for each seed of a fleet."""
    letters, heads, layers, hops = SHAPES[name]
    run = train(recipe(letters, heads, layers, hops), store, threads=1, device=device)
    batch = dataset(run.recipe.task, 7, EXAMPLES, "validation")
    landed = landings(batch.inputs, hops)
    answered = landed >= 0
    for seed in run.recipe.seeds:
        adapter = adapter_of(run.model.member(seed))
        assert isinstance(adapter, Adapter)
        errors = wrong(adapter, batch.inputs, batch.targets)

        def shares(errors: Tensor) -> list[float]:
            return [round(float(errors[..., n][answered[..., n]].mean()), 4) for n in range(hops)]

        yield {
            "benchmark": "windows", "letters": letters, "heads": heads, "layers": layers,
            "hops": hops, "seed": seed, "error": shares(errors),
            "by distance": by_distance(errors, landed),
            "first layer cut": {
                cut: shares(wrong(adapter, batch.inputs, batch.targets, cut)) for cut in CUTS
            },
            "predicted": {cut: predicted(batch.inputs, layers, cut, hops) for cut in CUTS},
            "machine": processor_of(torch.device(device)),
        }  # fmt: skip


def shown() -> Iterator[tuple[object, ...]]:
    """A table row for each shape: the error of the last hop, and the equivalent window."""
    shapes = group(read_rows(ROWS), lambda row: (row["layers"], row["letters"], row["heads"]))
    for (layers, letters, heads), its in sorted(shapes.items()):
        half, hops = (1 - 1 / letters) / 2, its[0]["hops"]
        errors = spread([row["error"][-1] for row in its], ".3f")
        passed = spread([crossed(row["by distance"], half) for row in its], "d")
        windows = spread([equal_window(row) for row in its], ".1f")
        yield f"{layers}, {hops}", letters, heads, len(its), errors, passed, windows


def spread(values: list[Any], form: str) -> str:
    """The range of values as text; None is printed as "more", beyond what was measured."""
    known = [format(value, form) for value in sorted(each for each in values if each is not None)]
    ends = [*dict.fromkeys([*known[:1], *known[-1:]])] + ["more"] * (len(known) < len(values))
    return " … ".join(ends)


def crossed(errors: dict[str, float], level: float) -> int | None:
    """The first distance whose error is above a level."""
    return next((int(at) for at, error in errors.items() if error > level), None)


def equal_window(row: dict[str, Any]) -> float | None:
    """The size in letters of a full window with the same predicted error as measured (interpolated
    between two cuts by the logarithm of the error). None if no cut has such a small error.
    """
    error = max(row["error"][-1], 1e-9)
    cuts = [(int(cut), predicted[-1]) for cut, predicted in row["predicted"].items()]
    for (less, above), (more, below) in pairwise(cuts):
        if above >= error > below > 0:
            return less + (more - less) * math.log(above / error) / math.log(above / below)
    return 0.0 if error > cuts[0][1] else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["train", "table"])
    parser.add_argument("--store", type=Path, default=Path("runs"))
    parser.add_argument("--only", nargs="*", choices=SHAPES)
    parser.add_argument("--device", default="cpu")
    chosen = parser.parse_args()
    if chosen.what == "table":
        head = (
            "layers, hops",
            "letters",
            "heads",
            "seeds",
            "error",
            "half of chance at",
            "equal to",
        )
        print_table(head, [*shown()])
        return
    torch.set_num_threads(1)
    for name in chosen.only or SHAPES:
        for row in rows(name, chosen.store, chosen.device):
            add_row(ROWS, row)


if __name__ == "__main__":
    main()
