"""Circuits of small GPT-2s on tasks that are in no other table, and how they depend on each
threshold of the search.

    python benchmarks/other_tasks.py train --to models [--only sorting] [--seeds 0 1 2 3 4]
    python benchmarks/other_tasks.py read --models models >> results/other_tasks.jsonl
    python benchmarks/other_tasks.py thresholds --models models >> results/thresholds.jsonl
    python benchmarks/other_tasks.py samples --models models >> results/samples.jsonl

Tasks: repeated tokens and two hops (letters, 2 layers of 4 heads; two hops in two layers are more
than the law of depth allows), palindrome (2 × 2), cumulative sum (1 × 1), sorting (1 × 2). The
models are trained with a plain loop, with AdamW at a constant rate (for the palindrome, a cosine).
`read` prints for each model a JSON row with its verdict, the 2 × 3 table and every component.
`thresholds` halves and doubles each threshold of the search, on repeated tokens and on sorting
(five seeds each), and prints which components appear and disappear. `samples` searches every model,
and those of the gallery, with five samples of examples, to see whether the verdict depends on them.
"""

import argparse
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rows import print_row
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel

import hopscope
from hopscope.circuits import Circuit, Drawn, OwnTask, discover, repeated_tokens
from hopscope.configs import Discovery
from hopscope.errors import HopscopeError
from hopscope.tasks.khop import landings

BATCH, RATE = 128, 1e-3
TRAINED_FROM = 1_000_000
"""The first seed of training examples; circuits are found and measured with other seeds."""
LETTERS, LONG = 4, 40
SIDE, SYMBOLS = 3, 6
"""The tokens in each half of a palindrome, and the number of different tokens."""
SUMMED, BASE = 12, 5
SORTED, NUMBERS = 8, 24


def two_hops(examples: int, seed: int) -> Drawn:
    """k-hop induction as in Sanford et al., k = 2: a hop leads from a letter to the letter after
    its previous occurrence.
    """
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randint(0, LETTERS, (examples, LONG), generator=generator)
    hop, twice = landings(inputs, 2).unbind(-1)
    targets = torch.where(twice >= 0, inputs.gather(1, twice.clamp_min(0)), LETTERS)
    return Drawn(inputs, targets, roles=["letter"] * LONG, relations={"hop": hop})


def palindrome(examples: int, seed: int) -> Drawn:
    """Whether the second half is the mirror image of the first; at most one place differs."""
    generator = torch.Generator().manual_seed(seed)
    half = torch.randint(0, SYMBOLS, (examples, SIDE), generator=generator)
    other = half.flip(1)
    broken = torch.rand(examples, generator=generator) < 0.5
    at = torch.randint(0, SIDE, (examples, 1), generator=generator)
    step = torch.randint(1, SYMBOLS, (examples, 1), generator=generator)
    wrong = other.scatter(1, at, (other.gather(1, at) + step) % SYMBOLS)
    second = torch.where(broken[:, None], wrong, other)
    end = torch.full((examples, 1), SYMBOLS)
    inputs = torch.cat([half, second, end], 1)
    mirror = torch.arange(2 * SIDE - 1, -2, -1).expand(examples, -1).clone()
    mirror[:, :SIDE] = -1
    mirror[:, -1] = -1
    differs = torch.zeros_like(inputs, dtype=torch.bool)
    differs[:, SIDE:-1] = second != other
    wrong_place = torch.where(broken, SIDE + at[:, 0], -1)
    found = torch.full_like(inputs, -1)
    found[:, -1] = wrong_place
    roles = ["first half"] * SIDE + ["second half"] * SIDE + ["end"]
    return Drawn(
        inputs,
        (~broken).long()[:, None],
        roles=roles,
        relations={"mirror": mirror, "mismatch": found},
        conditions={"differs": differs},
    )


def cumulative_sum(examples: int, seed: int) -> Drawn:
    """The sum of all digits so far, modulo the base."""
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randint(0, BASE, (examples, SUMMED), generator=generator)
    return Drawn(inputs, inputs.cumsum(1) % BASE, roles=["digit"] * SUMMED)


def sorting(examples: int, seed: int) -> Drawn:
    """Numbers, a separator, and the same numbers in order; each next number is asked for."""
    generator = torch.Generator().manual_seed(seed)
    numbers = torch.rand(examples, NUMBERS, generator=generator).topk(SORTED).indices
    ordered = numbers.sort(1).values
    separator = torch.full((examples, 1), NUMBERS)
    inputs = torch.cat([numbers, separator, ordered], 1)[:, :-1]
    # The position of the next number among the unsorted numbers.
    place = (numbers[:, None] == ordered[..., None]).int().argmax(-1)
    next_larger = torch.full_like(inputs, -1)
    next_larger[:, SORTED:] = place
    roles = ["number"] * SORTED + ["separator"] + ["sorted"] * (SORTED - 1)
    answers = range(SORTED, 2 * SORTED)
    return Drawn(
        inputs, ordered, roles=roles, answers_at=answers, relations={"next larger": next_larger}
    )


@dataclass(frozen=True)
class Trained:
    """A task, and the shape and training settings of its models."""

    task: OwnTask
    vocabulary: int
    layers: int
    heads: int
    steps: int
    falling: bool = False
    """Whether the rate warms up for 200 steps and falls on a cosine to a twentieth."""

    def rate(self, step: int) -> float:
        """The learning rate, as a share of `RATE`."""
        return warmed_and_falling(step, self.steps) if self.falling else 1.0

    def blank(self) -> GPT2LMHeadModel:
        """A GPT-2 of this shape with fresh weights."""
        return blank(self.vocabulary, self.layers, self.heads, n_positions=64, n_embd=64)


TASKS = {
    "repeated": Trained(repeated_tokens(64, length=12, filler=6), 64, 2, 4, 1500),
    "two-hops": Trained(
        OwnTask(two_hops, roles=("letter",), chance=math.log(LETTERS)), LETTERS + 1, 2, 4, 6000
    ),
    "palindrome": Trained(
        OwnTask(palindrome, roles=("first half", "second half", "end"), chance=math.log(2)),
        SYMBOLS + 1, 2, 2, 10_000, falling=True,
    ),
    "sum": Trained(
        OwnTask(cumulative_sum, roles=("digit",), chance=math.log(BASE)), BASE, 1, 1, 4000
    ),
    "sorting": Trained(
        OwnTask(sorting, roles=("number", "separator", "sorted"), chance=math.log(NUMBERS)),
        NUMBERS + 1, 1, 2, 3000,
    ),
}  # fmt: skip
FIVE = ("repeated", "sorting")
"""Tasks with five trained seeds, for `thresholds`."""
SAMPLES = range(5)
GALLERY = ("demo", "transformer-a", "transformer-b", "transformer-c")
FIXED = ("examples", "fresh", "searches", "unlearned")
"""Settings that are no thresholds for components."""


def blank(vocabulary: int, layers: int, heads: int, **more: Any) -> GPT2LMHeadModel:
    """A GPT-2 without dropout, with fresh weights."""
    config = GPT2Config(
        vocab_size=vocabulary, n_layer=layers, n_head=heads, resid_pdrop=0, embd_pdrop=0,
        attn_pdrop=0, bos_token_id=0, eos_token_id=0, **more,
    )  # fmt: skip
    return GPT2LMHeadModel(config)


def warmed_and_falling(step: int, steps: int) -> float:
    """The factor of a learning rate that warms up for 200 steps and falls on a cosine to 1/20."""
    fall = 0.05 + 0.95 * (1 + math.cos(math.pi * step / steps)) / 2
    return min(1.0, (step + 1) / 200) * fall


def train(chosen: argparse.Namespace) -> None:
    """Train the models of each task that do not exist yet."""
    for name, trained in TASKS.items():
        for seed in chosen.seeds if name in FIVE else chosen.seeds[:1]:
            path = chosen.to / f"{name}-{seed}.safetensors"
            if path.exists() or (chosen.only and name not in chosen.only):
                continue
            started = time.perf_counter()
            model, loss = _trained(trained, seed)
            path.parent.mkdir(parents=True, exist_ok=True)
            save_file({k: v.clone() for k, v in model.state_dict().items()}, path)
            seconds = round(time.perf_counter() - started)
            print_row({"model": path.stem, "loss": loss, "seconds": seconds})


def _trained(trained: Trained, seed: int) -> tuple[GPT2LMHeadModel, float]:
    torch.manual_seed(seed)
    model = trained.blank()
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE)
    rate = torch.optim.lr_scheduler.LambdaLR(optimiser, trained.rate)
    for step in range(trained.steps):
        examples = trained.task(BATCH, TRAINED_FROM + seed * trained.steps + step)
        loss = examples.losses(model(examples.inputs).logits).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        rate.step()
    return model.eval(), round(loss.item(), 4)


def models(folder: Path) -> Iterator[tuple[str, int, GPT2LMHeadModel]]:
    """Every trained model, with its task and seed."""
    for name, trained in TASKS.items():
        for path in sorted(folder.glob(f"{name}-*.safetensors")):
            model = trained.blank()
            model.load_state_dict(load_file(path), strict=False)  # tied weights are kept once
            yield name, int(path.stem.rpartition("-")[2]), model.eval()


def read(chosen: argparse.Namespace) -> None:
    """Print a row for each model."""
    for name, seed, model in models(chosen.models):
        examples = TASKS[name].task(1024, 5)
        with torch.no_grad():
            outputs = examples.answers_of(
                model(examples.inputs).logits[:, -examples.read_of(None) :]
            )
        right = outputs.argmax(-1) == TASKS[name].task.draw(1024, 5).targets
        started = time.process_time()
        row: dict[str, Any] = {"task": name, "seed": seed, "error": 1 - right.float().mean().item()}
        try:
            found = discover(model, TASKS[name].task)
        except HopscopeError as error:
            print_row(row | {"refused": str(error)})
            continue
        print_row(row | described(found, time.process_time() - started))


def described(found: Circuit, seconds: float) -> dict[str, Any]:
    """A circuit as a row."""
    return {
        "cpu_seconds": round(seconds, 1),
        "verdict": found.verdict,
        "warnings": list(found.warnings),
        "losses": {
            which: round(found.losses.mean(which), 4)
            for which in ("model", "prescribed", "computed", "ablated")
        },
        "scores": [
            [s.attention, s.rest, *(e and round(e.mean, 3) for e in (s.recovered, s.agreement))]
            for s in found.scores
        ],
        "components": [
            f"{each.name} {found.described(each)} ({each.kind})" for each in found.components
        ],
    }


def thresholds(chosen: argparse.Namespace) -> None:
    """Print a row for each model and each threshold, halved and doubled."""
    for name, seed, model in models(chosen.models):
        if name not in FIVE:
            continue
        usual = _names(discover(model, TASKS[name].task))
        for field, value in Discovery().model_dump().items():
            if field in FIXED:
                continue
            for factor in (0.5, 2.0):
                settings = {field: _changed(field, value, factor)}
                found = discover(model, TASKS[name].task, **settings)
                names = _names(found)
                row = {"task": name, "seed": seed, **settings, "usual": value}
                changes = {"gone": sorted(usual - names), "new": sorted(names - usual)}
                shares = {"recovered": round(found.recovered(), 3), "components": len(names)}
                print_row(row | shares | changes)


def samples(chosen: argparse.Namespace) -> None:
    """Print a row for each model and sample of examples, searched and measured on this sample."""
    for name, model, task in [*_own(chosen.models), *_gallery()]:
        for sample in SAMPLES:
            row = {"model": name, "sample": sample}
            try:
                found = discover(model, task, seed=sample)
            except HopscopeError as error:
                print_row(row | {"refused": str(error)})
                continue
            recovered = {of: round(found.recovered(of), 3) for of in ("prescribed", "computed")}
            print_row(row | {
                "verdict": found.verdict, "recovered": recovered, "rows": sorted(_rows(found)),
            })  # fmt: skip


def _own(folder: Path) -> Iterator[tuple[str, GPT2LMHeadModel, OwnTask]]:
    for name, seed, model in models(folder):
        yield f"{name}, seed {seed}", model, TASKS[name].task


def _gallery() -> Iterator[tuple[str, Any, Any]]:
    for name in GALLERY:
        study = hopscope.load(f"gallery/{name}")
        yield f"gallery/{name}", study.model, study.task


def _changed(field: str, value: float, factor: float) -> float:
    """The threshold times `factor`. For shares near 1, the distance to 1 is multiplied instead; for
    `tie`, the part above 1.
    """
    if field in ("enough", "aimed"):
        return 1 - (1 - value) * factor
    return 1 + (value - 1) * factor if field == "tie" else value * factor


def _names(found: Circuit) -> set[str]:
    """The rows of the circuit as texts: head, target, role and kind."""
    return {f"{row} ({kind})" for row, kind in _rows(found).items()}


def _rows(found: Circuit) -> dict[str, str]:
    """The kind of each row of the circuit, by head, target and role."""
    return {
        f"{layer}.{head} {each.target} → {role}": each.kind
        for each in found.components
        for (layer, head), role in each.rows
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    ways: dict[str, Callable[[argparse.Namespace], None]] = {
        "train": train, "read": read, "thresholds": thresholds, "samples": samples,
    }  # fmt: skip
    for name, way in ways.items():
        command = commands.add_parser(name)
        command.set_defaults(way=way)
        if name == "train":
            command.add_argument("--to", type=Path, required=True)
            command.add_argument("--only", nargs="*", choices=TASKS)
            command.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2, 3, 4])
        else:
            command.add_argument("--models", type=Path, required=True)
    torch.set_num_threads(1)
    chosen = parser.parse_args()
    chosen.way(chosen)


if __name__ == "__main__":
    main()
