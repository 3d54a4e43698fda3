"""Role maps against sums over pairs of positions."""

import json
import math
from dataclasses import replace
from inspect import unwrap

import numpy as np
import pytest
import torch
from slow import followed

from hopscope.circuits import (
    Examples,
    RoleMaps,
    adapter_of,
    attention_maps,
    discover,
    examples_of,
    role_maps,
)
from hopscope.configs import KHop, Model
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.models import Transformer
from hopscope.models.planted import Planted


def slow_maps(model: Transformer, examples: Examples) -> dict[str, torch.Tensor]:
    pattern = model.attention(examples.inputs)
    roles, chains = examples.roles.role, examples.roles.chain
    size = len(examples.table)
    shape = (*pattern.shape[:1], pattern.shape[2], size)
    found = {"own": torch.zeros(*shape, size), "others": torch.zeros(*shape, size)}
    found |= {"itself": torch.zeros(shape), "previous": torch.zeros(shape)}
    names = [(name, times) for name in examples.relations for times in (1, 2)]
    found |= {f"{name} ×{times}": torch.zeros(shape) for name, times in names}
    led = {f"{name} ×{times}": torch.zeros(size) for name, times in names}
    count, behind = torch.zeros(size), torch.zeros(size)
    for example in range(len(roles)):
        for row, destination in enumerate(roles[example].tolist()):
            count[destination] += 1
            behind[destination] += row > 0
            for name, times in names:
                if there := followed(examples.relations[name][example], row, times):
                    seen = pattern[:, example, :, row, list(there)].sum(-1)
                    found[f"{name} ×{times}"][:, :, destination] += seen
                    led[f"{name} ×{times}"][destination] += 1
            for key, source in enumerate(roles[example].tolist()):
                weight = pattern[:, example, :, row, key]
                same = chains[example, row] == chains[example, key]
                found["own" if same else "others"][:, :, destination, source] += weight
                if key == row:
                    found["itself"][:, :, destination] += weight
                if key == row - 1:
                    found["previous"][:, :, destination] += weight
    shares = {n: t / (count[:, None] if t.ndim == 4 else count) for n, t in found.items()}
    shares["previous"] = found["previous"] / behind
    return shares | {name: found[name] / times for name, times in led.items()}


def test_maps_are_means_over_pairs_of_positions_and_over_where_relations_lead(
    random_model: Transformer, two_hops: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of vectors and of tokens, all examples at once and one by one."""
    letters = KHop(hops=2, length=9, alphabet=3)
    tokens = Transformer.seeded(Model(layers=2, heads=2, d_model=8), letters.interface(), 0)
    for model, task in ((random_model, two_hops.task), (tokens, letters)):
        examples = examples_of(task, 5)
        back = torch.arange(examples.length).expand(examples.roles.role.shape) - 2
        alike = examples.roles.chain[:, :, None] == examples.roles.chain[:, None]
        examples = replace(
            examples, relations={"back": back.clamp_min(-1), "alike": alike.tril(-1)}
        )
        expected = slow_maps(model, examples)
        for size in (2**30, 1):
            monkeypatch.setattr("hopscope.circuits.budget.CALL_BYTES", size)
            maps = role_maps(adapter_of(model), examples)
            for name, values in expected.items():
                found = maps.along.get(name.removesuffix(" ×1"), getattr(maps, name, None))
                assert np.allclose(found, values, atol=1e-5, equal_nan=True), name
        again = RoleMaps.from_dict(json.loads(json.dumps(maps.to_dict())))
        assert again.roles == maps.roles
        for name in ("own", "others", "itself", "previous"):
            assert np.array_equal(getattr(again, name), getattr(maps, name), equal_nan=True)
        assert np.array_equal(again.along["alike ×2"], maps.along["alike ×2"], equal_nan=True)
        rough = RoleMaps.from_dict(maps.to_dict(digits=1))
        assert 0.03 < np.nanmax(np.abs(rough.own - maps.own)) < 0.06


def test_a_role_that_never_occurs_has_no_attention() -> None:
    task = KHop(hops=2, length=2, alphabet=9)  # two tokens: no second hop can be found
    model = Transformer.seeded(Model(layers=1, heads=1, d_model=4), task.interface(), 0)
    maps = attention_maps(model, task, examples=4)
    number = maps.roles.index(Role("value", 1))
    assert math.isnan(maps.own[0, 0, number, number])


def test_attention_that_is_no_number_is_refused(two_hops: Planted) -> None:
    for bad in (math.nan, math.inf):
        model = Transformer(two_hops.model.config, two_hops.model.interface)
        model.load_state_dict(two_hops.model.state_dict())
        with torch.no_grad():
            model.blocks[1].attention.query.weight[0, 0] = bad  # type: ignore[union-attr, index]
        for ask in (attention_maps, discover):
            with pytest.raises(CircuitError, match="is not a finite number"):
                ask(model, two_hops.task, examples=2)


def test_maps_are_looked_up_by_role(random_model: Transformer, two_hops: Planted) -> None:
    maps = attention_maps(random_model, two_hops.task, 4)
    numbers = maps.roles.index(Role("query")), maps.roles.index(Role("value", 0))
    assert np.array_equal(maps.between("query", "value 0"), maps.own[:, :, *numbers])
    others = maps.between(Role("query"), Role("value", 0), "others")
    assert np.array_equal(others, maps.others[:, :, *numbers])
    with pytest.raises(CircuitError, match="are previous: draw others by an OwnTask"):
        maps.score("induction")
    for wrong in (("query", "letter"), ("query", "value 0", "other")):
        with pytest.raises(CircuitError):
            unwrap(RoleMaps.between)(maps, *wrong)
