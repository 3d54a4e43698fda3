"""All printing of hopscope is here.

Control characters (escape codes, line breaks, right-to-left marks) in printed values are escaped,
so that data cannot control the terminal.
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
"""The error that made a training continue without output; `flush` raises it at the end."""


def printable(value: object) -> str:
    r"""Return the value's text with all unprintable characters escaped.

    >>> printable("a\x1b[31mb\nc")
    'a\\x1b[31mb\\nc'
    """
    text = str(value)
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(sign: str) -> str:
    # str.isprintable is False for spaces of other widths, which are harmless.
    harmless = sign.isprintable() or category(sign) == "Zs"
    return sign if harmless else sign.encode("unicode_escape").decode()


def say(*lines: object) -> None:
    """Print every argument as one line; without arguments, print an empty line."""
    emit(map(printable, lines or ("",)))


def prose(*texts: object) -> None:
    """Print each text wrapped to the terminal's width, with a hanging indent."""
    from hopscope.plots.layout import hanging

    for text in texts:
        say(*hanging(printable(text), width()))


def say_json(value: object) -> None:
    """Print data as JSON, a list with one line for each item. NaN becomes null.

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
    """Convert a value for JSON: a Decimal (from SQL sums) to float, other objects to text."""
    return float(value) if isinstance(value, Decimal) else str(value)


def warn(trouble: object) -> None:
    """Print a line on stderr that begins with `hopscope:`."""
    note(f"hopscope: {trouble}")


def note(line: object) -> None:
    """Print one line on stderr; do nothing if stderr is closed."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            print(printable(line), file=sys.stderr, flush=True)


def emit(lines: Iterable[str], end: str = "\n") -> None:
    """Print lines that are already escaped."""
    try:
        for line in lines:
            print(line, end=end)
    except OSError as error:
        _lose(error)


def flush() -> None:
    """Flush standard output; raises OutputLost if lines could not be written."""
    if _LOST:
        raise _LOST.pop()
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        _lose(error)


def _lose(error: OSError) -> None:
    """Handle an error in writing: raise OutputLost, unless the reader closed the pipe (`| head`).

    For a closed pipe, drop the output and let the command continue, so that it saves its files.
    """
    if not isinstance(error, BrokenPipeError):
        raise OutputLost(f"cannot write the output: {error.strerror}") from error
    drop_output()


def drop_output(why: Exception | None = None) -> None:
    """Redirect standard output to the null device; an OutputLost is kept for `flush`."""
    if isinstance(why, OutputLost):
        _LOST.append(why)
    with suppress(OSError), open(os.devnull, "w") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def forgive_encodings() -> None:
    """Let stdout and stderr print `?` for characters that their encoding lacks."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def width() -> int:
    """Return the columns of the terminal ($COLUMNS if set; 80 without a terminal)."""
    return get_terminal_size().columns
