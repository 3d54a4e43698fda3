"""When a text is an answer: the rules, one by one, and nothing beyond them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.llm.answers import answered, first_line, forms, normal


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("**Berlin.**", "berlin"),
        ("  New \n  York ", "new york"),
        ("Doctors", "doctor"),
        ("Berlin's", "berlin"),
        ("0:S", "0"),
        ("s", "s"),  # nothing would be left
        ("?!", ""),
        ("GROSSE STRASSE", "große straße"),
        ("3.5", "3.5"),
    ],
)
def test_texts_that_are_the_same(text: str, same: str) -> None:
    assert normal(text) == normal(same)


@given(st.text(max_size=30))
def test_what_is_normal_stays_so_but_for_one_more_s(text: str) -> None:
    once = normal(text)
    assert normal(once) == once or (once.endswith("s") and once.startswith(normal(once)))
    assert not once or (once[0].isalnum() and once[-1].isalnum())


def test_a_sentence_is_no_answer() -> None:
    assert answered("3.", ["3", "4"]) == "3"
    assert answered("The answer is 3", ["3", "4"]) is None
    assert answered("", ["3"]) is None


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("3", "3"),
        (" 3\n\nFor a = 3.", " 3"),
        ("3 \r\n4", "3 \r"),
        ("\n \n3\n4\n", "\n \n3"),
        ("\n ", "\n "),
        ("", ""),
    ],
)
def test_what_follows_the_first_line_is_no_part_of_an_answer(text: str, line: str) -> None:
    assert first_line(text) == line
    assert answered(text, ["3"]) == answered(line, ["3"]) == ("3" if "3" in line else None)


def test_spellings_begin_with_a_space_where_the_text_does_not_end_with_one() -> None:
    assert forms("7", "Answer:") == [" 7", " 7."]
    assert forms("7", "Answer: ") == forms("7", "Answer:\n") == forms("7", "a\t") == ["7", "7."]
    assert forms("7", "") == [" 7", " 7."]
