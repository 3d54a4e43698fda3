"""Change fields of a recipe by words `key=value`; pydantic validates the values."""

import json
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, TypeVar

from hopscope.configs import Config
from hopscope.errors import ConfigError
from hopscope.names import hint

C = TypeVar("C", bound=Config)
CONSTANTS = {"true": True, "false": False, "none": None, "null": None}


def changed(config: C, words: Sequence[str], what: str) -> C:
    """The config with these words applied, as in `changed(recipe, ["training.steps=10"], "demo")`.

    Changing a kind (`task.kind=khop`) sets its other fields to the defaults of the new kind.
    """
    fields = config.model_dump(mode="json")
    pairs = [_pair(word) for word in words]
    for key, text in sorted(pairs, key=lambda pair: not pair[0].endswith("kind")):
        group, name = _place(fields, key, what)
        if name == "kind" and group is not fields and group["kind"] != text:
            group.clear()
        group[name] = value_of(text, [] if _several(config, key) else group.get(name))
    return type(config)(**fields)


def _pair(word: str) -> tuple[str, str]:
    key, equals, text = word.partition("=")
    if not equals or not key:
        raise ConfigError(f"got {word!r}; expected key=value, such as training.steps=1000")
    return key, text


def _place(fields: dict[str, Any], key: str, what: str) -> tuple[dict[str, Any], str]:
    """Return the group of fields that a dotted key names, and the last part of the key."""
    *groups, name = key.split(".")
    here: Any = fields
    for each in groups:
        here = here.get(each) if isinstance(here, dict) else None
    fresh = isinstance(here, dict) and set(here) == {"kind"}  # the kind was just changed
    if not isinstance(here, dict) or (name not in here and not fresh):
        known = list(_keys(fields))
        near = [each for each in known if each.rpartition(".")[2] == name]
        lists = (
            f"its fields are {', '.join(known)}" if len(known) < 12 else "docs/fields.md lists all"
        )
        otherwise = f"did you mean {' or '.join(near)}?" if near else hint(key, known, lists)
        raise ConfigError(f"{what} has no field {key!r}: {otherwise}")
    return here, name


def _several(config: Config, key: str) -> bool:
    """Return whether the field's type is a tuple (its current value may be None)."""
    groups, _, name = key.rpartition(".")
    field = type(attrgetter(groups)(config) if groups else config).model_fields.get(name)
    return field is not None and "tuple" in str(field.annotation)


def _keys(fields: dict[str, Any], start: str = "") -> Any:
    for name, value in fields.items():
        if isinstance(value, dict):
            yield from _keys(value, f"{start}{name}.")
        else:
            yield start + name


def value_of(text: str, known: object = None) -> Any:
    """Parse a text as a number, a truth value, None or a list; otherwise return it unchanged.

    `known` is the current value: a string keeps texts as they are, a list makes lists.

    >>> value_of("3"), value_of("true"), value_of("0.9,0.95"), value_of("cosine")
    (3, True, [0.9, 0.95], 'cosine')
    """
    if text.lower() in CONSTANTS:
        return CONSTANTS[text.lower()]
    if isinstance(known, str):
        return text
    try:
        value = json.loads(text)
    except ValueError:
        parts = text.removesuffix(",").split(",")
        value = [value_of(part.strip()) for part in parts] if "," in text else text
    single = isinstance(known, list) and not isinstance(value, list)
    return [value] if single else value
