"""Role maps against sums over pairs of positions."""

import json
from inspect import unwrap

import numpy as np
import pytest

from hopscope.circuits import (
    RoleMaps,
    attention_maps,
)
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.models import Transformer
from hopscope.models.planted import Planted


def test_maps_become_plain_data(two_hops: Planted) -> None:
    data = attention_maps(two_hops.model, two_hops.task, examples=2).to_dict()
    assert data["roles"] == [str(role) for role in two_hops.task.graph().roles]
    assert len(data["own"][0][0]) == 5  # type: ignore[index]


def test_maps_are_read_as_they_were_written(random_model: Transformer, two_hops: Planted) -> None:
    maps = attention_maps(random_model, two_hops.task, examples=4)
    again = RoleMaps.from_dict(json.loads(json.dumps(maps.to_dict())))
    assert again.roles == maps.roles
    for kind in ("own", "others", "itself", "previous"):
        assert np.array_equal(getattr(again, kind), getattr(maps, kind), equal_nan=True)
    rough = RoleMaps.from_dict(maps.to_dict(digits=1))
    assert np.abs(rough.own - maps.own).max() == pytest.approx(0.05, abs=0.01)


def test_maps_are_looked_up_by_role(two_hops: Planted) -> None:
    maps = attention_maps(two_hops.model, two_hops.task, 8)
    reader, source = Role("query"), Role("value", 0)
    numbers = maps.roles.index(reader), maps.roles.index(source)
    assert np.array_equal(maps.between("query", "value 0"), maps.own[:, :, *numbers])
    assert np.array_equal(maps.between(reader, source, "others"), maps.others[:, :, *numbers])
    with pytest.raises(CircuitError, match="there is no role 'letter' here; the roles are key 0"):
        maps.between("query", "letter")


def test_maps_know_two_kinds_of_chains(two_hops: Planted) -> None:
    maps = attention_maps(two_hops.model, two_hops.task, 4)
    with pytest.raises(CircuitError, match=r"kind is 'other'; expected own \(chain\) or others"):
        unwrap(RoleMaps.between)(maps, "query", "value 0", "other")
