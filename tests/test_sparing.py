"""Types are checked, in the calls that `sparing.py` leaves."""

import jaxtyping
import pytest

from hopscope.milestones import learned_below


def test_what_is_of_a_wrong_type_is_refused() -> None:
    with pytest.raises(jaxtyping.TypeCheckError):
        learned_below("half")  # type: ignore[arg-type]
