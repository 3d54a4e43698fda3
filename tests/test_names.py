"""What is offered where a name does not exist, held against all names one by one."""

from difflib import SequenceMatcher

from hypothesis import given
from hypothesis import strategies as st

from hopscope.names import ALIKE, PART, alike, hint

KNOWN = ["abc-four-heads", "abc-first-head", "d-last-late", "fan-in", "token", "pair", "torch"]


def test_names_that_contain_the_word_come_before_those_spelled_like_it() -> None:
    for word, found in {
        "heads": ["abc-four-heads"],
        "first-heap": ["abc-first-head"],
        "abc": ["abc-four-heads", "abc-first-head"],
        "fanin": ["fan-in"],
        "xavier": [],
        "ab": [],  # two letters are in many names, and stand for none
    }.items():
        assert alike(word, KNOWN) == found, word


@given(st.text("abc-", max_size=6), st.lists(st.text("abc-", max_size=8)), st.integers(1, 4))
def test_all_that_are_offered_are_alike_and_none_that_is_more_so_is_left_out(
    word: str, known: list[str], most: int
) -> None:
    def likeness(name: str) -> float:
        inside = len(word) >= PART and word in name
        return 2.0 if inside else SequenceMatcher(None, name, word).ratio()

    found = alike(word, known, most)
    assert len(found) == len(set(found)) <= most
    assert all(likeness(name) >= ALIKE for name in found)
    if len(found) < most:
        assert {name for name in known if likeness(name) >= ALIKE} == set(found)
    else:
        least = min(map(likeness, found))
        assert all(likeness(name) <= least for name in set(known) - set(found))


def test_a_hint_says_what_may_be_meant_or_what_to_do() -> None:
    assert hint("tokem", KNOWN, "see the list") == "did you mean token?"
    abc = ["abc-1", "abc-2", "abc-3", "abc-4"]
    assert hint("abc", abc, "") == "did you mean abc-1, abc-2 or abc-3?"
    assert hint("xyz", KNOWN, "see the list") == hint("", KNOWN, "see the list") == "see the list"
