"""What was found to be carried, as data."""

from inspect import unwrap

import pytest

from hopscope.circuits.carrying import Cargo, Site
from hopscope.errors import CircuitError
from hopscope.models.planted import Planted
from hopscope.tracing.patching import cargo


def test_cargo_is_kept_as_json(two_hops: Planted) -> None:
    for its in cargo(two_hops.model, two_hops.task, [Site.of(p) for p in two_hops.paths], 4):
        assert Cargo.from_json(its.canonical_json()) == its


def test_ways_and_answers_that_are_none_are_refused(two_hops: Planted) -> None:
    site = Site.of(two_hops.paths[0])
    (its,) = cargo(two_hops.model, two_hops.task, [site], 4)
    with pytest.raises(CircuitError, match="by queries or by keys; got 'key'"):
        unwrap(Cargo.tells)(its, "key")
    with pytest.raises(CircuitError, match='expected for each symbol its hop, as {"x1": 1}'):
        unwrap(Cargo.carried)(its, {1: "x1"})


def test_one_pair_has_no_interval(two_hops: Planted) -> None:
    with pytest.raises(CircuitError, match="examples is 1; minimal pairs are at least 2"):
        cargo(two_hops.model, two_hops.task, [Site.of(two_hops.paths[0])], 1)
