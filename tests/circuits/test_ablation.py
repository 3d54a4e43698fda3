"""Ablations as data: their order, and what is changed in a layer."""

from inspect import unwrap

import pytest

from hopscope.circuits.ablation import Ablation, Carried
from hopscope.circuits.mechanism import ITSELF, Mechanism
from hopscope.errors import CircuitError

STAYS, MEAN = Mechanism(rest=ITSELF), Carried("mean")


def test_the_same_changes_in_any_order_are_the_same_ablation() -> None:
    one = Ablation.of({(1, 0): STAYS, (0, 1): MEAN, (0, 0): STAYS})
    other = Ablation.of({(0, 0): STAYS, (0, 1): MEAN, (1, 0): STAYS})
    assert one == other
    assert hash(one) == hash(other)
    assert [head for head, _ in one.changes] == [(0, 0), (0, 1), (1, 0)]


def test_a_layer_has_its_own_changes() -> None:
    ablation = Ablation.of({(1, 2): STAYS, (0, 1): MEAN, (1, 0): MEAN})
    assert ablation.at(1) == ((0, MEAN), (2, STAYS))
    assert ablation.at(2) == ()
    assert Ablation().changes == ()


def test_what_a_head_carries_instead_is_a_mean_or_anothers() -> None:
    with pytest.raises(CircuitError, match="to carry 'zero'; expected mean or resample"):
        unwrap(Carried.__init__)(object.__new__(Carried), "zero")


@pytest.mark.parametrize(
    ("head", "change"),
    [((1, 0), "mean"), ("1.0", MEAN), (2.0, MEAN), ((1,), MEAN), ((1, 0.5), STAYS)],
)
def test_what_is_no_head_or_no_change_is_one_line(head: object, change: object) -> None:
    with pytest.raises(CircuitError, match=r"is to do .*; expected \(layer, head\) with a Mech"):
        unwrap(Ablation.of.__func__)(Ablation, {head: change})  # type: ignore[attr-defined]
