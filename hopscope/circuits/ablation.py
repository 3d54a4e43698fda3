"""Ablations as data (what some heads do instead), and their text form.

A changed head follows a pattern: its attention is prescribed, or what it brings is replaced by its
mean over examples (mean ablation) or by that in another example (resample ablation). The search
tries ablations that give every head a pattern, and changes them attention row by attention row. An
attention row is one head's attention from all positions of one role. On the command line and the
page a change is written:

3.0=uniform             head 0 of layer 3 attends evenly to all positions
3.0=mean                what it brings is its mean over the examples
3.0=value 0>query       the query looks at value 0 of its chain; all other rows are uniform
3.0:query=uniform       only the row of the query is uniform; all other rows are as in the model
3.0:query=value 0       only the row of the query is changed: it looks at value 0
3.0:query=mean          only what it brings to the query is its mean over the examples
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from numbers import Integral
from typing import TYPE_CHECKING

from hopscope.circuits.pattern import (
    AS_IN_MODEL,
    ITSELF,
    MEAN,
    PREVIOUS,
    RESAMPLE,
    UNIFORM,
    UNTOUCHED,
    Head,
    Pattern,
    Target,
    table_of,
    target,
)
from hopscope.errors import CircuitError, ConfigError
from hopscope.facts import Role, parse_role

if TYPE_CHECKING:
    from torch import Tensor

Row = tuple[Head, Role]
"""An attention row: one head's attention from all positions of one role, the destination."""


@dataclass(frozen=True)
class Ablation:
    """What some heads of a model do instead; all other heads are unchanged. A row of a changed head
    is *live* if its pattern has a target for it; all other rows follow the pattern's rest.
    """

    changes: tuple[tuple[Head, Pattern], ...] = ()

    @classmethod
    def of(cls, changes: Mapping[Head, Pattern]) -> "Ablation":
        """The ablation that makes these changes; equal changes give equal ablations."""
        for head, change in changes.items():
            if not _is_head(head) or not isinstance(change, Pattern):
                raise CircuitError(
                    f"the change of {head!r} is {change!r}; expected (layer, head) with a Pattern, "
                    "as in {(1, 0): Pattern()}"
                )
        return cls(tuple(sorted(changes.items(), key=lambda item: item[0])))

    def patterns(self, layer: int) -> dict[int, Pattern]:
        """The patterns of the changed heads of this layer."""
        return {head: pattern for (at, head), pattern in self.changes if at == layer}

    def target(self, row: Row) -> Target:
        """The target of a row of a changed head."""
        head, role = row
        return dict(self.changes)[head].of(role)

    @property
    def live(self) -> list[Row]:
        """The rows that have a target."""
        return [(at, role) for at, pattern in self.changes for role, _ in pattern.targets]

    @property
    def computed(self) -> "Ablation":
        """The same, except that live rows compute their attention, from what the changed model
        provides.
        """
        return self.looking_at(self.live, AS_IN_MODEL)

    def looking_at(self, rows: Iterable[Row], target: Target) -> "Ablation":
        """The same with this target for some rows of changed heads."""
        changed = dict(self.changes)
        for head, role in rows:
            changed[head] = changed[head].with_target(role, target)
        return self._with(changed)

    def without(self, rows: Iterable[Row]) -> "Ablation":
        """The same without the targets of some rows."""
        changed = dict(self.changes)
        for head, role in rows:
            changed[head] = changed[head].without(role)
        return self._with(changed)

    def resting(self, rest: Target) -> "Ablation":
        """The same with this rest for all changed heads."""
        return self._with({head: _resting(its, rest) for head, its in self.changes})

    @property
    def carries(self) -> bool:
        """True if what some head brings is replaced."""
        return any(pattern.carried for _, pattern in self.changes)

    def _with(self, changed: Mapping[Head, Pattern]) -> "Ablation":
        """The ablation of the same heads with these changes. What is equal is shared: a search of a
        model with many heads keeps thousands of ablations.
        """
        return Ablation(
            tuple(
                item if item[1] is changed[item[0]] else (item[0], changed[item[0]])
                for item in self.changes
            )
        )


def replacement(instead: Target, usual: "Tensor") -> "Tensor":
    """What is brought instead in every example (the first axis may have length 1), given what a
    head brings in all of them.
    """
    return usual.mean(0, keepdim=True) if instead == MEAN else usual.roll(1, 0)


@lru_cache(maxsize=4096)
def _resting(pattern: Pattern, rest: Target) -> Pattern:
    """The pattern with another rest. A search asks for the same ones again and again."""
    return replace(pattern, rest=rest)


def _is_head(given: object) -> bool:
    pair = given if isinstance(given, tuple) else ()
    return len(pair) == 2 and all(isinstance(number, Integral) for number in pair)


CHANGE = re.compile(r"(\d{1,9})\.(\d{1,9})(?::([^=]+))?=(.+)", re.ASCII)
WORDS = {
    "uniform": UNIFORM, "itself": ITSELF, "previous": PREVIOUS, "mean": MEAN, "resample": RESAMPLE
}  # fmt: skip
POSITION = "position"
"""The word for a row that takes the head's mean attention by position (from other examples)."""
REPLACEMENTS = (*WORDS, POSITION)


def changes_of(
    texts: Iterable[str], base: Mapping[Head, Pattern] | None = None
) -> dict[Head, Pattern]:
    """The changes that these texts describe together, applied on top of `base`."""
    changes = dict(base or {})
    said: list[tuple[Head, Role | None]] = []
    for text in texts:
        head, destination, what = _parts(text)
        name = f"{head[0]}.{head[1]}"
        if any(
            at == head and (row == destination or None in (row, destination)) for at, row in said
        ):
            raise ConfigError(
                f"head {name} is given twice ({text!r}); give one change for each head or row"
            )
        said.append((head, destination))
        if destination is None:
            changes[head] = _of_head(text, head, what)
        else:
            changes[head] = _with_row(text, head, changes.get(head), (destination, what))
    return changes


def _parts(text: str) -> tuple[Head, Role | None, str]:
    """The head, the destination role of its row (None: all rows), and the change as text."""
    match = CHANGE.fullmatch(text)
    if match is None:
        raise ConfigError(
            f"the change {text[:100]!r} is not understood; expected LAYER.HEAD=WHAT, e.g. "
            "3.0=uniform, or LAYER.HEAD:DESTINATION=WHAT for one row, e.g. 3.0:query=uniform"
        )
    destination = None if match[3] is None else parse_role(match[3].strip())
    return (int(match[1]), int(match[2])), destination, match[4]


def _of_head(text: str, head: Head, what: str) -> Pattern:
    """The change of a whole head."""
    if what in REPLACEMENTS:
        return Pattern(rest=_word(head, what))
    paths, _, rest = what.partition("/")
    if ">" not in paths or rest not in ("", "uniform", "itself"):
        raise ConfigError(
            f"the change {text[:100]!r} is not understood; WHAT is {', '.join(REPLACEMENTS)}, or "
            'paths like "value 0>query" with "/itself" for the other rows if '
            "not uniform"
        )
    ends = map(_path, paths.split(","))
    targets = tuple((destination, target("own", source)) for source, destination in ends)
    return Pattern(targets, WORDS[rest or "uniform"])


def _word(head: Head, what: str) -> Target:
    return table_of("position", head) if what == POSITION else WORDS[what]


def _with_row(text: str, head: Head, before: Pattern | None, row: tuple[Role, str]) -> Pattern:
    """The head's earlier pattern with another target for the row of one role."""
    destination, what = row
    looks = _word(head, what) if what in REPLACEMENTS else _named(text, destination, what)
    return (before or UNTOUCHED).with_target(destination, looks)


def _named(text: str, destination: Role, what: str) -> Target:
    """The target named by a role: `value 0`, or `value 0>query`."""
    try:
        source, named = _path(what) if ">" in what else (parse_role(what), destination)
    except ConfigError as error:
        raise ConfigError(
            f"the change {text[:100]!r} is not understood; WHAT of one row is "
            f"{', '.join(REPLACEMENTS)}, or a role that it looks at"
        ) from error
    if named != destination:
        raise ConfigError(
            f"the change {text[:100]!r} is for the row {destination} but names {named}"
        )
    return target("own", source)


def _path(text: str) -> tuple[Role, Role]:
    """Source and destination of one path."""
    source, _, destination = text.partition(">")
    return parse_role(source.strip()), parse_role(destination.strip())
