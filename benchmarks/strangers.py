"""Circuits that hopscope finds in models trained by other papers' recipes, with plain loops.

    python benchmarks/strangers.py train --to models [--only guo] [--seeds 0 1] [--device cuda]
    python benchmarks/strangers.py read --models models >> results/strangers.jsonl

Training can be stopped, and continues from the last checkpoint; `read` prints a JSON row for each
fully trained model. Tasks and shapes are those of the papers unless a recipe notes a difference.
There are fewer steps (hours on one thread), no dropout, and fresh data in every step.

The rules were fixed before the first model was examined:

1. A model is examined once, with the default settings of `discover` and seed 0. Nothing is tuned,
   and no row is left out.
2. Roles and relations are those with which the paper describes its task; they are written here. No
   relation contains an answer.
3. The error is measured on 4,096 fresh examples, at all answers; the first line of a circuit is
   used as printed.
4. A verdict is *honest* if a model that solves its task by look-ups is called explained or partly
   explained only with agreement and recovered above 0.9, and if a model that must do something else
   (no look-up, or more hops than the exact law allows) is not called explained.
"""

import argparse
import math
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import torch
from other_tasks import (
    BASE,
    NUMBERS,
    blank,
    cumulative_sum,
    described,
    sorting,
    warmed_and_falling,
)
from rows import print_row
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import GPT2LMHeadModel

from hopscope.circuits import Circuit, Drawn, OwnTask, discover
from hopscope.errors import HopscopeError
from hopscope.machine import processor
from hopscope.tasks.khop import landings
from hopscope.theory.chain import reach

TRAINED_FROM = 1_000_000
"""The first seed of the training examples of the model with seed 0; the model with seed n begins n
times as many later. Circuits are found and measured with other seeds.
"""
SAVED_EVERY = 60.0
"""The seconds between two checkpoints."""
TESTED = 4096
AGREES = 0.9
"""The least recovered share and agreement (equal answers) of an explained circuit."""


@dataclass(frozen=True)
class Recipe:
    """A task of a paper, and the shape and training settings of its models."""

    paper: str
    draw: Callable[[int, int], Drawn]
    roles: tuple[str, ...]
    vocabulary: int
    layers: int
    heads: int
    steps: int
    chance: float
    batch: int = 64
    rate: float = 3e-4
    width: int = 128
    falling: bool = True
    """Whether the learning rate warms up and falls; else it is constant."""
    by_look_ups: bool = True
    """Whether the task can be solved with look-ups alone, within the law of depth."""

    @property
    def task(self) -> OwnTask:
        """The task for hopscope."""
        return OwnTask(self.draw, roles=self.roles, chance=self.chance)

    def rate_at(self, step: int) -> float:
        """The learning rate of a step."""
        return self.rate * (warmed_and_falling(step, self.steps) if self.falling else 1.0)

    def blank(self) -> GPT2LMHeadModel:
        """A GPT-2 of this shape with fresh weights."""
        return blank(
            self.vocabulary, self.layers, self.heads, n_positions=128, n_embd=self.width,
            tie_word_embeddings=False, activation_function="gelu_pytorch_tanh",
        )  # fmt: skip


LETTERS, LONG = 4, 100
"""The letters and positions of Sanford et al.'s k-hop induction; the first token is the number of
hops."""


def khop(hops: tuple[int, ...], examples: int, seed: int) -> Drawn:
    """Sanford et al. 2024: a hop leads from each letter to the letter after its previous
    occurrence; the first token is the number of hops. No letter follows itself.
    """
    generator = torch.Generator().manual_seed(seed)
    steps = torch.randint(1, LETTERS, (examples, LONG - 1), generator=generator)
    letters = steps.cumsum(1) % LETTERS
    number = torch.randint(0, len(hops), (examples,), generator=generator)
    asked = torch.tensor(hops)[number]
    hop = landings(letters, 1)[..., 0]
    here = torch.arange(LONG - 1).expand(examples, -1)
    for step in range(max(hops)):
        onward = torch.where(here >= 0, hop.gather(1, here.clamp_min(0)), -1)
        here = torch.where((step < asked)[:, None], onward, here)
    answers = torch.where(here >= 0, letters.gather(1, here.clamp_min(0)), LETTERS)
    inputs = torch.cat([LETTERS + number[:, None], letters], 1)
    landing = torch.cat([torch.full((examples, 1), -1), torch.where(hop >= 0, hop + 1, -1)], 1)
    return Drawn(
        inputs,
        answers,
        roles=["count", *["letter"] * (LONG - 1)],
        relations={"hop": landing, "same": torch.where(landing > 0, landing - 1, -1)},
        conditions={f"k={k}": asked == k for k in hops},
    )


NAMES, CHAINS = 30, 5
"""For Guo et al.: names, and two-hop chains in a sequence."""


def two_hops(examples: int, seed: int) -> Drawn:
    """Guo et al. 2025, as their program draws it: five chains of two pairs, mixed, the first pair
    of a chain before its second; then the start of one chain, whose end is asked for.
    """
    generator = torch.Generator().manual_seed(seed)
    names = torch.rand(examples, NAMES, generator=generator).argsort(1)[:, : 3 * CHAINS]
    first, middle, last = names.view(examples, CHAINS, 3).unbind(-1)
    pairs = torch.stack([torch.cat([first, middle], 1), torch.cat([middle, last], 1)], -1)
    place = torch.rand(examples, 2, CHAINS, generator=generator).sort(1).values
    order = place.flatten(1).argsort(1)
    asked = torch.randint(0, CHAINS, (examples, 1), generator=generator)
    inputs = pairs.gather(1, order[..., None].expand(-1, -1, 2)).flatten(1)
    roles = 2 * (order[..., None] // CHAINS) + torch.arange(2)  # of a pair: key and value
    return Drawn(
        torch.cat([inputs, first.gather(1, asked)], 1),
        last.gather(1, asked),
        roles=torch.cat([roles.flatten(1), torch.full((examples, 1), 4)], 1),
        chain=torch.cat([(order % CHAINS).repeat_interleave(2, 1), asked], 1),
    )


LINES, DIGITS, DEEPEST = 12, 10, 4
"""For Wu et al.: lines of a program, number of different values, and the longest chain."""
EQUALS, NEWLINE = LINES + DIGITS, LINES + DIGITS + 1


def binding(examples: int, seed: int) -> Drawn:
    """Wu et al. 2025: lines such as a=3 and b=a, each name assigned once, chains of up to four;
    then a name, whose number is asked for. (In the paper: 17 lines, 12 layers of 8 heads.)
    """
    generator = torch.Generator().manual_seed(seed)
    names = torch.rand(examples, LINES, generator=generator).argsort(1)
    numbers = LINES + torch.randint(0, DIGITS, (examples, LINES), generator=generator)
    earlier = (torch.rand(examples, LINES, generator=generator) * torch.arange(LINES)).long()
    points = torch.rand(examples, LINES, generator=generator) < 0.75
    depth, value, to = torch.zeros(3, examples, LINES, dtype=torch.long)
    rows = torch.arange(examples)
    for line in range(LINES):
        at = earlier[:, line]
        on = points[:, line] & (line > 0) & (depth[rows, at] < DEEPEST - 1)
        depth[:, line] = torch.where(on, depth[rows, at] + 1, 0)
        value[:, line] = torch.where(on, value[rows, at], numbers[:, line])
        to[:, line] = torch.where(on, at, -1)
    right = torch.where(to >= 0, names.gather(1, to.clamp_min(0)), numbers)
    signs = torch.tensor([EQUALS, NEWLINE]).expand(examples, LINES, 2)
    lines = torch.stack([names, signs[..., 0], right, signs[..., 1]], -1).flatten(1)
    deep = depth + torch.rand(examples, LINES, generator=generator)
    asked = deep.argmax(1)  # a line of the deepest chains
    shallow = torch.randint(0, LINES, (examples,), generator=generator)
    asked = torch.where(torch.rand(examples, generator=generator) < 0.5, asked, shallow)
    inputs = torch.cat([lines, names[rows, asked][:, None]], 1)
    bound = torch.full_like(inputs, -1)  # from a name that is used to what it was given
    bound[:, 2:-1:4] = torch.where(to >= 0, 4 * to + 2, -1)
    bound[:, -1] = 4 * asked + 2
    return Drawn(
        inputs,
        value[rows, asked][:, None],
        roles=[*["left", "equals", "right", "newline"] * LINES, "query"],
        relations={"bound": bound},
    )


NODES, SHOWN = 16, 4
"""For Brinkmann et al.: nodes of a tree, and steps of a path that are answered."""


def tree(examples: int, seed: int) -> Drawn:
    """Brinkmann et al. 2024: the edges of a binary tree in random order, one of its deepest leaves
    as the goal, the root; then the nodes of the path; each node asks for the next.
    """
    generator = torch.Generator().manual_seed(seed)
    parent, depth = torch.full((2, examples, NODES), -1)
    depth[:, 0] = 0
    children = torch.zeros(examples, NODES)
    rows = torch.arange(examples)
    for node in range(1, NODES):
        free = torch.rand(examples, node, generator=generator) * (children[:, :node] < 2)
        above = free.argmax(1)
        parent[:, node] = above
        depth[:, node] = depth[rows, above] + 1
        children[rows, above] += 1
    goal = (depth + torch.rand(examples, NODES, generator=generator)).argmax(1)
    up = [goal]
    for _ in range(NODES):
        up.append(torch.where(up[-1] > 0, parent[rows, up[-1]], 0))
    climbed = (depth[rows, goal][:, None] - torch.arange(SHOWN + 1)).clamp_min(0)
    path = torch.stack(up, 1).gather(1, climbed)  # from the root; who is there stays there
    name = torch.rand(examples, NODES, generator=generator).argsort(1)
    order = 1 + torch.rand(examples, NODES - 1, generator=generator).argsort(1)
    ends = torch.stack([parent.gather(1, order), order], -1)
    inputs = torch.cat([ends.flatten(1), goal[:, None], path[:, :-1]], 1)
    place = torch.full((examples, NODES), -1)  # of each node: where its parent stands
    place.scatter_(1, order, 2 * torch.arange(NODES - 1).expand(examples, -1))
    above = torch.full_like(inputs, -1)
    above[:, 0 : 2 * (NODES - 1) : 2] = place.gather(1, ends[..., 0])
    goal_at = 2 * (NODES - 1)
    above[:, goal_at] = place[rows, goal]
    to_goal = torch.full_like(inputs, -1)
    to_goal[:, goal_at + 1 :] = goal_at
    return Drawn(
        name.gather(1, inputs),
        name.gather(1, path[:, 1:]),
        roles=[*["parent", "child"] * (NODES - 1), "goal", *["path"] * SHOWN],
        relations={"above": above, "the goal": to_goal},
    )


BRACKETS = 20


def brackets(examples: int, seed: int) -> Drawn:
    """Whether brackets are balanced. Half of the sequences are; of the others, half are shuffled
    and half random.
    """
    generator = torch.Generator().manual_seed(seed)
    kind = torch.randint(0, 4, (examples,), generator=generator)
    # A balanced sequence: open or close at random, as far as both are possible.
    height, opened = torch.zeros(2, examples, dtype=torch.long)
    signs = []
    for _ in range(BRACKETS):
        may_open, may_close = opened < BRACKETS // 2, height > 0
        opens = may_open & (~may_close | (torch.rand(examples, generator=generator) < 0.5))
        signs.append(opens)
        opened, height = opened + opens.long(), height + torch.where(opens, 1, -1)
    fine = torch.stack(signs, 1)
    mixed = fine.gather(1, torch.rand(examples, BRACKETS, generator=generator).argsort(1))
    free = torch.rand(examples, BRACKETS, generator=generator) < 0.5
    opens = torch.where((kind == 2)[:, None], mixed, torch.where((kind == 3)[:, None], free, fine))
    heights = torch.where(opens, 1, -1).cumsum(1)
    good = (heights.min(1).values >= 0) & (heights[:, -1] == 0)
    inputs = torch.cat([opens.long(), torch.full((examples, 1), 2)], 1)
    return Drawn(inputs, good.long()[:, None], roles=[*["bracket"] * BRACKETS, "end"])


def sorted_list(examples: int, seed: int) -> Drawn:
    """ARENA's sorted list: numbers, a separator, and the same numbers in order. There is no
    relation to the next larger number, since it would lead to the answer.
    """
    return replace(sorting(examples, seed), relations={})


def _sanford(layers: int, heads: int) -> Recipe:
    """One of Sanford et al.'s models, with as many hops as the law allows, and one more. (In the
    paper: up to 16 hops, 100,000 steps of 32 sequences.)
    """
    lawful = reach(layers)
    hops = tuple(k for k in (1, 2, 3, 4, 6, 8) if k <= lawful + 1)

    def draw(examples: int, seed: int) -> Drawn:
        return khop(hops, examples, seed)

    return Recipe(
        "Sanford, Hsu and Telgarsky 2024", draw, ("count", "letter"), LETTERS + len(hops) + 1,
        layers, heads, steps=8_000, chance=math.log(LETTERS), batch=32, rate=1e-3,
        by_look_ups=hops[-1] <= lawful,
    )  # fmt: skip


RECIPES = {
    "guo": Recipe(
        "Guo et al. 2025", two_hops, ("key 0", "value 0", "key 1", "value 1", "query"), NAMES, 3, 1,
        steps=2_500, chance=math.log(CHAINS), batch=512, width=256, falling=False,
    ),
    "wu": Recipe(
        "Wu, Geiger and Millière 2025", binding,
        ("left", "equals", "right", "newline", "query"), NEWLINE + 1, 6, 4, steps=20_000,
        chance=math.log(DIGITS), rate=5e-4,
    ),
    "brinkmann": Recipe(
        "Brinkmann et al. 2024", tree, ("parent", "child", "goal", "path"), NODES, 6, 1,
        steps=20_000, chance=math.log(2),
    ),
    "brackets": Recipe(
        "ARENA, balanced brackets", brackets, ("bracket", "end"), 3, 3, 2, steps=4_000,
        chance=math.log(2), width=56, rate=1e-3, by_look_ups=False,
    ),
    "sorting": Recipe(
        "ARENA, sorted list", sorted_list, ("number", "separator", "sorted"), NUMBERS + 1, 1, 2,
        steps=4_000, chance=math.log(NUMBERS), width=96, rate=1e-3,
    ),
    "sums": Recipe(
        "ARENA, cumulative sum", cumulative_sum, ("digit",), BASE, 1, 1, steps=6_000,
        chance=math.log(BASE), width=64, rate=1e-3, by_look_ups=False,
    ),
    **{f"khop-{layers}x{heads}": _sanford(layers, heads)
       for layers in (2, 3, 4, 5) for heads in (4, 8)},
}  # fmt: skip


def train(chosen: argparse.Namespace) -> None:
    """Train every model that is not fully trained, for `--minutes` minutes each."""
    chosen.to.mkdir(parents=True, exist_ok=True)
    if chosen.device != "cpu":
        torch.cuda.set_stream(torch.cuda.Stream())  # the default stream cannot be recorded
    for name, seed in product(chosen.only or RECIPES, chosen.seeds):
        end = time.monotonic() + 60 * chosen.minutes
        _trained(name, seed, _path(chosen.to, name, seed), end, chosen)


def _path(folder: Path, name: str, seed: int) -> Path:
    return folder / f"{name}-{seed}.pt"


def _trained(name: str, seed: int, path: Path, end: float, chosen: argparse.Namespace) -> None:
    recipe, first, device = RECIPES[name], (1 + seed) * TRAINED_FROM, chosen.device
    torch.manual_seed(seed)
    model = recipe.blank().to(device).train()
    gpu = model.device.type == "cuda"
    rate = torch.tensor(recipe.rate, device=device) if gpu else recipe.rate
    optimiser = torch.optim.AdamW(model.parameters(), rate, betas=(0.9, 0.99), capturable=gpu)
    update = Recorded(model, optimiser) if gpu else partial(updated, model, optimiser)
    step, spent = 0, 0.0
    if path.exists():
        kept = torch.load(path, weights_only=True, map_location=device)
        model.load_state_dict(kept["model"])
        groups = optimiser.state_dict()["param_groups"]  # as this device wants them
        optimiser.load_state_dict(kept["optimiser"] | {"param_groups": groups})
        step, spent = kept["step"], kept["cpu_seconds"]
    begun, saved = time.process_time() - spent, time.monotonic()
    while step < recipe.steps and time.monotonic() < end:
        _set_rate(optimiser, recipe.rate_at(step))
        drawn = recipe.draw(recipe.batch, first + step)
        with torch.autocast(device, torch.bfloat16, enabled=chosen.bf16):
            loss = update(drawn.inputs.to(device), drawn.targets.to(device))
        step += 1
        if step % 100 == 0:
            row = {"model": name, "seed": seed, "step": step, "loss": round(loss.item(), 4)}
            print_row(row | {"cpu": round(time.process_time() - begun)})
        now = time.monotonic()
        if now > min(saved + SAVED_EVERY, end) or step == recipe.steps:
            saved = now
            kept = {"model": model.state_dict(), "optimiser": optimiser.state_dict(),
                    "step": step, "cpu_seconds": time.process_time() - begun}  # fmt: skip
            torch.save(kept, path.with_suffix(".new"))
            path.with_suffix(".new").replace(path)


def _set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    for group in optimiser.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def updated(
    model: GPT2LMHeadModel, optimiser: torch.optim.Optimizer, inputs: Tensor, targets: Tensor
) -> Tensor:
    """Update the model with a batch; returns the loss before the update."""
    logits = model(inputs).logits[:, -targets.shape[1] :]
    loss = cross_entropy(logits.flatten(0, 1), targets.flatten())
    optimiser.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()
    return loss.detach()


class Recorded:
    """The same as `updated`, recorded as one CUDA graph after a few steps, since launching kernels
    takes most of the time.
    """

    def __init__(self, model: GPT2LMHeadModel, optimiser: torch.optim.Optimizer) -> None:
        self.update = partial(updated, model, optimiser)
        self.calls, self.graph = 0, torch.cuda.CUDAGraph()

    def __call__(self, inputs: Tensor, targets: Tensor) -> Tensor:
        self.calls += 1
        if self.calls <= 3:
            return self.update(inputs, targets)
        if self.calls == 4:
            self.batch = inputs.clone(), targets.clone()
            with torch.cuda.graph(self.graph):
                self.loss = self.update(*self.batch)
        self.batch[0].copy_(inputs)
        self.batch[1].copy_(targets)
        self.graph.replay()
        return self.loss


def read(chosen: argparse.Namespace) -> None:
    """Print a row for each fully trained model."""
    for name, seed in product(chosen.only or RECIPES, chosen.seeds):
        recipe, path = RECIPES[name], _path(chosen.models, name, seed)
        if not path.exists():
            continue
        kept = torch.load(path, weights_only=True, map_location="cpu")
        if kept["step"] == recipe.steps:
            model = recipe.blank().eval()
            model.load_state_dict(kept["model"])
            print_row(row(name, seed, recipe, model))


@torch.no_grad()
def error(recipe: Recipe, model: nn.Module) -> float:
    """The share of wrong answers on fresh examples."""
    drawn = recipe.draw(TESTED, TRAINED_FROM - 1)
    wrong = []
    for inputs, targets in zip(drawn.inputs.split(256), drawn.targets.split(256), strict=True):
        answers = model(inputs).logits[:, -targets.shape[1] :].argmax(-1)
        wrong.append((answers != targets).double().mean(1))
    return float(torch.cat(wrong).mean())


def row(name: str, seed: int, recipe: Recipe, model: nn.Module) -> dict[str, Any]:
    """The row of one model: its error, its circuit and the verdict."""
    about = {
        "benchmark": "strangers", "model": name, "paper": recipe.paper,
        "shape": f"{recipe.layers} x {recipe.heads}", "error": round(error(recipe, model), 4),
        "machine": processor(), "threads": torch.get_num_threads(),
        "seeds": {"model": seed, "search": 0},
    }  # fmt: skip
    begun = time.process_time()
    try:
        found = discover(model, recipe.task)
    except HopscopeError as refusal:
        return about | {"refused": str(refusal)}
    seconds = time.process_time() - begun
    peak = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2)
    return about | {"peak_gb": peak} | described(found, seconds) | judged(recipe, found)


def judged(recipe: Recipe, found: Circuit) -> dict[str, Any]:
    """How the rows of a circuit are described (rule, table, model), and whether its verdict is
    honest (rule 4).
    """
    written: dict[str, int] = {}
    for each in found.components:
        written[each.written] = written.get(each.written, 0) + len(each.rows)
    same = [each.same_answer for each in found.scores]
    sure = all(
        each is not None and each.mean > AGREES
        for score in found.scores
        if score.rest == "even"
        for each in (score.recovered, score.same_answer)
    )
    explained = found.verdict.startswith(("Explained", "Partly explained"))
    return {
        "same answers": [each and round(each.mean, 3) for each in same],
        "rows": written,
        "honest": not explained or (recipe.by_look_ups and sure),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    for name, way in {"train": train, "read": read}.items():
        command = commands.add_parser(name)
        command.set_defaults(way=way)
        command.add_argument("--only", nargs="*", choices=RECIPES)
        command.add_argument("--seeds", nargs="*", type=int, default=[0])
        if name == "train":
            command.add_argument("--to", type=Path, required=True)
            command.add_argument("--minutes", type=float, default=math.inf)
            command.add_argument("--device", default="cpu")
            command.add_argument("--bf16", action="store_true", help="products in bf16 (autocast)")
        else:
            command.add_argument("--models", type=Path, required=True)
    torch.set_num_threads(1)
    chosen = parser.parse_args()
    chosen.way(chosen)


if __name__ == "__main__":
    main()
