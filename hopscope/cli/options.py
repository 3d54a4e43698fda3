"""Arguments and flags that several commands have; names that are completed."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from hopscope.cli.commands import Command
from hopscope.errors import ConfigError, HopscopeError
from hopscope.store import Store, gallery

F = TypeVar("F", bound=Callable[..., Any])
Names = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
FILE = click.Path(path_type=Path)
KINDS = {"N": int, "MINUTES": float, "X": float, "SHARE": float, "INCHES": float}
"""The kind of a value by its name in the help; files and folders are paths, all else is text."""
MOST_SEEDS = 100_000
"""The largest number of seeds of a range."""


def command(
    *each: Callable[[Any], Any],
) -> Callable[[Callable[..., int | None]], click.Command]:
    """Make a command of a function that takes these arguments and options; its docstring is the
    help.
    """

    def decorate(function: Callable[..., int | None]) -> click.Command:
        settings = {"show_default": True}
        return click.command(cls=Command, context_settings=settings)(options(*each)(function))

    return decorate


def option(
    flag: str, says: str, *, name: str = "", choices: Sequence[str] = (), **settings: Any
) -> Callable[[F], F]:
    """A flag such as `--all`, or one with a value such as `--step N`, and its help. `name` is that
    of the parameter, where it is not the flag's.
    """
    flag, _, value = flag.partition(" ")
    kind: Any = FILE if value.startswith(("FILE", "FOLDER")) else KINDS.get(value)
    if choices:
        kind = click.Choice(choices)
    elif not value:
        settings["is_flag"] = True
    known = {"metavar": value or None, "type": kind, "help": says}
    return click.option(flag, *filter(None, [name]), **known | settings)


def names(known: Callable[[click.Context], Iterable[str]]) -> Names:
    """Complete a word with the names that there are."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        found: set[str] = set()
        with suppress(HopscopeError):  # of a store that is broken, what can be read
            for name in known(ctx):
                found.add(name)
        return [CompletionItem(name) for name in sorted(found) if name.startswith(incomplete)]

    return complete


def _runs(ctx: click.Context) -> Iterator[str]:
    yield from (f"gallery/{name}" for name in gallery.names())
    store = ctx.params.get("store") or Store()
    yield from store.names()
    yield from (tag for tags in store.tags().values() for tag in tags)


def _presets(_: click.Context) -> Iterable[str]:
    from hopscope.papers import presets

    return presets()


def _models(_: click.Context) -> Iterable[str]:
    from hopscope.lm.known import KNOWN

    return KNOWN


RUNS, PRESETS, MODELS = map(names, (_runs, _presets, _models))

run_argument = click.argument("run", metavar="RUN", shell_complete=RUNS)
store_option = option(
    "--store FOLDER",
    "Folder of runs (default: $HOPSCOPE_STORE, or ./runs).",
    callback=lambda _, __, folder: Store(folder),
)
json_option = option("--json", "Print JSON only.")
threads_option = option(
    "--threads N",
    "Processor threads (default: all cores; a run that goes on takes as many as before). "
    "Results are bit-identical for the same number of threads.",
)
device_option = option(
    "--device DEVICE",
    "Where to compute: cpu, cuda, or one of several GPUs, as cuda:1; auto takes a GPU if there is "
    "one.",
    default="auto",
)
seeds_option = option(
    "--seeds SEEDS",
    "Train a run for each of these seeds: 0..7, or 0,3,5.",
    callback=lambda _, __, text: None if text is None else seeds_of(text),
)


def options(*each: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, listed in this order in the help."""

    def decorate(function: F) -> F:
        for one in reversed(each):
            function = one(function)
        return function

    return decorate


def gathered(
    name: str, make: Callable[..., Any], *each: Callable[[Any], Any]
) -> Callable[[Callable[..., Any]], Any]:
    """Options whose values a command takes as one: what is made of them, under this name."""

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


def sample_option(what: str = "examples") -> Callable[[F], F]:
    """The flag that draws other examples."""
    most = click.IntRange(0, 2**32 - 1)
    return option("--sample N", f"Which {what}: another number draws others.", type=most, default=0)


def range_of(text: str) -> range:
    """The numbers of a text such as 3 or 0..7; empty if it is neither.

    >>> range_of("0..7"), range_of("3"), list(range_of("7..0")), list(range_of("x"))
    (range(0, 8), range(3, 4), [], [])
    """
    match = re.fullmatch(r"(\d{1,10})(?:\.\.(\d{1,10}))?", text, re.ASCII)
    return range(int(match[1]), int(match[2] or match[1]) + 1) if match else range(0)


def seeds_of(text: str) -> tuple[int, ...]:
    """The seeds that a text names.

    >>> seeds_of("0..2,7")
    (0, 1, 2, 7)
    """
    found: list[int] = []
    for part in text.replace(" ", ",").split(","):
        seeds = range_of(part)
        if not 0 < len(seeds) <= MOST_SEEDS:
            raise ConfigError(
                f"--seeds is {text!r}; expected numbers such as 0,3,5 or a range such as 0..7, of "
                f"at most {MOST_SEEDS:,}"
            )
        found += seeds
    return tuple(found)


def given(*flags: str) -> list[str]:
    """Those of these flags (`--over-training`) that are on the command line."""
    context = click.get_current_context()
    typed = click.core.ParameterSource.COMMANDLINE
    known = {flag: each.name for each in context.command.params for flag in each.opts}
    return [
        flag for flag in flags
        if flag in known and context.get_parameter_source(known[flag] or "") is typed
    ]  # fmt: skip


def refuse_unused(where: str, *flags: str) -> None:
    """Refuse flags that would do nothing."""
    if found := given(*flags):
        it = "it" if len(found) == 1 else "them"
        raise ConfigError(f"{', '.join(found)} would be ignored {where}: leave {it} out")
