"""Emergence against maps taken by hand at every checkpoint."""

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from hopscope.circuits import attention_maps, discover, subject_of
from hopscope.circuits.tracking import emergence
from hopscope.configs import Experiment, Model, Retrieval, Training
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.models import Transformer
from hopscope.models.planted import Planted
from hopscope.theory import Path


@dataclass(frozen=True)
class Growing:
    """A planted model that is blown up from nothing: a training without luck."""

    model: Transformer
    checkpoints: tuple[int, ...] = (0, 10, 20, 30)

    def model_at(self, step: int) -> Transformer:
        grown = Transformer(self.model.config, self.model.interface)
        share = (step / 30) ** 4
        weights = {
            name: tensor * share if ".attention.query." in name else tensor
            for name, tensor in self.model.state_dict().items()
        }
        grown.load_state_dict(weights)
        return grown


def test_every_path_is_followed_through_every_checkpoint(two_hops: Planted) -> None:
    history = Growing(two_hops.model)
    circuit = discover(two_hops.model, two_hops.task, examples=16)
    story = emergence(history, circuit, examples=16, steps_per_epoch=5.0)
    for column, step in enumerate(history.checkpoints):
        maps = attention_maps(history.model_at(step), two_hops.task, examples=16)
        for row, path in enumerate(story.paths):
            reader, source = maps.roles.index(path.reader), maps.roles.index(path.source)
            expected = float(maps.own[path.layer, path.head, reader, source])
            assert story.attention[row, column] == pytest.approx(expected, abs=1e-6)
    first, step = story.order[0]
    assert step is not None
    assert story.emerged(first) == step
    assert story.epoch(step) == step / 5
    assert story.epoch(None) is None
    assert story.losses[-1].mean() < 1e-6 < story.losses[0].mean()
    assert story.to_dict()["steps"] == [0, 10, 20, 30]


def test_the_hop_that_is_asked_alone_is_named(two_hops: Planted) -> None:
    task = Retrieval(hops=2, chains=2, dim=4, curriculum=False)
    model = Transformer.seeded(Model(layers=1, heads=1, d_model=8), task.interface(), 0)
    found = discover(model, task, examples=16, force=True)
    (part, *_) = discover(two_hops.model, two_hops.task, examples=16).parts
    read, path = (Role("query"),), Path(0, 0, Role("query"), Role("value"))
    part = part.model_copy(update={"layer": 0, "head": 0, "readers": read, "paths": (path,)})
    circuit = found.model_copy(update={"parts": (part,)})
    assert emergence(Growing(model), circuit, examples=16).asked == (2,)


def test_a_member_of_a_fleet_is_followed_alone(two_hops: Planted) -> None:
    @dataclass(frozen=True)
    class Fleet(Growing):
        def model_at(self, step: int) -> Transformer:
            alone = super().model_at(step)
            fleet = Transformer(alone.config, alone.interface, models=(0, 1))
            state = {
                n: torch.stack((torch.zeros_like(t), t)) for n, t in alone.state_dict().items()
            }
            fleet.load_state_dict(state)
            return fleet

    circuit = discover(two_hops.model, two_hops.task, examples=16)
    alone = emergence(Growing(two_hops.model), circuit, examples=8)
    member = emergence(Fleet(two_hops.model), circuit, member=1, examples=8)
    assert np.allclose(alone.attention, member.attention, atol=1e-6)


def test_a_run_without_checkpoints_is_refused(two_hops: Planted) -> None:
    circuit = discover(two_hops.model, two_hops.task, examples=8)
    with pytest.raises(CircuitError, match="emergence needs at least 2 checkpoints, got 1"):
        emergence(Growing(two_hops.model, (30,)), circuit)


def test_a_circuit_without_task_or_paths_is_refused(two_hops: Planted) -> None:
    circuit = discover(two_hops.model, two_hops.task, examples=8)
    with pytest.raises(CircuitError, match="the circuit names no task"):
        emergence(Growing(two_hops.model), circuit.model_copy(update={"task": None}))
    with pytest.raises(CircuitError, match="the circuit has no paths"):
        emergence(Growing(two_hops.model), circuit.model_copy(update={"parts": ()}))


def test_hops_are_learned_when_the_training_says_so(two_hops: Planted) -> None:
    @dataclass(frozen=True)
    class Told(Growing):
        def learned(self) -> list[list[int | None]]:
            return [[7, None], [3, 4]]

    circuit = discover(two_hops.model, two_hops.task, examples=8)
    story = emergence(Told(two_hops.model), circuit, examples=4)
    assert (story.learned(1), story.learned(2)) == (7, None)
    assert story.to_dict()["learned_at"] == [7, None]
    silent = emergence(Growing(two_hops.model), circuit, examples=4)
    assert silent.to_dict()["learned_at"] is None
    with pytest.raises(CircuitError, match="is not known, as this training kept no losses"):
        silent.learned(1)


def test_epochs_are_those_of_the_run(two_hops: Planted) -> None:
    @dataclass(frozen=True)
    class Trained(Growing):
        @property
        def recipe(self) -> Experiment:
            return Experiment(training=Training(examples=2**10, batch=64))

    circuit = discover(two_hops.model, two_hops.task, examples=8)
    story = emergence(Trained(two_hops.model), circuit, examples=4)
    assert story.epoch(32.0) == 2
    assert emergence(Growing(two_hops.model), circuit, examples=4).epoch(32.0) is None


def test_a_step_whose_weights_are_no_numbers_is_named(two_hops: Planted) -> None:
    @dataclass(frozen=True)
    class Damaged(Growing):
        def model_at(self, step: int) -> Transformer:
            model = super().model_at(step)
            with torch.no_grad():
                model.head.bias[0] = torch.nan if step == 20 else 0
            return model

    circuit = discover(two_hops.model, two_hops.task, examples=8)
    with pytest.raises(CircuitError, match="at step 20: the model's loss is not a finite number"):
        emergence(Damaged(two_hops.model), circuit, examples=4)


def unchecked(function: Any) -> Any:
    """Without the checks of types that only tests have."""
    return inspect.unwrap(function)


def test_what_is_no_run_or_no_circuit_is_named() -> None:
    expected = "takes a run and a circuit found in it; got int and int"
    with pytest.raises(CircuitError, match=expected):
        unchecked(emergence)(3, 4)


def test_a_circuit_that_no_checkpoint_has_is_refused(two_hops: Planted) -> None:
    history = Growing(two_hops.model)
    others = discover(Growing(two_hops.model, (25,)).model_at(25), two_hops.task, examples=8)
    with pytest.raises(
        CircuitError, match=r"the circuit was found in other weights \(\w{12}…\) th"
    ):
        emergence(history, others, examples=2)


def test_the_circuit_of_an_earlier_checkpoint_is_followed(two_hops: Planted) -> None:
    history = Growing(two_hops.model, (20, 25, 30))
    earlier = discover(history.model_at(25), two_hops.task, examples=8)
    assert emergence(history, earlier, examples=2).paths == earlier.paths


def test_models_from_elsewhere_are_followed(two_hops: Planted) -> None:
    """A subject stands for any model that hopscope did not make."""

    @dataclass(frozen=True)
    class Elsewhere(Growing):
        def model_at(self, step: int) -> Any:
            return subject_of(super().model_at(step))

    circuit = discover(two_hops.model, two_hops.task, examples=8)
    ours, theirs = (emergence(each(two_hops.model), circuit, examples=4)
                    for each in (Growing, Elsewhere))  # fmt: skip
    assert theirs.to_dict() == ours.to_dict()
    with pytest.raises(CircuitError, match="a TransformerSubject is no fleet: leave out member"):
        emergence(Elsewhere(two_hops.model), circuit, member=0, examples=4)
