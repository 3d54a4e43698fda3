"""What was found to be carried, as data."""

from hopscope.circuits.carrying import Cargo, Site
from hopscope.models.planted import Planted
from hopscope.tracing.patching import cargo


def test_cargo_is_kept_as_json(two_hops: Planted) -> None:
    for its in cargo(two_hops.model, two_hops.task, [Site.of(p) for p in two_hops.paths], 4):
        assert Cargo.from_json(its.canonical_json()) == its
