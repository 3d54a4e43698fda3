"""Emergence against maps taken by hand at every checkpoint, and what is kept of it."""

import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch

from hopscope.circuits import (
    Circuit,
    Examples,
    adapter_of,
    along,
    discover,
    examples_of,
    patterns,
    target,
)
from hopscope.circuits.emergence import Emergence
from hopscope.circuits.tracking import emergence
from hopscope.configs import Experiment, Model, Retrieval, Training
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.models import Transformer
from hopscope.models.planted import Planted
from hopscope.theory import Path

PATHS = (Path(0, 1, Role("value", 0), Role("key", 0)), Path(1, 0, Role("query"), Role("key")))
STORY = Emergence(
    PATHS, (0, 10, 20), np.array([[0.1, 0.3, 0.7], [0.2, 0.3, 0.4]]), np.full((3, 1), 0.7), 0.75,
    4.0, (12,),
)  # fmt: skip
RECIPE = Experiment(training=Training(examples=2**10, batch=64))


@dataclass(frozen=True)
class Growing:
    """A planted model that is blown up from nothing: a training without luck."""

    model: Transformer
    checkpoints: tuple[int, ...] = (0, 10, 20, 30)
    made: Callable[[Transformer, int], Any] = lambda model, step: model
    """What is made of the model of a step."""

    def model_at(self, step: int) -> Any:
        grown = Transformer(self.model.config, self.model.interface)
        share = (step / 30) ** 4
        weights = {
            name: tensor * share if ".attention.query." in name else tensor
            for name, tensor in self.model.state_dict().items()
        }
        grown.load_state_dict(weights)
        return self.made(grown, step)


@dataclass(frozen=True)
class Told(Growing):
    """The same, of which more is known."""

    recipe: Experiment = RECIPE

    def learned(self) -> list[list[int | None]]:
        return [[7, None], [3, 4]]


def test_paths_come_in_order_and_those_that_never_did_last() -> None:
    late = replace(STORY, attention=STORY.attention[::-1])
    assert STORY.order == [(PATHS[0], 15.0), (PATHS[1], None)]
    assert late.order == [(PATHS[1], 15.0), (PATHS[0], None)]
    assert str(STORY).splitlines()[1:] == [
        "  0.1  key 0 → value 0  (emerged between steps 10 and 20)",
        "  1.0  key 0 → query  (never emerged)",
        "  hop 1  (learned at step 12)",
    ]
    early = replace(STORY, attention=STORY.attention + 0.45, learned_at=None)
    assert [line.split("(")[1] for line in str(early).splitlines()[1:]] == [
        "emerged by step 0)", "emerged by step 0)",
    ]  # fmt: skip
    assert STORY.emerged(PATHS[1]) is None
    assert (STORY.epoch(15.0), STORY.epoch(None)) == (3.75, None)
    assert replace(STORY, steps_per_epoch=None).epoch(15.0) is None
    variants = ({"learned_at": (None,)}, {"learned_at": None}, {"examples": 32})
    for story in (STORY, *(replace(STORY, **each) for each in variants)):
        again = Emergence.from_dict(json.loads(json.dumps(story.to_dict())))
        assert (again.to_dict(), again.order) == (story.to_dict(), story.order)


def test_paths_emerge_as_the_loss_falls(two_hops: Planted, circuit: Circuit) -> None:
    history = Growing(two_hops.model)
    story = replace(emergence(history, circuit, examples=16), steps_per_epoch=5.0)
    first, step = story.order[0]
    assert story.emerged(first) == step
    assert story.epoch(step) == step / 5
    assert story.examples == 16
    assert story.losses[-1].mean() < 1e-6 < story.losses[0].mean()


def test_a_path_is_followed_where_it_applies(two_hops: Planted, circuit: Circuit) -> None:
    """From values twice back in every other example, where that leads somewhere; else to keys."""
    key, value, twice = Role("key", 0), Role("value", 0), Role("back", 2)

    def drawn(count: int, seed: int) -> Examples:
        examples = examples_of(two_hops.task, count, seed)
        chain = examples.roles.chain
        back = torch.where(chain == 0, -1, torch.arange(examples.length) - 1)
        odd = (torch.arange(count) % 2 == 1)[:, None].expand_as(chain)
        return replace(examples, relations={"back": back}, conditions={"odd": odd})

    looks = along("back", 2).if_("odd").or_else(target("own", key))
    row = {"layer": 0, "heads": (0,), "destinations": (value,), "target": looks}
    component = circuit.components[0].model_copy(update=row)
    changed = circuit.model_copy(update={"components": (component,)})
    history = Growing(two_hops.model)
    story = emergence(history, changed, drawn, examples=16)
    assert story.paths == (Path(0, 0, value, twice), Path(0, 0, value, key))
    assert Emergence.from_dict(story.to_dict()).paths == story.paths

    examples = examples_of(drawn, 16, purpose="emergence")
    own, place = examples.roles.chain, examples.positions(key)
    there = examples.landing("back", 2)
    for column, step in enumerate(history.checkpoints):
        weights = next(patterns(adapter_of(history.model_at(step)), examples.inputs))[:, 0]
        found: dict[Role, list[float]] = {twice: [], key: []}
        for example, at in examples.positions(value).nonzero().tolist():
            if example % 2 and there[example, at] >= 0:
                found[twice].append(float(weights[example, at, there[example, at]]))
            else:
                seen = place[example] & (own[example] == own[example, at])
                found[key].append(float(weights[example, at, seen].sum()))
        for path, attention in zip(story.paths, story.attention[:, column], strict=True):
            assert attention == pytest.approx(np.mean(found[path.source]), abs=1e-6)


def test_another_sample_draws_other_examples(two_hops: Planted, circuit: Circuit) -> None:
    found = [emergence(Growing(two_hops.model), circuit, examples=8, seed=n) for n in (0, 0, 1)]
    assert found[0].to_dict() == found[1].to_dict() != found[2].to_dict()


def test_the_hop_that_is_asked_alone_is_named(circuit: Circuit) -> None:
    task = Retrieval(hops=2, chains=2, dim=4, curriculum=False)
    model = Transformer.seeded(Model(layers=1, heads=1, d_model=8), task.interface(), 0)
    found = discover(model, task, examples=16, force=True)
    looks = {"layer": 0, "destinations": (Role("query"),), "target": target("own", Role("value"))}
    component = circuit.components[0].model_copy(update=looks)
    circuit = found.model_copy(update={"components": (component,)})
    assert emergence(Growing(model), circuit, examples=16).asked == (2,)


def test_members_of_fleets_and_models_from_elsewhere_are_followed(
    two_hops: Planted, circuit: Circuit
) -> None:
    def fleet(alone: Transformer, step: int) -> Transformer:
        both = Transformer(alone.config, alone.interface, models=(0, 1))
        state = {n: torch.stack((torch.zeros_like(t), t)) for n, t in alone.state_dict().items()}
        both.load_state_dict(state)
        return both

    planted = two_hops.model
    alone = emergence(Growing(planted), circuit, examples=8)
    member = emergence(Growing(planted, made=fleet), circuit, member=1, examples=8)
    assert np.allclose(alone.attention, member.attention, atol=1e-6)
    elsewhere = Growing(planted, made=lambda model, step: adapter_of(model))
    assert emergence(elsewhere, circuit, examples=8).to_dict() == alone.to_dict()
    with pytest.raises(CircuitError, match="a TransformerAdapter is not a fleet: leave out member"):
        emergence(elsewhere, circuit, member=0, examples=8)


def test_hops_are_learned_and_epochs_last_as_the_training_says(
    two_hops: Planted, circuit: Circuit
) -> None:
    told = emergence(Told(two_hops.model), circuit, examples=4)
    assert (told.learned(1), told.learned(2), told.epoch(32.0)) == (7, None, 2)
    silent = emergence(Growing(two_hops.model), circuit, examples=4)
    assert (silent.learned_at, silent.epoch(32.0)) == (None, None)
    with pytest.raises(CircuitError, match="is unknown, because this training saved no losses"):
        silent.learned(1)


def test_what_cannot_be_followed_is_refused(two_hops: Planted, circuit: Circuit) -> None:
    def damaged(model: Transformer, step: int) -> Transformer:
        with torch.no_grad():
            model.head.bias[0] = torch.nan if step == 20 else 0
        return model

    planted, follow = two_hops.model, inspect.unwrap(emergence)
    no_task, no_paths = ({"task": None}, {"components": ()})
    earlier = discover(Growing(planted).model_at(25), two_hops.task, examples=8)
    for ask, line in (
        (lambda: STORY.learned(0), "hop is 0; this task asks 1"),
        (
            lambda: STORY.emerged(Path(0, 0, Role("value", 1), Role("query"))),
            "is not a path of this",
        ),
        (lambda: follow(Growing(planted, (30,)), circuit), "at least 2 checkpoints, got 1"),
        (
            lambda: follow(Growing(planted), circuit.model_copy(update=no_task)),
            "the circuit names no task",
        ),
        (lambda: follow(Growing(planted), circuit.model_copy(update=no_paths)), "has no paths"),
        (lambda: follow(Growing(planted, made=damaged), circuit, examples=4), "at step 20: "),
        (lambda: follow(3, 4), "a run and a circuit found in it; got int and int"),
        (lambda: follow(Growing(planted), earlier), "was found in other weights"),
    ):
        with pytest.raises(CircuitError, match=line):
            ask()
    history = Growing(planted, (20, 25, 30))
    assert emergence(history, earlier, examples=2).paths == earlier.paths
