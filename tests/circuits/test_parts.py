"""What a circuit is made of: names of heads, paths of mechanisms."""

import pytest

from hopscope.circuits import Circuit, aim, discover
from hopscope.circuits.mechanism import AS_IS, BY_POSITION, ITSELF, Aim, Mechanism, Target
from hopscope.circuits.parts import Estimate, HeadReport, Losses, paths_of
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.models.planted import Planted
from hopscope.theory import Path


@pytest.fixture(scope="module")
def circuit(two_hops: Planted) -> Circuit:
    return discover(two_hops.model, two_hops.task, examples=32)


def test_idle_heads_and_kinds_are_named(circuit: Circuit) -> None:
    names = {report.at: report.name for report in circuit.heads}
    assert names[0, 0] == "previous position"
    kinds = {part.at: part.kind for part in circuit.parts if part.paths}
    assert kinds[0, 0] == "locates"
    assert kinds[2, 0] == "carries"
    assert all(part.votes == 1 for part in circuit.parts)


KEY, VALUE, QUERY = Role("key"), Role("value"), Role("query")


@pytest.mark.parametrize(
    ("mechanism", "name"),
    [
        (Mechanism(rest=ITSELF), "idle"),
        (Mechanism(), "idle"),
        (Mechanism(rest=AS_IS), ""),
        (Mechanism(((VALUE, aim("own", KEY)),)), "previous position"),
        (Mechanism(((VALUE, aim("own", Role("key", 1))),)), ""),
        (Mechanism(((QUERY, aim("own", KEY)),)), ""),
        (Mechanism(((QUERY, BY_POSITION), (KEY, BY_POSITION))), "by position"),
    ],
)
def test_heads_have_names(mechanism: Mechanism, name: str) -> None:
    assert HeadReport(layer=0, head=0, mechanism=mechanism).name == name


def test_paths_read_roles_of_their_own_chain_with_enough_attention() -> None:
    mixed = Aim(((Target("own", KEY), 0.7), (Target("own", VALUE), 0.2), (Target("itself"), 0.1)))
    mechanism = Mechanism(((QUERY, mixed), (KEY, aim("others", VALUE)), (VALUE, aim("own", VALUE))))
    assert paths_of((2, 1), mechanism) == (Path(2, 1, QUERY, KEY), Path(2, 1, QUERY, VALUE))
    assert paths_of((2, 1), mechanism, share=0.3) == (Path(2, 1, QUERY, KEY),)
    nothing = Mechanism(((QUERY, aim("own", Role("other"))),))
    assert paths_of((0, 0), nothing) == ()


def test_means_are_over_hops() -> None:
    losses = losses_of(ideal=(0.2, 0.2), own=(0.0, 1.0))
    assert losses.mean("clean") == pytest.approx(0.2)
    assert losses.mean("own") == pytest.approx(0.5)
    assert str(Estimate(mean=0.5, low=0.4, high=0.6)) == "0.500 (0.400 … 0.600)"


def losses_of(**hops: tuple[float, ...]) -> Losses:
    kept = {"clean": (0.1, 0.3), "ablated": (1.0, 1.0), **hops}
    return Losses(**kept, guess=1.0, limit=0.3, hop_limits=(0.25, 0.5))


def test_a_hop_that_fails_is_not_hidden_by_the_mean() -> None:
    losses = losses_of(ideal=(0.2, 0.35), own=(0.3, 0.1))
    assert losses.mean("own") < losses.mean("ideal") <= losses.limit
    assert losses.low("ideal")
    assert not losses.low("own")


def test_a_loss_that_was_not_measured_is_none() -> None:
    with pytest.raises(CircuitError, match="was not measured"):
        losses_of(ideal=(0.2, 0.2)).mean("own")
