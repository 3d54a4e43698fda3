"""Which names somebody may have meant who wrote one that does not exist: one rule for all of them.

Names that contain the word come first (`four-heads` for musat/abc-four-heads), then those that are
spelled much like it (`fanin` for fan-in).
"""

from collections.abc import Iterable
from difflib import get_close_matches

ALIKE = 0.65
"""How much alike two spellings must be, from 0 to 1, to be taken for one another."""
PART = 3
"""Letters that a word must have at least, to be looked for inside names."""


def alike(word: str, known: Iterable[str], most: int = 3, least: float = ALIKE) -> list[str]:
    """The known names that this word may stand for, the likeliest first: at most so many, and all
    at least so much alike.
    """
    names = list(dict.fromkeys(known))
    inside = [name for name in names if len(word) >= PART and word in name]
    spelled = get_close_matches(word, names, n=most, cutoff=least)
    return list(dict.fromkeys([*inside, *spelled]))[:most]


def hint(word: str, known: Iterable[str], otherwise: str) -> str:
    """The end of a message on a name that does not exist: what may have been meant, or what to do
    otherwise, where no name is like it.
    """
    found = alike(word, known)
    first, last = ", ".join(found[:-1]), found[-1:]
    return f"did you mean {' or '.join(filter(None, [first, *last]))}?" if found else otherwise
