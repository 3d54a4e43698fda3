"""`hopscope COMMAND …`: the entry point; it shows every error as one line and an exit code."""

import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, TextIO

import click

from hopscope.cli.commands import CommandGroup
from hopscope.cli.output import drop_output, flush, forgive_encodings, note, say, warn
from hopscope.errors import ConfigError, HopscopeError, Interrupted, OutputLost, RunWarning
from hopscope.machine import allow_many_files, keep_pages, out_of_memory

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

COMPLETE = "_HOPSCOPE_COMPLETE"
"""The environment variable that shells set to request completions."""


def main() -> None:
    """Run the command line in `sys.argv`; show an error as one line; exit with its code."""
    forgive_encodings()
    keep_pages()
    allow_many_files()
    warnings.showwarning = _show_warning
    if instruction := os.environ.get(COMPLETE):
        from click.shell_completion import shell_complete

        sys.exit(shell_complete(CommandGroup(), {}, "hopscope", COMPLETE, instruction))
    with noting_interrupts() as came:
        try:
            code = run(sys.argv[1:])
            flush()
        except BaseException as error:  # noqa: BLE001  (shown to the user, whatever it is)
            code = _explained(error, interrupted=bool(came))
    sys.exit(code)


def run(words: Sequence[str]) -> int:
    """Run a command line; return its exit code. Raises HopscopeError for a wrong command line."""
    words = list(words)
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    group = CommandGroup()
    try:
        with group.make_context("hopscope", words) as context:
            return group.invoke(context) or 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.exceptions.NoArgsIsHelpError as helped:
        say(*helped.message.splitlines())
        return 0
    except click.Abort as abort:  # a confirmation was declined
        raise ConfigError("not confirmed: nothing was done") from abort
    except click.ClickException as error:
        raise ConfigError(_sentence(error)) from None


def _sentence(error: click.ClickException) -> str:
    """Return a click error as one line, with the help command to run."""
    text = " ".join(error.format_message().split())
    if isinstance(error, click.NoSuchOption):
        near = " or ".join(error.possibilities or ())
        if "." in error.option_name:
            near = f"{error.option_name.lstrip('-')}=VALUE"
        text = f"no option {error.option_name}{f': did you mean {near}?' if near else ''}"
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"{text.removesuffix('.')} ({context.command_path} --help)" if context else text


def _explained(error: BaseException, *, interrupted: bool) -> int:
    """Print an error in one line (a defect of hopscope: its traceback); return the exit code."""
    code = 70  # a defect of hopscope
    if isinstance(error, Interrupted):
        warn(error)
        code = error.exit_code
    elif interrupted or isinstance(error, KeyboardInterrupt) or str(error) == "Query interrupted":
        warn("interrupted")
        code = 130
    elif isinstance(error, BrokenPipeError):  # the reader (`| head`) closed the pipe
        code = 0
    elif isinstance(error, HopscopeError):
        warn(error)
        code = error.exit_code
    elif said := out_of_memory(error):
        warn(f"this takes more memory than there is ({said}): take smaller numbers")
        code = 1
    else:
        for line in "".join(traceback.format_exception(error)).splitlines():
            note(line)
    try:
        flush()
    except (BrokenPipeError, OutputLost):
        drop_output()  # otherwise Python flushes again at exit
    return code


@contextmanager
def noting_interrupts() -> Iterator[list[int]]:
    """Yield a list that grows at each Ctrl-C, which also raises KeyboardInterrupt as usual.

    The list is needed because libraries convert KeyboardInterrupt: imports into ImportError, DuckDB
    into RuntimeError. In a finaliser and during the import of torch (whose C++ code would abort)
    it cannot be raised; the signal is then sent again 0.05 s later.
    """
    came: list[int] = []
    main_thread = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    if not main_thread or before is signal.SIG_IGN:
        yield came
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        came.append(number)
        if _importing_torch(frame):
            again()
        else:
            raise KeyboardInterrupt

    def again() -> None:
        timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
        timer.daemon = True  # the process does not wait for the timer at exit
        timer.start()

    def lost(error: "UnraisableHookArgs") -> None:
        if issubclass(error.exc_type, KeyboardInterrupt):
            again()
        else:
            hook(error)

    hook, sys.unraisablehook = sys.unraisablehook, lost
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield came
    finally:
        signal.signal(signal.SIGINT, before)
        sys.unraisablehook = hook


def _importing_torch(frame: FrameType | None) -> bool:
    """Return whether this frame is inside the import of a torch module."""
    while frame is not None:
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        if package == "torch" and frame.f_code.co_name == "<module>":
            return True
        frame = frame.f_back
    return False


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,  # noqa: ARG001  (the signature is Python's)
    line: str | None = None,
) -> None:
    """Print a RunWarning as one line, and other warnings with their source as Python does."""
    if issubclass(category, RunWarning):
        warn(message)
        return
    for each in warnings.formatwarning(message, category, filename, lineno, line).splitlines():
        note(each)
