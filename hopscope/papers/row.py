"""A row: one measurement, a line of a table of results.

Each kind of row is a class, which is used to measure, judge, draw and test rows. Only fields that
were set are written, so writing a row that was read gives the same text.
"""

import json
from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, JsonValue, StrictFloat, ValidationError

from hopscope.configs import Config
from hopscope.errors import ResultsError

Numbers = tuple[StrictFloat, ...]
JsonObject = dict[str, JsonValue]
"""Data in the format of another part of hopscope."""


class Record(Config):
    """A part of a row, validated when it is made and when it is read; raises ResultsError."""

    model_config = ConfigDict(allow_inf_nan=True)  # an undefined distance is NaN

    def __init__(self, /, **fields: object) -> None:
        try:
            BaseModel.__init__(self, **fields)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in (type(self).__name__, *first["loc"]))
            raise ResultsError(f"{place!r}: {first['msg']}") from error


class ResultRow(Record):
    """A line of a table; every kind of measurement has its own subclass."""

    run: str | None = None
    """The measured run; None for rows without a run."""
    activity: ClassVar[str] = "training"
    """The activity that the row's seconds measure."""

    def to_json(self) -> str:
        """Return the row as one line of JSON, with only the fields that were set."""
        return json.dumps(self.model_dump(exclude_unset=True))


def read_row(kinds: Sequence[type[ResultRow]], fields: dict[str, Any]) -> ResultRow:
    """Make the row of these fields.

    Its kind is the one with the fewest missing required fields; of equals, the one with the fewest
    unknown fields.
    """
    kind = min(
        kinds,
        key=lambda kind: (
            len(_required(kind) - fields.keys()),
            len(fields.keys() - kind.model_fields.keys()),
        ),
    )
    return kind.model_validate(fields)


def _required(kind: type[ResultRow]) -> set[str]:
    return {name for name, field in kind.model_fields.items() if field.is_required()}
