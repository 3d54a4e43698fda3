"""Models that the page's engine computes and torch computes, and how the engine is opened."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

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
from hopscope.memory import Memory
from hopscope.models import Transformer
from hopscope.study import Study
from hopscope.web.carried import engine_data, step_data
from hopscope.web.opened import Opened

OPEN = """async (carried) => {
  const { Engine } = await import("/engine.js");
  globalThis.engine = new Engine(carried);
}"""
STEP = 0
"""The only checkpoint of these models."""
CARRIED = 64
"""Examples that the engine has."""


@dataclass(frozen=True)
class Case:
    """A model and its task."""

    recipe: Experiment
    trained: Transformer

    @property
    def task(self) -> Task:
        return self.recipe.task

    @property
    def opened(self) -> Opened:
        """The same as the views hold a run, with nothing remembered."""
        return Opened(
            task=self.task,
            hops=self.recipe.loss_names(0),
            chances=list(self.task.chances(self.task.labelled_positions())),
            circuit=None,
            weights="",
            open=lambda: self.trained,
            probed=64,
            memory=Memory(0),
        )


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


def gallery(name: str) -> Case:
    from hopscope import load

    found = load(f"gallery/{name}")
    assert isinstance(found, Study)
    return Case(found.run.recipe, found.model)


SMALL = {
    "k hops": lambda: random(
        KHop(hops=3, alphabet=4, length=24), Model(layers=3, heads=2, d_model=32, init="fan-in")
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


def opened(page: Any, site: str, name: str, blank: str = "saved") -> Case:
    """The case, open in the page as `engine`: on a page whose policy lets WebAssembly compute, as
    that of saved pages does, or on another blank one.
    """
    its = case(name)
    page.goto(f"{site}/{blank}")
    steps = {STEP: step_data(its.trained, its.task)}
    carried = engine_data(its.recipe, steps, CARRIED)
    page.evaluate(OPEN, {**carried, "hops": its.recipe.loss_names(0)})
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
