"""Models that the page's engine computes and torch computes, and how the engine is opened."""

import base64
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
from safetensors.torch import save

from hopscope.circuits import Ablator, Circuit, adapter_of, exam_of
from hopscope.circuits.components import Component, Losses, Table
from hopscope.circuits.pattern import TABLES, Source, table_of
from hopscope.circuits.tables import estimate_tables
from hopscope.configs import (
    MQAR,
    ConditionalRetrieval,
    Experiment,
    KHop,
    Model,
    Retrieval,
    Task,
    Training,
)
from hopscope.models import Transformer
from hopscope.study import Study
from hopscope.web.tables import circuit_changes, engine_tables

OPEN = """async ([tables, hops, circuit, attended, weights]) => {
  const { Engine } = await import("/engine.js");
  const { readSafetensors } = await import("/safetensors.js");
  const bytes = Uint8Array.from(atob(weights), (one) => one.charCodeAt(0)).buffer;
  const read = () => readSafetensors(bytes).tensors;
  globalThis.engine = new Engine({ tables, hops, circuit, attended, weights: read });
}"""


@dataclass(frozen=True)
class Case:
    """A model and its task, as the views hold a run."""

    recipe: Experiment
    trained: Transformer
    circuit: Circuit | None = None

    @property
    def task(self) -> Task:
        return self.recipe.task

    @property
    def hops(self) -> list[str]:
        return self.recipe.loss_names(0)

    def model(self, step: int) -> Transformer:
        return self.trained

    def ablator(self, step: int, examples: int, sample: int) -> Ablator:
        return Ablator(adapter_of(self.trained), exam_of(self.task, examples, sample))

    def spreads(self, keys: list[Any], measure: Any) -> list[Any]:
        """Nothing is remembered."""
        return list(measure(keys))


def random(task: Task, model: Model) -> Case:
    """An untrained model whose weights are large enough to give sharp attention."""
    recipe = Experiment(task=task, model=model, training=Training(steps=1, examples=8, batch=8))
    made = Transformer.seeded(model, task.interface(), 3)
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            noise = torch.empty_like(parameter).normal_(generator=torch.Generator().manual_seed(1))
            scale = 3 if "query" in name else 1
            parameter.add_(noise * scale / parameter.shape[-1] ** 0.5)
    return Case(recipe, made)


def by_tables(its: Case) -> Case:
    """The same with a circuit of rows that follow tables, by position and by token."""
    adapter = adapter_of(its.trained)
    tables = estimate_tables(adapter, exam_of(its.task, 16, 5))
    roles, heads = its.task.roles(), dict(zip(TABLES, ((0, 1), (1, 0)), strict=True))
    circuit = Circuit(
        model=adapter.digest(),
        task=None,
        roles=roles,
        layers=adapter.layers,
        heads=adapter.heads,
        components=tuple(
            Component(layer=at[0], heads=(at[1],), destinations=roles, target=table_of(by, at))
            for by, at in heads.items()
        ),
        tables=tuple(
            Table(head=at, by=by, rows=tables[Source(by, head=at)].tolist())
            for by, at in heads.items()
        ),
        losses=Losses(model=(0,), prescribed=(0,), ablated=(0,), chance=1),
    )
    return replace(its, circuit=circuit)


def gallery(name: str) -> Case:
    from hopscope import load

    found = load(f"gallery/{name}")
    assert isinstance(found, Study)
    return Case(found.run.recipe, found.model, found.circuit)


SMALL = {
    "k hops": lambda: by_tables(
        random(
            KHop(hops=3, alphabet=4, length=24), Model(layers=3, heads=2, d_model=32, init="fan-in")
        )
    ),
    "recall": lambda: random(
        MQAR(pairs=3, queries=2, alphabet=12, length=16, filler="blank"),
        Model(layers=2, heads=3, d_model=20, d_head=7, d_mlp=30),
    ),
    "bidirectional, without MLP": lambda: random(
        ConditionalRetrieval(order="shuffled", decoys=1),
        Model(layers=2, heads=2, d_model=18, causal=False, mlp=False),
    ),
    "known symbols": lambda: random(
        ConditionalRetrieval(facts=("a,b->x", "x->y"), chains=2),
        Model(layers=2, heads=1, d_model=12),
    ),
    "without norm, shuffled": lambda: random(
        Retrieval(hops=2, chains=2, order="shuffled", curriculum=False),
        Model(layers=2, heads=1, d_model=10, norm="none"),
    ),
}
LARGE = ("planted", "transformer-a")


@cache
def case(name: str) -> Case:
    return SMALL[name]() if name in SMALL else gallery(name)


def opened(page: Any, site: str, name: str) -> Case:
    """The case, open in the page as `engine`."""
    its = case(name)
    page.goto(f"{site}/blank")
    found = its.circuit
    circuit = None if found is None else circuit_changes(found)
    attended = [] if found is None else found.to_dict()["tables"]
    weights = base64.b64encode(save(dict(its.trained.state_dict()))).decode()
    page.evaluate(OPEN, [engine_tables(its.recipe), its.hops, circuit, attended, weights])
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
