"""Lay out text and tables as lines that fit a width; words are never cut."""

import re
from collections.abc import Mapping, Sequence

from rich.cells import cell_len

GAP = 2
"""Spaces between two columns."""
INDENT = 2
"""Spaces before a continuation line."""


def laid_out(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    colours: Mapping[str, str] | None = None,
) -> list[str]:
    """Lay out columns side by side, or a block for every row if the longest words do not fit.

    `colours` gives the SGR code of cells that hold exactly this text.

    >>> laid_out(["run", "state"], [["a", "it stands"], ["b", "it fell"]], 11)
    ['run  state', 'a    it', '     stands', 'b    it', '     fell']
    >>> laid_out(["run", "state"], [["a", "it stands"]], 10)
    ['run: a', '  state:', '    it', '    stands']
    """
    widths = _widths([columns, *rows], width)
    if widths is None:
        return [line for row in rows for line in _block(columns, row, width)]
    lines = []
    for row in (columns, *rows):
        cells = [wrapped(text, room) for text, room in zip(row, widths, strict=True)]
        codes = [(colours or {}).get(text, "") for text in row]
        for number in range(max(map(len, cells), default=0)):
            pieces = (cell[number] if number < len(cell) else "" for cell in cells)
            lines.append(_line(list(pieces), widths, codes))
    return lines


def wrapped(text: str, width: int) -> list[str]:
    """Wrap the text into lines of at most this width; longer words get a line of their own."""
    if cell_len(text) <= width:
        return [text]
    lines: list[str] = []
    room = 0
    for word in text.split():
        size = cell_len(word)
        if lines and size < room:
            lines[-1] += f" {word}"
            room -= size + 1
        else:
            lines.append(word)
            room = width - size
    return lines or [""]


def hanging(text: str, width: int) -> list[str]:
    """Wrap the text with all lines but the first indented.

    >>> hanging("a text of words", 9)
    ['a text of', '  words']
    """
    first, *_ = wrapped(text, width)
    rest = " ".join(text.split()[len(first.split()) :])
    return [first, *(" " * INDENT + line for line in wrapped(rest, width - INDENT) if line)]


def continued(command: str, width: int) -> list[str]:
    """Return a shell command as lines to copy: one, or one for each option if it is too long.

    >>> print("\\n".join(continued("hopscope runs --store here", 15)))
    hopscope runs \\
      --store here
    """
    if cell_len(command) <= width:
        return [command]
    first, *options = re.split(r" (?=--)", command)
    lines = [first, *(" " * INDENT + option for option in options)]
    return [*(f"{line} \\" for line in lines[:-1]), lines[-1]]


def clauses(text: str) -> list[str]:
    """Split a text at its semicolons, except those in parentheses.

    >>> clauses("0.03 (seed 1; alone); never")
    ['0.03 (seed 1; alone)', 'never']
    """
    return re.split(r"; (?![^()]*\))", text)


def _widths(rows: Sequence[Sequence[str]], width: int) -> list[int] | None:
    """Return widths of the columns so that all fit and no word is cut; None if impossible."""
    texts = list(zip(*rows, strict=True))
    whole = [max(map(cell_len, column)) for column in texts]
    room = width - GAP * (len(texts) - 1)
    if sum(whole) <= room:
        return whole
    least = [max(cell_len(word) for text in column for word in text.split() or [""])
             for column in texts]  # fmt: skip
    for most in range(room, 0, -1):
        widths = [max(low, min(high, most)) for low, high in zip(least, whole, strict=True)]
        if sum(widths) <= room:
            return widths
    return None


def _line(pieces: Sequence[str], widths: Sequence[int], codes: Sequence[str]) -> str:
    cells = []
    for piece, room, code in zip(pieces, widths, codes, strict=True):
        padding = " " * (room - cell_len(piece))
        cells.append((f"\x1b[{code}m{piece}\x1b[0m" if code and piece else piece) + padding)
    return (" " * GAP).join(cells).rstrip()


def _block(columns: Sequence[str], row: Sequence[str], width: int) -> list[str]:
    """Return a row as a block of lines: every non-empty value after the name of its column."""
    lines = []
    for number, (column, text) in enumerate(zip(columns, row, strict=True)):
        named = f"{column}: {text}" if column else text
        if text:
            first, *rest = wrapped(named, width - INDENT)
            start = " " * (INDENT if number else 0)
            lines += [start + first, *(" " * INDENT + start + line for line in rest)]
    return lines
