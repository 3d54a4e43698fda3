"""Which calls are checked, and that checks are on."""

import jaxtyping
import pytest
import sparing
import torch

from hopscope.circuits import patterns
from hopscope.milestones import learned_below


def test_calls_whose_number_is_a_power_of_two_are_checked_in_every_test() -> None:
    asked: list[str] = []
    called = sparing.sparing(lambda: asked.append("plain"), lambda: asked.append("checked"))
    for _ in range(9):
        called()
    assert [n for n, kind in enumerate(asked, 1) if kind == "checked"] == [1, 2, 4, 8]
    sparing.TESTS.append("another")
    called()
    assert asked[-1] == "checked"


def test_what_is_of_a_wrong_type_is_refused() -> None:
    with pytest.raises(jaxtyping.TypeCheckError):
        learned_below("half")  # type: ignore[arg-type]
    with pytest.raises(jaxtyping.TypeCheckError):
        patterns(torch.zeros(1), None)  # type: ignore[arg-type]
