"""A row: one measurement, as it stands on a line of a table of results.

Each kind of row is a class, and the same class is used where rows are measured, judged, drawn and
tested. Only fields that were set are written, so a row comes back to the letter as it was read.
"""

import json
from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, JsonValue, StrictFloat, ValidationError

from hopscope.configs import Config
from hopscope.errors import ResultsError

Numbers = tuple[StrictFloat, ...]
JsonObject = dict[str, JsonValue]
"""Data that another part of hopscope writes and reads."""


class Record(Config):
    """What a row is made of: data that is checked when it is made and when it is read."""

    model_config = ConfigDict(allow_inf_nan=True)  # a distance that is not defined is no number

    def __init__(self, /, **fields: object) -> None:
        try:
            BaseModel.__init__(self, **fields)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in (type(self).__name__, *first["loc"]))
            raise ResultsError(f"{place!r}: {first['msg']}") from error


class Row(Record):
    """A line of a table; every kind of measurement has its own class."""

    run: str | None = None
    """The run that was measured; unset for rows that need no run."""
    activity: ClassVar[str] = "training"
    """What the run spent its seconds on."""

    def to_json(self) -> str:
        """The row as one line of JSON, with those fields alone that were given."""
        return json.dumps(self.model_dump(exclude_unset=True))


def read_row(kinds: Sequence[type[Row]], fields: dict[str, Any]) -> Row:
    """The row that these fields are: of the kind that lacks the fewest of its own fields in them,
    and of several such, of the one that has a place for most of them.
    """
    kind = min(
        kinds,
        key=lambda kind: (
            len(_required(kind) - fields.keys()),
            len(fields.keys() - kind.model_fields.keys()),
        ),
    )
    return kind.model_validate(fields)


def _required(kind: type[Row]) -> set[str]:
    return {name for name, field in kind.model_fields.items() if field.is_required()}
