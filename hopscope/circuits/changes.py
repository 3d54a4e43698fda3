"""Changes of heads as text, one grammar for the command line and the page.

3.0=uniform             head 0 of layer 3 attends everywhere alike
3.0=mean                it carries its mean over the examples
3.0=value 0>query       the query looks at value 0 of its chain; all other rows are uniform
3.0:query=uniform       the row of the query alone; all other rows are as in the model
3.0:query=value 0       the same, and the query looks at value 0
"""

import re
from collections.abc import Iterable, Mapping

from hopscope.circuits.ablation import Carried, Change
from hopscope.circuits.pattern import (
    AS_IN_MODEL,
    ITSELF,
    PREVIOUS,
    UNIFORM,
    Head,
    Pattern,
    Target,
    table_of,
    target,
)
from hopscope.errors import ConfigError
from hopscope.facts import Role, parse_role

CHANGE = re.compile(r"(\d{1,9})\.(\d{1,9})(?::([^=]+))?=(.+)", re.ASCII)
WORDS = {"uniform": UNIFORM, "itself": ITSELF, "previous": PREVIOUS}
POSITION = "position"
"""The row takes the head's mean attention, by position (estimated on other examples)."""
KNOWN = (*WORDS, POSITION)
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
            changes[head] = _of_head(text, head, what)
        else:
            changes[head] = _with_row(text, head, changes.get(head), (reader, what))
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


def _of_head(text: str, head: Head, what: str) -> Change:
    """What a whole head does instead."""
    if what in CARRIED:
        return Carried(what)  # type: ignore[arg-type]
    if what in KNOWN:
        return Pattern(rest=_word(head, what))
    paths, _, rest = what.partition("/")
    if ">" not in paths or rest not in ("", "uniform", "itself"):
        raise ConfigError(
            f"the change {text[:100]!r} is not understood; WHAT is {', '.join(KNOWN)}, mean, "
            'resample, or paths like "value 0>query" with "/itself" for the other rows if not '
            "uniform"
        )
    ends = map(_path, paths.split(","))
    targets = tuple((destination, target("own", source)) for source, destination in ends)
    return Pattern(targets, WORDS[rest or "uniform"])


def _word(head: Head, what: str) -> Target:
    return table_of("position", head) if what == POSITION else WORDS[what]


def _with_row(text: str, head: Head, before: Change | None, row: tuple[Role, str]) -> Pattern:
    """What a head did before, with another target for the rows of one role."""
    if before is None:
        before = Pattern(rest=AS_IN_MODEL)
    if isinstance(before, Carried):
        raise ConfigError(
            f"the change {text[:100]!r} is of one row; what the head carries is replaced already"
        )
    destination, what = row
    known = what in KNOWN
    return before.with_target(
        destination, _word(head, what) if known else _named(text, destination, what)
    )


def _named(text: str, destination: Role, what: str) -> Target:
    """The target that is a role: `value 0`, or `value 0>query`."""
    try:
        source, named = _path(what) if ">" in what else (parse_role(what), destination)
    except ConfigError as error:
        raise ConfigError(
            f"the change {text[:100]!r} is not understood; WHAT of one row is "
            f"{', '.join(KNOWN)}, or a role that it looks at; {' and '.join(CARRIED)} replace what "
            "a whole head carries"
        ) from error
    if named != destination:
        raise ConfigError(
            f"the change {text[:100]!r} is of the row {destination}, and names {named}"
        )
    return target("own", source)


def _path(text: str) -> tuple[Role, Role]:
    """Source and destination of one path."""
    source, _, destination = text.partition(">")
    return parse_role(source.strip()), parse_role(destination.strip())
