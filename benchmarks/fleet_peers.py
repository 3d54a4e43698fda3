"""Time of a training step of single models and fleets: hopscope, and expert code in JAX and torch.

    python benchmarks/fleet_peers.py --device cuda --models 1 8 32            # about 15 minutes
    python benchmarks/fleet_peers.py --shapes tiny --clock cpu --threads 1

All programs draw their examples on the device within the step, have float32 master weights, start
from hopscope's initial weights, compute the last layer only where it is read, and compute attention
without fused kernels.

* jax: `vmap` over the seeds, `scan` over the steps of a turn, one `jit`. hopscope does not depend
  on jax: install `jax[cpu]` or `jax[cuda13]` in addition (0.10 was used);
* torch: `vmap` over the seeds, compiled; on a GPU the whole step is recorded as one CUDA graph.

Before the timing, every peer computes the loss of hopscope's first batch with hopscope's weights in
float32; the rows contain the difference. On a busy processor, use `--clock cpu --threads 1` to
measure the CPU time of the process; the rows contain the load.
"""

import argparse
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from rows import print_row
from torch import Tensor
from torch.nn import functional
from train_step import CLOCKS, SHAPES, Shape, in_turns, median, where

from hopscope.configs import Experiment
from hopscope.machine import keep_pages
from hopscope.models.layers import NORM_EPS
from hopscope.training.trainer import Trainer

SHAPES_BY_NAME = {
    "tiny": Shape("2 layers × 2 heads, batch 32, D=1", 2, 2, 1, 32),
    "deep": SHAPES[0],
    "wide": SHAPES[1],
    "figure-4": Shape("8 layers × 8 heads, batch 512, D=5", 8, 8, 5, 512),
}
WHO = ("hopscope", "jax", "torch")
BETAS, EPS = (0.9, 0.999), 1e-8
Weights = Mapping[str, Any]
"""hopscope's parameters by name."""
Turn = Callable[[], object]
"""A function that takes the steps of a turn, and returns when they are done."""


@dataclass(frozen=True)
class Setting:
    """What is trained, on which device, in which precision, and the number of steps in a turn."""

    experiment: Experiment
    device: torch.device
    precision: str
    steps: int

    @property
    def models(self) -> int:
        return len(self.experiment.seeds)

    @property
    def orders(self) -> tuple[int, int, int]:
        """The numbers of groups, examples and chains; each group's chains are shuffled."""
        task = self.experiment.task
        return task.hops + 1, self.experiment.training.batch, task.chains


def code(setting: Setting) -> Tensor:
    """The position code [seq, dim] that hopscope appends to every symbol."""
    task = setting.experiment.task
    place = torch.arange(task.interface().length, dtype=torch.float64)[:, None]
    angles = place * torch.tensor(task.rates(), dtype=torch.float64)
    return torch.cat([angles.cos(), angles.sin()], -1).float()


def examples(setting: Setting, symbols: Any, orders: Any, code: Any, ops: Any) -> tuple[Any, Any]:
    """Inputs and targets, from symbols [batch, chain, hop, dim] and an order for each group."""
    task, batch = setting.experiment.task, len(symbols)
    picked = [ops.take(symbols, order[:, :, None, None], 1) for order in orders]
    facts = [
        picked[hop][:, :, hop : hop + 2].reshape(batch, -1, task.dim)
        for hop in reversed(range(task.hops))
    ]
    tokens = ops.cat([*facts, picked[-1][:, :, 0]], 1)
    return ops.cat([tokens, ops.widened(code, tokens.shape)], -1), picked[-1][:, :, 1:]


def loss(setting: Setting, weights: Weights, inputs: Any, targets: Any, ops: Any) -> Any:
    """The mean squared error of one model, computed in the setting's precision."""
    model, read = setting.experiment.model, targets.shape[1]
    w = {name: ops.cast(value, setting.precision) for name, value in weights.items()}
    length = inputs.shape[1]

    def affine(name: str, x: Any) -> Any:
        return x @ w[f"{name}.weight"].mT + w[f"{name}.bias"]

    def norm(name: str, x: Any) -> Any:
        return ops.norm(x) * w[f"{name}.weight"] + w[f"{name}.bias"]

    def split(x: Any) -> Any:
        return x.reshape(*x.shape[:2], model.heads, -1).swapaxes(1, 2)

    x = affine("input", ops.cast(inputs, setting.precision))
    for layer in range(model.layers):
        name, rows = f"blocks.{layer}", read if layer == model.layers - 1 else length
        maps = [f"{name}.attention.{which}" for which in ("query", "key", "value")]
        packed = ops.cat([w[f"{each}.weight"] for each in maps], 0)
        y = norm(f"{name}.attention_norm", x) @ packed.mT
        query, key, value = (y[..., n * model.d_model : (n + 1) * model.d_model] for n in range(3))
        query = split(query[:, -rows:] + w[f"{maps[0]}.bias"])
        scores = (query @ split(key).mT) * model.head_width**-0.5
        brought = ops.attention(scores) @ split(value + w[f"{maps[2]}.bias"])
        brought = brought.swapaxes(1, 2).reshape(len(x), rows, -1)
        x = x[:, -rows:] + affine(f"{name}.attention.out", brought)
        hidden = ops.gelu(affine(f"{name}.mlp.up", norm(f"{name}.mlp_norm", x)))
        x = x + affine(f"{name}.mlp.down", hidden)
    outputs = ops.cast(affine("head", norm("norm", x)), "float32")
    return ((outputs.reshape(targets.shape) - targets) ** 2).mean()


def torch_ops(device: torch.device) -> Any:
    types = {"bf16": torch.bfloat16, "float32": torch.float32}

    def attention(scores: Tensor) -> Tensor:
        rows, length = scores.shape[-2:]
        later = torch.ones(rows, length, dtype=torch.bool, device=device).triu(1 + length - rows)
        return torch.softmax(scores.float().masked_fill(later, -math.inf), -1).to(scores.dtype)

    return SimpleNamespace(
        cat=torch.cat, take=torch.take_along_dim, attention=attention, gelu=functional.gelu,
        cast=lambda x, precision: x.to(types[precision]),
        widened=lambda code, shape: code.expand(shape),
        norm=lambda x: functional.layer_norm(x, x.shape[-1:], eps=NORM_EPS),
    )  # fmt: skip


def jax_ops() -> Any:
    import jax
    from jax import numpy as jnp

    types = {"bf16": jnp.bfloat16, "float32": jnp.float32}

    def attention(scores: Any) -> Any:
        rows, length = scores.shape[-2:]
        seen = jnp.tri(rows, length, length - rows, dtype=bool)
        wide = jnp.where(seen, scores.astype(jnp.float32), -jnp.inf)
        return jax.nn.softmax(wide, -1).astype(scores.dtype)

    def norm(x: Any) -> Any:
        wide = x.astype(jnp.float32)
        centred = wide - wide.mean(-1, keepdims=True)
        return (centred * jax.lax.rsqrt(centred.var(-1, keepdims=True) + NORM_EPS)).astype(x.dtype)

    return SimpleNamespace(
        cat=jnp.concatenate, take=jnp.take_along_axis, attention=attention, norm=norm,
        gelu=lambda x: jax.nn.gelu(x, approximate=False),
        cast=lambda x, precision: x.astype(types[precision]),
        widened=jnp.broadcast_to,
    )  # fmt: skip


def hopscope_turn(setting: Setting) -> Turn:
    trainer = Trainer(setting.experiment, setting.device, setting.precision)

    def turn() -> None:
        for _ in range(setting.steps):
            trainer.advance()
        if setting.device.type == "cuda":
            torch.cuda.synchronize()

    return turn


def torch_turn(setting: Setting) -> Turn:
    ops, device = torch_ops(setting.device), setting.device
    task, places = setting.experiment.task, code(setting).to(device)
    weights = {name: value.to(device).requires_grad_() for name, value in initial(setting).items()}
    gpu = device.type == "cuda"
    optimiser = torch.optim.AdamW(
        weights.values(), lr=1e-3, weight_decay=0.1, fused=True, capturable=gpu
    )
    groups, batch, chains = setting.orders

    def one(weights: Weights, symbols: Tensor, order: Tensor) -> Tensor:
        return loss(setting, weights, *examples(setting, symbols, order, places, ops), ops)

    @torch.compile
    def losses(weights: Weights, symbols: Tensor, order: Tensor) -> Tensor:
        if setting.models == 1:
            return one({name: w[0] for name, w in weights.items()}, symbols[0], order[0])
        return torch.vmap(one)(weights, symbols, order).sum()

    def step() -> None:
        sizes = (setting.models, batch, chains, task.hops + 1, task.dim)
        order = torch.rand(setting.models, groups, batch, chains, device=device).argsort(-1)
        optimiser.zero_grad()
        losses(weights, torch.randn(sizes, device=device), order).backward()
        optimiser.step()

    if gpu:
        step = recorded(step)

    def turn() -> None:
        for _ in range(setting.steps):
            step()
        if gpu:
            torch.cuda.synchronize()

    return turn


def recorded(step: Turn) -> Turn:
    """The step recorded as one CUDA graph, after a few steps on another stream."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def jax_turn(setting: Setting) -> Turn:
    import jax
    from jax import numpy as jnp

    ops, task, places = jax_ops(), setting.experiment.task, jnp.asarray(code(setting).numpy())
    groups, batch, chains = setting.orders
    rate, decay, (first, second) = 1e-3, 0.1, BETAS

    def one(weights: Any, key: Any) -> Any:
        of_symbols, of_orders = jax.random.split(key)
        symbols = jax.random.normal(of_symbols, (batch, chains, task.hops + 1, task.dim))
        order = jax.random.uniform(of_orders, (groups, batch, chains)).argsort(-1)
        return loss(setting, weights, *examples(setting, symbols, order, places, ops), ops)

    def step(state: Any, count: Any) -> Any:
        weights, means, squares, keys = state
        now = jax.vmap(jax.random.fold_in, (0, None))(keys, count)
        losses, gradients = jax.vmap(jax.value_and_grad(one))(weights, now)
        means = jax.tree.map(lambda m, g: first * m + (1 - first) * g, means, gradients)
        squares = jax.tree.map(lambda s, g: second * s + (1 - second) * g * g, squares, gradients)

        def moved(w: Any, m: Any, s: Any) -> Any:
            size = jnp.sqrt(s / (1 - second**count)) + EPS
            return w - rate * (decay * w + m / (1 - first**count) / size)

        return (jax.tree.map(moved, weights, means, squares), means, squares, keys), losses

    @jax.jit
    def steps(state: Any, begin: Any) -> Any:
        return jax.lax.scan(step, state, begin + jnp.arange(1.0, setting.steps + 1))

    weights = {name: jnp.asarray(value.numpy()) for name, value in initial(setting).items()}
    zeros = {name: jnp.zeros_like(value) for name, value in weights.items()}
    keys = jax.vmap(jax.random.key)(jnp.asarray(setting.experiment.seeds))
    held = {"state": (weights, zeros, zeros, keys), "begin": 0}

    def turn() -> None:
        held["state"], losses = steps(held["state"], held["begin"])
        held["begin"] += setting.steps
        losses.block_until_ready()

    return turn


def initial(setting: Setting) -> dict[str, Tensor]:
    """hopscope's initial weights, with a leading model axis."""
    trainer = Trainer(setting.experiment, torch.device("cpu"), "float32")
    alone = setting.models == 1
    named = trainer.weights.named().items()
    return {name: (w[None] if alone else w).clone() for name, w in named}


def difference(setting: Setting, who: str) -> float:
    """The difference between a peer's loss and hopscope's on hopscope's first batch, in float32."""
    exact = Setting(setting.experiment, torch.device("cpu"), "float32", 1)
    batch = Trainer(exact.experiment, exact.device, "float32")._batch(0)
    ours = Trainer(exact.experiment, exact.device, "float32").advance().mean(-1)[0]
    single = exact.models == 1
    arrays = [batch.inputs, batch.targets] if single else [batch.inputs[0], batch.targets[0]]
    weights = {name: w[0] for name, w in initial(exact).items()}
    if who == "jax":
        from jax import numpy as jnp

        weights = {name: jnp.asarray(w.numpy()) for name, w in weights.items()}
        theirs = loss(exact, weights, *(jnp.asarray(a.numpy()) for a in arrays), jax_ops())
    else:
        theirs = loss(exact, weights, *arrays, torch_ops(exact.device))
    return abs(float(theirs) - float(ours))


TURNS = {"hopscope": hopscope_turn, "jax": jax_turn, "torch": torch_turn}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES_BY_NAME, default=["deep", "wide"])
    parser.add_argument("--models", nargs="+", type=int, default=[1, 8, 32])
    parser.add_argument("--precisions", nargs="+", default=["bf16"])
    parser.add_argument("--who", nargs="+", choices=WHO, default=list(WHO))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20, help="steps of a turn")
    parser.add_argument("--clock", choices=sorted(CLOCKS), default="wall")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    if chosen.threads == 1:  # read when jax is imported
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
        os.environ["NPROC"] = "1"
    device = torch.device(chosen.device)
    keep_pages()
    for shape in (SHAPES_BY_NAME[name] for name in chosen.shapes):
        for precision in chosen.precisions:
            for models in chosen.models:
                seeds = {"seeds": tuple(range(models))}
                experiment = shape.experiment(precision).model_copy(update=seeds)
                setting = Setting(experiment, device, precision, chosen.steps)
                turns = {name: TURNS[name](setting) for name in chosen.who}
                times = in_turns(turns, chosen.rounds, device, chosen.clock)
                for name, its in times.items():
                    row = {
                        "benchmark": "fleet_peers", "shape": shape.name, "precision": precision,
                        "models": models, "who": name, "median_ms": median(its) / chosen.steps,
                        "best_ms": min(its) / chosen.steps, "load": round(os.getloadavg()[0], 1),
                        "loss_differs": None if name == "hopscope" else difference(setting, name),
                        "torch": torch.__version__, **where(device, chosen.clock),
                    }  # fmt: skip
                    print_row(row)


if __name__ == "__main__":
    main()
