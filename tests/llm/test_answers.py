"""When a text is an answer: the rules, one by one, and nothing beyond them."""

from hypothesis import given
from hypothesis import strategies as st

from hopscope.llm.answers import answered, first_line, forms, normal


def test_texts_that_are_the_same() -> None:
    for text, same in {
        "**Berlin.**": "berlin", "  New \n  York ": "new york", "Doctors": "doctor",
        "Berlin's": "berlin", "0:S": "0", "s": "s", "?!": "", "GROSSE STRASSE": "große straße",
        "3.5": "3.5",
    }.items():  # fmt: skip
        assert normal(text) == normal(same), text


@given(st.text(max_size=30))
def test_what_is_normal_stays_so_but_for_one_more_s(text: str) -> None:
    once = normal(text)
    assert normal(once) == once or (once.endswith("s") and once.startswith(normal(once)))
    assert not once or (once[0].isalnum() and once[-1].isalnum())


def test_an_answer_is_all_of_the_first_line_and_no_sentence() -> None:
    for text, line in {
        "3": "3", " 3\n\nFor a = 3.": " 3", "3 \r\n4": "3 \r", "\n \n3\n4\n": "\n \n3",
        "\n ": "\n ", "": "",
    }.items():  # fmt: skip
        assert first_line(text) == line
        assert answered(text, ["3"]) == answered(line, ["3"]) == ("3" if "3" in line else None)
    acceptable = ["3", "Berlin", "New York", "Paris"]
    for text, answer in {
        "3.": "3", "-3": "3", " **berlin.** ": "Berlin", "Berlins": "Berlin",
        "new  york": "New York", "The answer is 3": None, "30": None, "...": None,
    }.items():  # fmt: skip
        assert answered(text, acceptable) == answer, text


def test_spellings_begin_with_a_space_where_the_text_does_not_end_with_one() -> None:
    assert forms("7", "Answer:") == [" 7", " 7."]
    assert forms("7", "Answer: ") == forms("7", "Answer:\n") == forms("7", "a\t") == ["7", "7."]
    assert forms("7", "") == [" 7", " 7."]
