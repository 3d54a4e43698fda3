"""Changes of heads as text, one grammar for the command line and the page.

3.0=uniform             head 0 of layer 3 attends everywhere alike
3.0=mean                it carries its mean over the examples
3.0=query<value 0       the query reads value 0 of its chain; all other rows are uniform
3.0:query=uniform       the row of the query alone; all other rows are as in the model
3.0:query=value 0       the same, and the query reads value 0
"""

import re
from collections.abc import Iterable, Mapping

from hopscope.circuits.ablation import Carried, Change, Head
from hopscope.circuits.mechanism import (
    AS_IS,
    BY_POSITION,
    ITSELF,
    PREVIOUS,
    UNIFORM,
    Aim,
    Mechanism,
    aim,
)
from hopscope.errors import ConfigError
from hopscope.facts import Role, parse_role

CHANGE = re.compile(r"(\d{1,9})\.(\d{1,9})(?::([^=]+))?=(.+)", re.ASCII)
WORDS = {"uniform": UNIFORM, "itself": ITSELF, "previous": PREVIOUS, "position": BY_POSITION}
KNOWN = {**WORDS, "identity": ITSELF}  # an earlier word
CARRIED = ("mean", "resample")


def changes_of(
    texts: Iterable[str], base: Mapping[Head, Change] | None = None
) -> dict[Head, Change]:
    """What all these texts ask for together, on top of what heads do already."""
    changes = dict(base or {})
    said: list[tuple[Head, Role | None]] = []
    for text in texts:
        head, reader, what = _parts(text)
        name = f"{head[0]}.{head[1]}"
        if any(at == head and (row == reader or None in (row, reader)) for at, row in said):
            raise ConfigError(f"head {name} is given twice ({text!r}); say what it does once")
        said.append((head, reader))
        if reader is None:
            changes[head] = _of_head(text, what)
        else:
            changes[head] = _with_row(text, changes.get(head), reader, what)
    return changes


def _parts(text: str) -> tuple[Head, Role | None, str]:
    """Which head, which of its rows (None: all), and what is to be done."""
    match = CHANGE.fullmatch(text)
    if match is None:
        raise ConfigError(
            f"the change {text[:100]!r} is not understood; expected LAYER.HEAD=WHAT, e.g. "
            "3.0=uniform, or LAYER.HEAD:READER=WHAT for one row, e.g. 3.0:query=uniform"
        )
    reader = None if match[3] is None else parse_role(match[3].strip())
    return (int(match[1]), int(match[2])), reader, match[4]


def _of_head(text: str, what: str) -> Change:
    """What a whole head does instead."""
    if what in CARRIED:
        return Carried(what)  # type: ignore[arg-type]
    if what in KNOWN:
        return Mechanism(rest=KNOWN[what])
    paths, _, rest = _arrows(what).partition("/")
    if "<" not in paths or rest not in ("", "uniform", "itself", "identity"):
        raise ConfigError(
            f"the change {text[:100]!r} is not understood; WHAT is {', '.join(WORDS)}, mean, "
            'resample, or paths like "query<value 0" with "/itself" for the other rows if not '
            "uniform"
        )
    aims = tuple((reader, aim("own", source)) for reader, source in map(_path, paths.split(",")))
    return Mechanism(aims, KNOWN[rest or "uniform"])


def _with_row(text: str, before: Change | None, reader: Role, what: str) -> Mechanism:
    """What a head did before, with another aim for the rows of one role."""
    if before is None:
        before = Mechanism(rest=AS_IS)
    if isinstance(before, Carried):
        raise ConfigError(
            f"the change {text[:100]!r} is of one row; what the head carries is replaced already"
        )
    return before.with_aim(reader, _of_row(text, reader, what))


def _of_row(text: str, reader: Role, what: str) -> Aim:
    """Where the rows of one role look instead."""
    if what in KNOWN:
        return KNOWN[what]
    try:
        named, source = _path(_arrows(what)) if "<" in _arrows(what) else (reader, parse_role(what))
    except ConfigError as error:
        raise ConfigError(
            f"the change {text[:100]!r} is not understood; WHAT of one row is "
            f"{', '.join(WORDS)}, or a role that it reads; {' and '.join(CARRIED)} replace what a "
            "whole head carries"
        ) from error
    if named != reader:
        raise ConfigError(f"the change {text[:100]!r} is of the row {reader}, and names {named}")
    return aim("own", source)


def _path(text: str) -> tuple[Role, Role]:
    """Reader and source of one path."""
    reader, _, source = text.partition("<")
    return parse_role(reader.strip()), parse_role(source.strip())


def _arrows(what: str) -> str:
    return what.replace(">", "<")  # an earlier sign for the same
