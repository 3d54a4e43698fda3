"""The one place that prints. What is printed is data: every argument is a line, and what would
steer a terminal (escape codes, line breaks, text that runs the other way) is shown, not obeyed.
"""

import json
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from decimal import Decimal
from shutil import get_terminal_size
from unicodedata import category

from hopscope.display import plain
from hopscope.errors import OutputLost

_LOST: list[OutputLost] = []
"""Why the output was dropped while a training went on: told when it has ended."""


def printable(value: object) -> str:
    r"""The value's text, with an escape for every sign that has no picture.

    >>> printable("a\x1b[31mb\nc")
    'a\\x1b[31mb\\nc'
    """
    text = str(value)
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(sign: str) -> str:
    # Spaces of other widths count as not printable in Python, and do no harm.
    harmless = sign.isprintable() or category(sign) == "Zs"
    return sign if harmless else sign.encode("unicode_escape").decode()


def say(*lines: object) -> None:
    """Print every argument as one line; without any, an empty one."""
    emit(map(printable, lines or ("",)))


def prose(*texts: object) -> None:
    """Print each text in lines that fit the terminal; all but the first are set in."""
    from hopscope.plots.layout import hanging

    for text in texts:
        say(*hanging(printable(text), width()))


def say_json(value: object) -> None:
    """Print data as JSON: of a list, a line for each item. A number that is none (NaN) is null.

    >>> say_json([{"loss": float("nan")}, {"loss": 0.5}])
    [
    {"loss": null},
    {"loss": 0.5}
    ]
    """
    if isinstance(value, list):
        items = [json.dumps(each, default=_of_json, allow_nan=False) for each in plain(value)]
        emit(["[", *(f"{item}," for item in items[:-1]), *items[-1:], "]"])
    else:
        emit([json.dumps(plain(value), default=_of_json, indent=1, allow_nan=False)])


def _of_json(value: object) -> object:
    """A value as JSON has it: a decimal, as SQL sums some numbers, as a number, else as text."""
    return float(value) if isinstance(value, Decimal) else str(value)


def warn(trouble: object) -> None:
    """One line on stderr that says what went wrong."""
    note(f"hopscope: {trouble}")


def note(line: object) -> None:
    """One line on stderr. Where that is closed, nobody is there to be told."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            print(printable(line), file=sys.stderr, flush=True)


def emit(lines: Iterable[str], end: str = "\n") -> None:
    """Print lines in which nothing is left to escape."""
    try:
        for line in lines:
            print(line, end=end)
    except OSError as error:
        _lose(error)


def flush() -> None:
    """Whether a line went out is known only when it is flushed."""
    if _LOST:
        raise _LOST.pop()
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        _lose(error)


def _lose(error: OSError) -> None:
    """A reader who has enough (`| head`) is no failure: the command goes on, and what it was asked
    to save is saved. All else is.
    """
    if not isinstance(error, BrokenPipeError):
        raise OutputLost(f"cannot write the output: {error.strerror}") from error
    drop_output()


def drop_output(why: Exception | None = None) -> None:
    """Nothing more can be printed: what is left, and what comes, goes nowhere."""
    if isinstance(why, OutputLost):
        _LOST.append(why)
    with suppress(OSError), open(os.devnull, "w") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def forgive_encodings() -> None:
    """Where a stream cannot say a sign, it says `?`."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def width() -> int:
    """Columns of the terminal; $COLUMNS, or 80 where there is none."""
    return get_terminal_size().columns
