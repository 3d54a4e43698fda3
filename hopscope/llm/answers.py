"""When a text is an answer, and which: the same rules everywhere.

A text answers X if its first line and X are equal once case is ignored, whatever is neither letter
nor digit is taken off both ends ("**Berlin.**" is "berlin"), white space is single, and one final
"s" is taken off both ("Doctors" is "doctor"), with what is neither letter nor digit before it
("Berlin's"). Nothing else is guessed: "The answer is 3" is no answer.
"""

from collections.abc import Iterable, Sequence

ENDS = ("", ".")
"""What the spellings end with whose probabilities are added up; others are rarer by far."""


def first_line(text: str) -> str:
    """A text up to the end of its first line; blank lines before that one do not count.

    >>> first_line(" 3\\nFor a = 3."), first_line("\\n3\\n")
    (' 3', '\\n3')
    """
    said = text.lstrip()
    return text.removesuffix(said) + said.partition("\n")[0]


def normal(text: str) -> str:
    """A text by the rules above.

    >>> normal(' "Berlin." '), normal("Berlin's")
    ('berlin', 'berlin')
    """
    words = " ".join(text.casefold().split())
    kept = [number for number, sign in enumerate(words) if sign.isalnum()]
    if len(kept) > 1 and words[kept[-1]] == "s":
        kept.pop()
    return words[kept[0] : kept[-1] + 1] if kept else ""


def answered(text: str, acceptable: Iterable[str]) -> str | None:
    """Which of the acceptable answers a text is, if any."""
    said = normal(first_line(text))
    return next((answer for answer in acceptable if normal(answer) == said), None)


def forms(answer: str, behind: str) -> Sequence[str]:
    """The spellings of an answer that are scored behind a text: a word needs a space before it,
    where the text does not end with one.

    >>> forms("Berlin", "Answer:"), forms("Berlin", "<assistant>\\n")
    ([' Berlin', ' Berlin.'], ['Berlin', 'Berlin.'])
    """
    space = "" if behind[-1:].isspace() else " "
    return [f"{space}{answer}{end}" for end in ENDS]
