"""What may stand on the line of each command: its arguments as data, from tyro's parsers."""

import re
import warnings
from dataclasses import dataclass
from typing import Any

import tyro

from hopscope.cli.commands import Command, always_there


@dataclass(frozen=True)
class Argument:
    """A flag, or a word in its place."""

    flags: tuple[str, ...]
    """Its names; a word has none."""
    value: str
    """What stands for its value in the help, e.g. INT or RUN; nothing for a switch."""
    choices: tuple[str, ...]
    """The values that there are, where they can be listed."""
    many: bool
    """Does it take any number of values?"""
    help: str


def arguments_of(command: Command) -> list[Argument]:
    """What a command takes, words first; of `train`, without the fields of what is trained."""
    return read(always_there(command))


def read(form: Any, **options: Any) -> list[Argument]:
    """The arguments that make a dataclass."""
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        parser = tyro.extras.get_parser(form, config=(tyro.conf.AvoidSubcommands,), **options)
    found = [
        Argument(
            flags=tuple(action.option_strings),
            value="" if action.nargs == 0 else _value(str(action.metavar or "")),
            choices=tuple(action.choices or ()),
            many=action.nargs in ("*", "+"),
            help=" ".join((action.help or "").split()),
        )
        for action in parser._actions  # noqa: SLF001  (argparse tells them nowhere else)
        if "--help" not in action.option_strings
    ]
    return sorted(found, key=lambda each: bool(each.flags))


def _value(metavar: str) -> str:
    """What the parser says of a value, without the None of a flag that may be left out."""
    value = metavar.replace("{None}|", "").replace("{None,", "{")
    optional = re.fullmatch(r"\{(\[.*\])\}|\[(\{.*\})\]", value)
    return value if optional is None else optional[1] or optional[2]
