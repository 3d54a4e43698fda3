"""Discovery on long sequences: seconds and memory of `discover` on 100 positions.

    python results/scripts/discovery_long.py --store runs [--only gpt2] [--examples 128]

Trains a model of 4 layers × 4 heads (d 128) on four hops over sequences of 100 tokens with 4
letters, unless it is in the store already (a few minutes), and looks for its circuit three times:
in hopscope's own model, in a GPT-2 of transformers with the same weights (the `bridges` extra),
which an adapter walks, and in a GPT-2 with random weights (where the search is forced). Each
search runs in a process of its own. A JSON row says

- `seconds` and `cpu_seconds` (of which `kernel_seconds` are the system's) of `discover` alone;
- `begin_mb`: the most memory that the process had before the search, `peak_mb`: at any time;
- what was found: losses (of the model, of the circuit with prescribed and with computed attention,
  and with everything ablated) and all paths.
"""

import argparse
import json
import pathlib
import resource
import subprocess
import sys
import time
from typing import Any

import torch
from torch import nn

from hopscope.circuits import discover
from hopscope.configs import Experiment, KHop, Model, Training
from hopscope.machine import processor
from hopscope.models import Transformer
from hopscope.training import train

TASK = KHop(hops=4, alphabet=4, length=100)
EXPERIMENT = Experiment(
    task=TASK,
    model=Model(layers=4, heads=4, d_model=128, init="fan-in"),
    training=Training(
        steps=700, batch=64, schedule="cosine", warmup=200,
        validate_every=200, validation_examples=64, checkpoint_every=2_000,
    ),
)  # fmt: skip
KINDS = ("hopscope", "gpt2", "untrained")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=pathlib.Path, default=pathlib.Path("runs"))
    parser.add_argument("--only", choices=KINDS, help="one of the two models")
    parser.add_argument("--examples", type=int, default=128)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--alone", action="store_true", help="measure in this very process")
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    if chosen.alone:
        print(json.dumps(row(chosen.only, chosen.store, chosen.examples)), flush=True)
        return
    if chosen.only != "untrained":
        train(EXPERIMENT, chosen.store)
    for kind in [chosen.only] if chosen.only else KINDS:
        arguments = ["--store", chosen.store, "--examples", chosen.examples, "--only", kind,
                     "--threads", chosen.threads]  # fmt: skip
        command = [sys.executable, __file__, "--alone", *map(str, arguments)]
        subprocess.run(command, check=True)


def row(kind: str, store: pathlib.Path, examples: int) -> dict[str, Any]:
    """One search, measured."""
    model = model_of(kind, store)
    begin, clock = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    circuit = discover(model, TASK, examples=examples, force=kind == "untrained")
    seconds, end = time.perf_counter() - clock, resource.getrusage(resource.RUSAGE_SELF)
    user, kernel = end.ru_utime - begin.ru_utime, end.ru_stime - begin.ru_stime
    return {
        "benchmark": "discovery_long",
        "model": f"{kind}, 4 x 4 heads, {TASK.hops} hops, {TASK.length} positions",
        "weights": circuit.model[:12],
        "examples": examples,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(user + kernel, 1),
        "kernel_seconds": round(kernel, 1),
        "begin_mb": round(begin.ru_maxrss / 2**10),
        "peak_mb": round(end.ru_maxrss / 2**10),
        "losses": {
            name: round(circuit.losses.mean(name), 5)
            for name in ("model", "prescribed", "computed", "ablated")
        },
        "verdict": circuit.verdict,
        "components": len(circuit.components),
        "paths": [str(path) for path in circuit.paths],
        "machine": processor(),
        "threads": torch.get_num_threads(),
    }


def model_of(kind: str, store: pathlib.Path) -> nn.Module:
    """One of `KINDS`."""
    if kind == "untrained":
        torch.manual_seed(0)
        return as_gpt2(Transformer.seeded(EXPERIMENT.model, TASK.interface(), 0))
    own = train(EXPERIMENT, store).model
    return own if kind == "hopscope" else as_gpt2(own)


@torch.no_grad()
def as_gpt2(own: Transformer) -> nn.Module:
    """The same weights in transformers' GPT-2 (whose head gets the bias that ours has)."""
    from transformers import GPT2Config, GPT2LMHeadModel

    shape = own.config
    outputs, letters = own.interface.outputs, own.interface.inputs
    config = GPT2Config(
        vocab_size=outputs, n_positions=own.interface.length, n_embd=shape.d_model,
        n_layer=shape.layers, n_head=shape.heads, activation_function="gelu",
        tie_word_embeddings=False, attn_implementation="eager", bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    model = GPT2LMHeadModel(config)
    model.lm_head = nn.Linear(shape.d_model, outputs)
    weights, body = own.state_dict(), model.transformer
    body.wte.weight.zero_()  # it has a row for each output
    body.wte.weight[:letters] = weights["input.token"]
    body.wpe.weight.copy_(weights["input.position"])
    model.lm_head.load_state_dict(_named(weights, "head"))
    body.ln_f.load_state_dict(_named(weights, "norm"))
    for number, block in enumerate(body.h):
        here = f"blocks.{number}"
        _fill(block, weights, here)
    return model.eval()


def _fill(block: Any, weights: dict[str, torch.Tensor], here: str) -> None:
    heads = [_named(weights, f"{here}.attention.{name}") for name in ("query", "key", "value")]
    none = torch.zeros(len(heads[1]["weight"]))  # our keys have no bias
    block.attn.c_attn.weight.copy_(torch.cat([each["weight"] for each in heads]).mT)
    block.attn.c_attn.bias.copy_(torch.cat([each.get("bias", none) for each in heads]))
    names = {"attention.out": block.attn.c_proj, "mlp.up": block.mlp.c_fc}
    for name, map_ in {**names, "mlp.down": block.mlp.c_proj}.items():
        its = _named(weights, f"{here}.{name}")
        map_.weight.copy_(its["weight"].mT)
        map_.bias.copy_(its["bias"])
    block.ln_1.load_state_dict(_named(weights, f"{here}.attention_norm"))
    block.ln_2.load_state_dict(_named(weights, f"{here}.mlp_norm"))


def _named(weights: dict[str, torch.Tensor], name: str) -> dict[str, torch.Tensor]:
    """The weights of one layer, under their own names."""
    return {
        key.removeprefix(f"{name}."): each
        for key, each in weights.items()
        if key.startswith(f"{name}.")
    }


if __name__ == "__main__":
    main()
