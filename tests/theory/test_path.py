"""Paths: who reads whom, in which head."""

import pytest

from hopscope.facts import Role
from hopscope.theory import Path, Reading

QUERY, VALUE = Role("query"), Role("value", 0)


def test_a_path_is_a_reading_by_a_head() -> None:
    assert Path(1, 2, QUERY, VALUE).reading == Reading(1, QUERY, VALUE)


def test_earlier_names_of_the_ends_say_the_new_ones() -> None:
    path = Path(1, 2, QUERY, VALUE)
    with pytest.warns(DeprecationWarning, match="called reader now"):
        assert path.query == QUERY
    with pytest.warns(DeprecationWarning, match="called source now"):
        assert path.key == VALUE
