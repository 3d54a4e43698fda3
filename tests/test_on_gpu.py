"""On a pretended GPU every analysis finds what it finds on the CPU, and a model trains alike."""

import os
from collections.abc import Callable
from copy import deepcopy
from dataclasses import is_dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from pretended_gpu import GPU, pretended_gpu
from torch import Tensor

import hopscope
from hopscope.circuits import (
    CallbackModel,
    Circuit,
    adapter_of,
    discover,
    examples_of,
    patterns,
    repeated_tokens,
)
from hopscope.circuits.ranking import Switches
from hopscope.configs import Config, Experiment, Retrieval
from hopscope.models import AttentionEdit, Transformer
from hopscope.models.planted import Planted, planted
from hopscope.study import Study
from hopscope.study.study import Series
from hopscope.training import graph
from hopscope.training.trainer import Trainer

CPU = torch.device("cpu")
TWO_HOPS = Retrieval(hops=2, chains=2, dim=6, symbols="one-hot")
OF_ANY_TASK: dict[str, Callable[[Study], Any]] = {
    "attention": lambda study: study.attention(8),
    "ablate": lambda study: study.ablate(examples=4),
    "discover": lambda study: study.discover(examples=4, fresh=4, force=True),
    "probe": lambda study: study.probe(256),
}
ANALYSES: dict[str, Callable[[Study], Any]] = {
    **OF_ANY_TASK,
    "diagnose": lambda study: study.diagnose(examples=8),
    "patch": lambda study: study.patch(examples=2),
    "emergence": lambda study: study.emergence(2),
}
BASELINES = {
    "baselines": lambda study: study.baselines(2, switches=Switches(rest="mean", steps=1)),
}
"""They take a pass through the model for every edge."""


def demo(device: torch.device) -> Study:
    """The model of the gallery, with its last two checkpoints and its circuit."""
    its = hopscope.load("gallery/demo")
    models = {step: its.run.model_at(step).to(device) for step in its.run.checkpoints[-2:]}
    last = models[max(models)]
    return Study(last, its.task, history=Series(models), circuit=its.circuit)


@cache
def exact() -> tuple[Planted, Circuit]:
    its = planted(TWO_HOPS)
    return its, discover(its.model, its.task, examples=16, fresh=8)


def small(device: torch.device) -> Study:
    """A planted model, which has few edges, with its circuit."""
    its, circuit = exact()
    return Study(deepcopy(its.model).to(device), its.task, circuit=circuit)


def gpt2(device: torch.device) -> Study:
    from families import TOKENS, made

    return Study(made("gpt2").to(device), repeated_tokens(TOKENS, length=6, filler=4))


def leaves(value: Any) -> list[Any]:
    """All names and numbers in a result."""
    if isinstance(value, Config) or is_dataclass(value):
        value = vars(value)
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        value = [*value.items()]
    if isinstance(value, list | tuple):
        return [leaf for each in value for leaf in leaves(each)]
    return [value]


@pytest.mark.parametrize(
    ("made", "analysis"),
    [*product([demo], ANALYSES), *product([small], BASELINES), *product([gpt2], OF_ANY_TASK)],
)
def test_an_analysis_finds_the_same_on_a_gpu(
    made: Callable[[torch.device], Study], analysis: str
) -> None:
    analysed = (ANALYSES | BASELINES)[analysis]
    expected = leaves(analysed(made(CPU)))
    with pretended_gpu():
        found = leaves(analysed(made(GPU)))
    assert found == pytest.approx(expected, abs=1e-5, nan_ok=True)


def test_attention_is_computed_where_the_model_is(
    random_model: Transformer, two_hops: Planted
) -> None:
    def forward(inputs: Tensor, attention: AttentionEdit) -> Tensor:
        return random_model(inputs, attention=attention, read=inputs.shape[1])

    inputs = examples_of(two_hops.task, 4).inputs
    ways = adapter_of(random_model), CallbackModel(forward, random_model, (3, 2))
    expected = [torch.stack([*patterns(way, inputs)]) for way in ways]
    with pretended_gpu():
        random_model.to(GPU)
        found = [torch.stack([*patterns(way, inputs)]).cpu() for way in ways]
    assert torch.allclose(torch.stack(found), torch.stack(expected), atol=1e-5)


@pytest.mark.parametrize(("optimiser", "seeds"), [*product(("adamw", "muon"), ((0,), (0, 1)))])
def test_a_model_trains_alike_on_a_gpu(
    tiny: Experiment, optimiser: str, seeds: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph, "cuda_graph", lambda step, _: step)
    training = tiny.training.replace(optimiser=optimiser)
    experiment = tiny.replace(training=training, seeds=seeds)

    def losses(device: torch.device) -> list[Tensor]:
        trainer = Trainer(experiment, device, "float32")
        return [*(trainer.advance() for _ in range(3)), trainer.validate()]

    expected = torch.stack(losses(CPU))
    with pretended_gpu():
        found = torch.stack(losses(GPU)).cpu()
    assert torch.allclose(found, expected, atol=1e-5)


def test_no_other_gpu_is_seen() -> None:
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""


def test_what_is_on_a_gpu_is_not_mixed_with_what_is_not() -> None:
    ours = torch.ones(2)
    with pretended_gpu():
        its = ours.to(GPU)
        assert its.add(ours.sum()).tolist() == [3, 3]
        for mix in (lambda: its + ours, lambda: ours[its.long()], its.numpy):
            with pytest.raises((RuntimeError, TypeError)):
                mix()
    with pytest.raises((RuntimeError, AssertionError)):
        ours.to(GPU)
