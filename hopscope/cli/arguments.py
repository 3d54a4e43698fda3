"""Command lines from typed signatures (tyro), with errors on one line; what many of them share."""

import io
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, TypeVar

import tyro

from hopscope.cli.output import emit
from hopscope.errors import ConfigError

T = TypeVar("T")
RunNames = Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN …")]
"""Values whose metavar is RUN, PRESET, CLAIM, … are completed with the names there are."""


@dataclass(frozen=True, kw_only=True)
class StoreArguments:
    """Where runs are kept."""

    store: Path | None = None
    """Folder of runs; unset: $HOPSCOPE_STORE, or ./runs."""


@dataclass(frozen=True)
class RunArguments(StoreArguments):
    """Which run."""

    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """The run's name, or enough of it to be unique; or gallery/NAME."""


@dataclass(frozen=True, kw_only=True)
class JsonArguments:
    """How a table is printed."""

    json: bool = False
    """Print JSON, and nothing else: no table, and no figure that is not asked for."""


@dataclass(frozen=True, kw_only=True)
class ThreadArguments:
    """How many threads compute."""

    threads: int | None = None
    """Processor threads; unset: all cores, or as many as the run began with. The same number gives
    the same bits."""


@dataclass(frozen=True, kw_only=True)
class DeviceArguments(ThreadArguments):
    """What computes."""

    device: Annotated[str, tyro.conf.arg(metavar="DEVICE")] = "auto"
    """Where to compute: cpu, cuda, or one of several GPUs, as cuda:1; auto takes a GPU when there
    is one."""


@dataclass(frozen=True, kw_only=True)
class ResultsArguments:
    """Where results are kept."""

    results: Path = Path("results")
    """Folder of what `hopscope reproduce` measured, with its figures."""


def refuse_unused(chosen: Any, names: Iterable[str], where: str) -> None:
    """Refuse flags that say something other than usual where nothing would come of it."""
    usual = {each.name: each.default for each in fields(chosen)}
    given = [f"--{n.replace('_', '-')}" for n in names if getattr(chosen, n) != usual[n]]
    if given:
        it = "it" if len(given) == 1 else "them"
        raise ConfigError(f"{', '.join(given)} would be ignored {where}: leave {it} out")


class Held(io.StringIO):
    """What tyro prints, to be printed by us: it writes as it would to the stream of now."""

    def __init__(self) -> None:
        super().__init__()
        self.stream = sys.stdout

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Of the stream, empty if it is closed: frames are of ASCII where it is not UTF-8."""
        return getattr(self.stream, "encoding", None) or ""

    def isatty(self) -> bool:
        """A terminal gets colours."""
        return self.stream is not None and self.stream.isatty()


def parse(target: Callable[..., T], prog: str, arguments: Sequence[str], **options: Any) -> T:
    """Call the target with what the command line says; --help prints and exits."""
    helped, refusal = Held(), io.StringIO()
    try:
        with redirect_stdout(helped), redirect_stderr(refusal):
            parsed: T = tyro.cli(
                target,
                prog=f"hopscope {prog}",
                args=list(arguments),
                config=(tyro.conf.AvoidSubcommands,),
                **options,
            )
            return parsed
    except SystemExit as stop:
        if not stop.code:
            emit([helped.getvalue()], end="")
            raise
        raise ConfigError(f"{_one_line(refusal.getvalue())} (hopscope {prog} --help)") from None


def _one_line(box: str) -> str:
    """The text inside the box that tyro draws, without its frame and its title."""
    body = box.partition("For full helptext")[0]
    rows = body.splitlines()
    if len(rows) > 1 and set(rows[1].strip()) == {"-"}:  # in ASCII the title is a line of its own
        del rows[0]
    inside = [row for row in rows if "╭" not in row and set(row.strip()) != {"-"}]
    rows = [re.sub(r"[╭╮╰╯│─]+", " ", row) for row in inside]
    return _plain(" ".join(" ".join(rows).split())) or "cannot read the command line"


def _plain(text: str) -> str:
    """What tyro says of a value that it cannot read, as we say it.

    >>> _plain("Error parsing --step: invalid literal for int() with base 10: 'abc' Argument …")
    "--step is 'abc'; expected a whole number"
    """
    if match := re.match(r"Missing from hopscope (.*?): (\S+) (.*) \(required\)", text):
        return "{} needs {}: {}".format(*match.groups())
    if match := re.match(r"Missing value for argument '(?:.*\.)?(\S+)'", text):
        return f"{match[1]} needs a value"
    match = re.match(r"Error parsing (\S+): (.*?)(?: Argument helptext: \S+ (.*))?$", text)
    if match is None:
        return text
    flag, what, about = match.groups()
    got = re.search(r"(?:from|base 10:|float:|arguments:?) \[?('.*?')(?:\]|$|[. ])", what)
    expected = [words for sign, words in KINDS.items() if re.search(sign, f"{what} {about or ''}")]
    if got is None or not expected:
        return text.partition(" Argument helptext")[0]
    return f"{flag} is {got[1]}; expected {expected[0]}"


KINDS = {
    r"\[INT|INT \[|\{INT": "whole numbers",
    r"FLOAT FLOAT|\[FLOAT|Tuple\[.*float": "numbers",
    r"\bINT\b|int\(\)": "a whole number",
    r"\bFLOAT\b|to float": "a number",
}
"""How tyro writes a type, and how we do; the first that is found counts."""
