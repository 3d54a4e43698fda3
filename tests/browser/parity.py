"""Models that the page's engine computes and torch computes, and how the two are asked."""

import base64
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from safetensors.torch import save

from hopscope.circuits import Circuit, subject_of
from hopscope.configs import (
    MQAR,
    ConditionalRetrieval,
    Experiment,
    KHop,
    Model,
    Retrieval,
    Training,
)
from hopscope.models import Transformer
from hopscope.study import Study
from hopscope.web.tables import engine_tables

OPEN = """async ([tables, weights, sample, examples]) => {
  const [reader, draw, forward, bench] = await Promise.all(
    ["safetensors", "draw", "transformer", "bench"].map((name) => import(`/${name}.js`)));
  const bytes = Uint8Array.from(atob(weights), (one) => one.charCodeAt(0)).buffer;
  const model = new forward.Transformer(tables.model, reader.readSafetensors(bytes).tensors);
  globalThis.bench = new bench.Bench(model, draw.drawn(tables.task, sample, examples));
}"""
LOSSES = """async ([changes, circuit]) => {
  const { changesOf } = await import("/changes.js");
  const { drive } = await import("/bench.js");
  const { model, exam } = globalThis.bench;
  const base = circuit.map(({ layer, head, change }) => [`${layer}.${head}`, change]);
  try {
    const asked = changesOf(changes, new Map(base), model, exam.table);
    return [...await drive(globalThis.bench.losses(asked))];
  } catch (error) {
    return error.message;
  }
}"""


@dataclass(frozen=True)
class Case:
    """A model and its task."""

    recipe: Experiment
    model: Transformer
    circuit: Circuit | None = None


def random(task: Any, model: Model) -> Case:
    """An untrained model whose weights are large enough to give sharp attention."""
    recipe = Experiment(task=task, model=model, training=Training(steps=1, examples=8, batch=8))
    made = Transformer.seeded(model, task.interface(), 3)
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            noise = torch.empty_like(parameter).normal_(generator=torch.Generator().manual_seed(1))
            scale = 3 if "query" in name else 1
            parameter.add_(noise * scale / parameter.shape[-1] ** 0.5)
    return Case(recipe, made.half().float())


def gallery(name: str) -> Case:
    from hopscope import load

    found = load(f"gallery/{name}")
    assert isinstance(found, Study)
    return Case(found.run.recipe, found.model, found.circuit)


SMALL = {
    "k hops": lambda: random(
        KHop(hops=3, alphabet=4, length=24), Model(layers=3, heads=2, d_model=32, init="fan-in")
    ),
    "recall": lambda: random(
        MQAR(pairs=4, length=24), Model(layers=2, heads=3, d_model=20, d_head=7, d_mlp=30)
    ),
    "bidirectional, without MLP": lambda: random(
        ConditionalRetrieval(order="shuffled", decoys=1),
        Model(layers=2, heads=2, d_model=18, causal=False, mlp=False),
    ),
    "without norm, shuffled": lambda: random(
        Retrieval(hops=2, chains=2, order="shuffled", curriculum=False),
        Model(layers=2, heads=1, d_model=10, norm="none"),
    ),
}
LARGE = ("planted", "transformer-a")
NAMES = ("demo", *LARGE, *SMALL)


@cache
def case(name: str) -> Case:
    return SMALL[name]() if name in SMALL else gallery(name)


def text(model: Transformer) -> str:
    """The weights as the page carries them: float16, in base64."""
    halves = {name: weight.half() for name, weight in model.state_dict().items()}
    return base64.b64encode(save(halves)).decode()


def opened(page: Any, site: str, name: str, examples: int, sample: int = 0) -> Case:
    """The case, open in the page as `bench`."""
    its = case(name)
    page.goto(f"{site}/blank")
    page.evaluate(OPEN, [engine_tables(its.recipe), text(its.model), sample, examples])
    subject_of(its.model)
    return its


def close(found: Any, expected: Any) -> None:
    """The same, numbers within 1e-4."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key in expected:
            close(found[key], expected[key])
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            close(one, other)
    elif isinstance(expected, float):
        assert abs(found - expected) < 1e-4 * max(1.0, abs(expected))
    else:
        assert found == expected
