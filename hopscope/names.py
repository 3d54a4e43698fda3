"""Suggestions for a name that does not exist ("did you mean …?").

Names that contain the word come first (`four-heads` suggests musat/abc-four-heads), then names with
a similar spelling (`fanin` suggests fan-in).
"""

from collections.abc import Iterable
from difflib import get_close_matches

ALIKE = 0.65
"""The least similarity of two spellings, from 0 to 1, for a suggestion."""
PART = 3
"""Only words of at least this many letters are searched for inside names."""


def alike(word: str, known: Iterable[str], most: int = 3, least: float = ALIKE) -> list[str]:
    """Up to `most` known names that this word may stand for, the likeliest first. `least` is the
    least similarity of the spellings, from 0 to 1.
    """
    names = list(dict.fromkeys(known))
    inside = [name for name in names if len(word) >= PART and word in name]
    spelled = get_close_matches(word, names, n=most, cutoff=least)
    return list(dict.fromkeys([*inside, *spelled]))[:most]


def hint(word: str, known: Iterable[str], otherwise: str) -> str:
    """The end of a message about a name that does not exist: a suggestion, or `otherwise` if no
    name is similar.
    """
    found = alike(word, known)
    first, last = ", ".join(found[:-1]), found[-1:]
    return f"did you mean {' or '.join(filter(None, [first, *last]))}?" if found else otherwise
