"""Which calls are checked, and that checks are on."""

from collections.abc import Callable

import jaxtyping
import pytest
import sparing

from hopscope.milestones import learned_below


def test_calls_whose_number_is_a_power_of_two_are_checked_in_every_test() -> None:
    seen: list[int] = []
    checked: list[int] = []

    def check(function: Callable[[int], None]) -> Callable[[int], None]:
        return lambda number: (checked.append(number), function(number))[1]

    def noting() -> Callable[[int], None]:
        def note(number: int) -> None:
            seen.append(number)

        return note

    for number in range(1, 12):
        if number == 10:
            sparing.next_test()
        sparing.sparing(noting(), check)(number)
    assert seen == list(range(1, 12))
    assert checked == [1, 2, 4, 8, 10, 11]


def test_what_is_of_a_wrong_type_is_refused() -> None:
    with pytest.raises(jaxtyping.TypeCheckError):
        learned_below("half")  # type: ignore[arg-type]
