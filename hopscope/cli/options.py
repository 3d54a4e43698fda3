"""Declare commands, options and groups of options, and find which flags were given."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from hopscope.cli.commands import Command
from hopscope.errors import ConfigError, HopscopeError

F = TypeVar("F", bound=Callable[..., Any])
Names = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


class NamedPath(click.Path):
    """The path of a file or folder. An empty text is refused: Path("") is the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; fail for an empty text."""
        if value == "":
            self.fail("it is empty; expected the name of a file or folder", param, ctx)
        return super().convert(value, param, ctx)


FILE = NamedPath(path_type=Path)
VALUE_TYPES = {"N": int, "MINUTES": float, "X": float, "SHARE": float, "INCHES": float}
"""Type of a value by its name in the help; FILE and FOLDER are paths, all others are text."""


def command(*each: Callable[[Any], Any]) -> Callable[[Callable[..., int | None]], click.Command]:
    """Make a command from a function with these options; its docstring is the help."""

    def decorate(function: Callable[..., int | None]) -> click.Command:
        settings = {"show_default": True}
        return click.command(cls=Command, context_settings=settings)(options(*each)(function))

    return decorate


def option(
    flag: str, says: str, *, name: str = "", choices: Sequence[str] = (), **settings: Any
) -> Callable[[F], F]:
    """Declare a flag such as `--all`, or an option with a value such as `--step N`, and its help.

    `name` is the name of the parameter, if it differs from the flag's.
    """
    flag, _, value = flag.partition(" ")
    kind: Any = FILE if value.startswith(("FILE", "FOLDER")) else VALUE_TYPES.get(value)
    if choices:
        kind = click.Choice(choices)
    elif not value:
        settings["is_flag"] = True
    known = {"metavar": value or None, "type": kind, "help": says}
    return click.option(flag, *filter(None, [name]), **known | settings)


def completing(known: Callable[[click.Context], Iterable[str]]) -> Names:
    """Return a click completer that offers the names from `known`."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        found: set[str] = set()
        with suppress(HopscopeError):  # a broken store: offer the names read so far
            for name in known(ctx):
                found.add(name)
        return [CompletionItem(name) for name in sorted(found) if name.startswith(incomplete)]

    return complete


def options(*each: Callable[[F], F]) -> Callable[[F], F]:
    """Combine several options into one decorator; the help lists them in this order."""

    def decorate(function: F) -> F:
        for one in reversed(each):
            function = one(function)
        return function

    return decorate


def gathered(
    name: str, make: Callable[..., Any], *each: Callable[[Any], Any]
) -> Callable[[Callable[..., Any]], Any]:
    """Combine options into one argument `name` of a command, made by `make` from their values."""

    def nothing() -> None: ...

    options(*each)(nothing)
    own = [parameter.name for parameter in vars(nothing)["__click_params__"]]

    def decorate(function: Callable[..., Any]) -> Any:
        @wraps(function)
        def called(**values: Any) -> Any:
            made = make(**{each: values.pop(each) for each in own})
            return function(**values, **{name: made})

        return options(*each)(called)

    return decorate


def given(*flags: str) -> list[str]:
    """Return which of these flags (such as `--over-training`) are on the command line."""
    context = click.get_current_context()
    typed = click.core.ParameterSource.COMMANDLINE
    known = {flag: each.name for each in context.command.params for flag in each.opts}
    return [
        flag for flag in flags
        if flag in known and context.get_parameter_source(known[flag] or "") is typed
    ]  # fmt: skip


def refuse_unused(where: str, *flags: str) -> None:
    """Raise ConfigError if any of these flags is on the command line; `where` says why."""
    if found := given(*flags):
        it = "it" if len(found) == 1 else "them"
        raise ConfigError(f"{', '.join(found)} would be ignored {where}: leave {it} out")
