"""`Config`, the base of all configs: frozen, validated data without unknown fields."""

import json
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from hopscope.errors import ConfigError
from hopscope.names import hint

SHOWN_CHARACTERS = 100
"""The most characters of a value that an error shows."""


def _number(value: object) -> object:
    """The value; raises ValueError for a bool or str, which pydantic would convert."""
    if isinstance(value, bool | str):
        raise ValueError(f"expected a number, got {shortened(repr(value))}")  # noqa: TRY004  (pydantic's way)
    return value


Unlimited = Annotated[int, BeforeValidator(_number)]
Whole = Annotated[Unlimited, Field(lt=2**31)]
"""A whole number of 32 bits, as in the tables of a run."""
Real = Annotated[float, BeforeValidator(_number)]
Positive = Annotated[Whole, Field(ge=1)]
Hops = Annotated[Positive, Field(le=127)]
"""A number of hops, of 8 bits, as in the tables of a run."""


class Config(BaseModel):
    """Base of all configs: immutable data. Unknown fields and invalid values raise ConfigError."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False
    )

    def __init__(self, /, **fields: object) -> None:  # a field may be called self
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise ConfigError(_one_line(type(self), error)) from error

    def replace(self, /, **fields: object) -> Self:
        """The config with other values for some fields; the new config is validated."""
        own = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self)(**{**own, **fields})

    def non_defaults(self) -> dict[str, Any]:
        """The fields that are not at their default, and every `kind`, as plain values."""
        plain = self.model_dump(mode="json")
        return {
            name: _plain(getattr(self, name), plain[name])
            for name, field in type(self).model_fields.items()
            if name == "kind" or field.is_required() or getattr(self, name) != field.default
        }

    def canonical_json(self) -> str:
        """The fields that are not at their default, as JSON with sorted keys and no spaces.

        Two configs are equal if and only if their canonical JSON is. If a field is added later, and
        its default keeps the earlier behaviour, the JSON of all earlier configs stays the same.
        """
        return json.dumps(self.non_defaults(), sort_keys=True, separators=(",", ":"))

    def named(self) -> dict[str, Any]:
        """The value of every field by its dotted name (`model.layers`), in order."""
        return {
            f"{group}.{field}" if field else group: value
            for group, values in self.model_dump(mode="json").items()
            for field, value in (values.items() if isinstance(values, dict) else [("", values)])
        }

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """The config in a JSON text; missing fields get their defaults. Raises ConfigError for
        unknown keys and invalid values.
        """
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise ConfigError(_one_line(cls, error)) from error


def _plain(value: object, dumped: Any) -> Any:
    """A field's value for JSON; configs within it are reduced to fields not at their default."""
    if isinstance(value, Config):
        return value.non_defaults()
    if isinstance(value, tuple):
        return [_plain(*each) for each in zip(value, dumped, strict=True)]
    return dumped


def _one_line(of: type[Config], error: ValidationError) -> str:
    first = error.errors()[0]
    place = shortened(".".join(str(part) for part in first["loc"]))
    what = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        known = of.model_fields if len(first["loc"]) == 1 else ()
        what = f"unknown field; {hint(place, known, 'docs/fields.md lists the fields there are')}"
    elif first["type"] == "union_tag_invalid":
        what = "unknown {discriminator} {tag!r}; expected {expected_tags}".format(**first["ctx"])
    elif first["type"] == "union_tag_not_found":
        what = f"no {first['ctx']['discriminator']}, got {shortened(repr(first['input']))}"
    elif first["type"] not in ("value_error", "json_invalid"):
        what = f"{what}, got {shortened(repr(first['input']))}"
    more = "" if error.error_count() == 1 else f" (and {error.error_count() - 1} more)"
    return f"{of.__name__}{'.' if place else ''}{place}: {what}{more}"


def shortened(text: str) -> str:
    """The text, cut after SHOWN_CHARACTERS."""
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"
