"""Times of one training step, for hopscope and for other transformers of the same shape.

    python benchmarks/train_step.py [--device cuda] [--rounds 6] [--clock cpu] [--threads 1]

A step draws the batch, then runs forward, backward and AdamW. All programs take turns in one
process, so that other load on the machine slows all of them equally. A turn is one untimed step
(since the others have filled the caches) and three timed ones. A row has the median and the fastest
step. The peers run in float32 and in bf16 autocast, with the same batches, loss, optimiser (fused
AdamW) and C allocator settings.

`floor` is the time of the step's matrix products alone, in bf16, with operands in memory: once for
the full shape, which the peers compute, and once for hopscope, whose last layer computes only the
read positions.

On a busy machine, threads wait for each other longer than they compute: use `--clock cpu --threads
1` to measure the CPU time of the process.

Needs the extra `bridges` (transformers) and x-transformers.
"""

import argparse
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import torch
from rows import print_row
from torch import Tensor, nn

from hopscope.configs import Experiment, Model, Retrieval, Training
from hopscope.machine import keep_pages
from hopscope.models import native
from hopscope.tasks import examples, hop_losses, sampler_of, visited
from hopscope.training.trainer import Trainer

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
Step = Callable[[], object]
Name = TypeVar("Name")
"""The type of the programs' names."""


@dataclass(frozen=True)
class Shape:
    """One of the two shapes of the papers' experiments."""

    name: str
    layers: int
    heads: int
    hops: int
    batch: int

    def experiment(self, precision: str) -> Experiment:
        return Experiment(
            task=Retrieval(hops=self.hops),
            model=Model(layers=self.layers, heads=self.heads, d_model=128),
            training=Training(batch=self.batch, precision=precision, validation_examples=8),
        )


SHAPES = (
    Shape("12 layers × 1 head, batch 128, D=3", 12, 1, 3, 128),
    Shape("4 layers × 8 heads, batch 512, D=5", 4, 8, 5, 512),
)


class Peer(nn.Module):
    """An input map, causal pre-norm blocks of another library, a head at the query positions."""

    def __init__(self, experiment: Experiment, body: nn.Module) -> None:
        super().__init__()
        interface = experiment.task.interface()
        self.read = interface.read
        self.input = nn.Linear(interface.inputs, experiment.model.d_model)
        self.body = body
        self.head = nn.Linear(experiment.model.d_model, interface.outputs)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.head(self.body(self.input(inputs))[:, -self.read :])


class Gpt2(nn.Module):
    """transformers' GPT2Model."""

    def __init__(self, model: Model, length: int) -> None:
        super().__init__()
        from transformers import GPT2Config, GPT2Model

        config = GPT2Config(
            vocab_size=1, n_positions=length, n_embd=model.d_model, n_layer=model.layers,
            n_head=model.heads, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False,
            bos_token_id=None, eos_token_id=None,
        )  # fmt: skip
        self.model = GPT2Model(config)

    def forward(self, x: Tensor) -> Tensor:
        return self.model(inputs_embeds=x).last_hidden_state


class TorchEncoder(nn.Module):
    """nn.TransformerEncoder with a causal mask."""

    def __init__(self, model: Model, length: int) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            model.d_model, model.heads, model.mlp_width, 0.0, "gelu",
            batch_first=True, norm_first=True,
        )  # fmt: skip
        norm = nn.LayerNorm(model.d_model)
        self.encoder = nn.TransformerEncoder(layer, model.layers, norm, enable_nested_tensor=False)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length))

    def forward(self, x: Tensor) -> Tensor:
        return self.encoder(x, mask=self.mask, is_causal=True)


def x_transformers(flash: bool) -> Callable[[Model, int], nn.Module]:
    """x-transformers' Decoder, with fused attention or with attention written out."""

    def build(model: Model, _: int) -> nn.Module:
        from x_transformers import Decoder

        return Decoder(
            dim=model.d_model, depth=model.layers, heads=model.heads,
            attn_dim_head=model.head_width, attn_flash=flash,
        )  # fmt: skip

    return build


PEERS: dict[str, Callable[[Model, int], nn.Module]] = {
    "transformers GPT2Model": Gpt2,
    "nn.TransformerEncoder": TorchEncoder,
    "x-transformers (flash)": x_transformers(flash=True),
    "x-transformers (attention written out)": x_transformers(flash=False),
}


def peer_step(name: str, shape: Shape, autocast: bool, device: torch.device) -> Step:
    """A training step of a peer's model, written in the usual way."""
    experiment = shape.experiment("float32")
    sampler = sampler_of(experiment.task, device)
    body = PEERS[name](experiment.model, experiment.task.interface().length)
    model = Peer(experiment, body).to(device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1, fused=True)
    count = iter(range(10**9))

    def step() -> None:
        index = visited(torch.zeros(1, dtype=torch.int64), next(count), shape.batch, 2**18)[0]
        batch = examples(sampler, 0, index.to(device))
        optimiser.zero_grad()
        with torch.autocast(device.type, torch.bfloat16, enabled=autocast):
            outputs = model(batch.inputs)
        hop_losses(experiment.task, outputs, batch).mean().backward()
        optimiser.step()

    return step


def floor_step(shape: Shape, device: torch.device, read_only: bool) -> Step:
    """The matrix products of a step only: each forward product, and the two of its gradients."""
    experiment = shape.experiment("bf16")
    model, interface = experiment.model, experiment.task.interface()
    length, width, heads = interface.length, model.d_model, model.heads
    products: list[tuple[Tensor, Tensor]] = []

    def tensor(*sizes: int) -> Tensor:
        return torch.randn(*sizes, device=device).bfloat16()

    def affine(rows: int, inputs: int, outputs: int) -> None:
        x, w, g = tensor(rows, inputs), tensor(inputs, outputs), tensor(rows, outputs)
        products.extend([(x, w), (g, w.T), (g.T, x)])

    def attention(queries: int) -> None:
        each = shape.batch * heads
        q, k = tensor(each, queries, width // heads), tensor(each, length, width // heads)
        p = tensor(each, queries, length)
        products.extend([(q, k.mT), (p, k), (p.mT, q), (p, k), (p.mT, q), (q, k.mT)])

    for layer in range(model.layers):
        read = interface.read if read_only and layer == model.layers - 1 else length
        rows, read_rows = shape.batch * length, shape.batch * read
        if read == length:
            affine(rows, width, 3 * width)
        else:
            affine(read_rows, width, width)
            affine(rows, width, 2 * width)
        attention(read)
        affine(read_rows, width, width)
        affine(read_rows, width, model.mlp_width)
        affine(read_rows, model.mlp_width, width)

    def step() -> None:
        for a, b in products:
            a @ b

    return step


def contestants(
    shape: Shape, device: torch.device, precisions: list[str]
) -> dict[tuple[str, str], Step]:
    steps: dict[tuple[str, str], Step] = {}
    for precision in precisions:
        for name in PEERS:
            steps[name, precision] = peer_step(name, shape, precision == "bf16", device)
        trainer = Trainer(shape.experiment(precision), device, precision)
        steps["hopscope", precision] = trainer.advance
    steps["floor, full shape", "bf16"] = floor_step(shape, device, read_only=False)
    steps["floor, what we compute", "bf16"] = floor_step(shape, device, read_only=True)
    return steps


def seconds(step: Step, device: torch.device, clock: str) -> float:
    begun = CLOCKS[clock]()
    step()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return CLOCKS[clock]() - begun


def in_turns(
    steps: Mapping[Name, Step], rounds: int, device: torch.device, clock: str, *,
    warm_up: int = 1, again: int = 0,
) -> dict[Name, list[float]]:  # fmt: skip
    """The milliseconds of each program's steps. Programs take turns; the first rounds are a
    warm-up. With `again`, a turn has one step that is not timed (since other programs have filled
    the caches) and `again` steps that are.
    """
    times: dict[Name, list[float]] = {name: [] for name in steps}
    for turn in range(warm_up + rounds):
        for name, step in steps.items():
            taken = [1e3 * seconds(step, device, clock) for _ in range(1 + again)]
            if turn >= warm_up:
                times[name] += taken[1:] or taken
    return times


def median(times: list[float]) -> float:
    """The median; of an even number of times, the upper middle one, which was measured."""
    return sorted(times)[len(times) // 2]


def where(device: torch.device, clock: str) -> dict[str, object]:
    """The machine, backend, threads and clock of a measurement."""
    if device.type == "cuda":
        kernels = native.backend_on(device)
        return {"machine": torch.cuda.get_device_name(), "kernels": kernels, "clock": clock}
    machine = torch.cpu.get_capabilities().get("cpu_name") or platform.machine()
    return {
        "machine": machine, "kernels": native.backend(), "threads": torch.get_num_threads(),
        "clock": clock,
    }  # fmt: skip


def report(shape: Shape, rows: list[dict], of: dict[str, object]) -> None:
    head = {"benchmark": "train_step", "shape": shape.name, "torch": torch.__version__, **of}
    for row in rows:
        rounded = {k: round(v, 1) if isinstance(v, float) else v for k, v in row.items()}
        print_row({**head, **rounded})
    best: dict[str, float] = {}
    for row in rows:
        best[row["who"]] = min(row["median_ms"], best.get(row["who"], row["median_ms"]))
    ours = best.pop("hopscope")
    ratios = {f"times faster than {who}": round(ms / ours, 2) for who, ms in sorted(best.items())}
    print_row({**head, "hopscope_ms": round(ours, 1), **ratios})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--clock", choices=sorted(CLOCKS), default="wall")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--precisions", nargs="+", default=["float32", "bf16"])
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    device = torch.device(chosen.device)
    of = where(device, chosen.clock)
    keep_pages()
    for shape in SHAPES:
        torch.manual_seed(0)
        steps = contestants(shape, device, chosen.precisions)
        times = in_turns(steps, chosen.rounds, device, chosen.clock, again=3)
        rows = [
            {"who": who, "precision": name, "median_ms": median(taken), "best_ms": min(taken)}
            for (who, name), taken in times.items()
        ]
        report(shape, rows, of)


if __name__ == "__main__":
    main()
