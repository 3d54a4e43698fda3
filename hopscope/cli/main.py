"""`hopscope COMMAND …`: one group of commands, each imported when it is called; one line for every
mistake, and an exit code.
"""

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
"""The variable by which a shell asks what may come next."""


def main() -> None:
    """The entry point: one line for whatever a user can cause, and an exit code."""
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
    """Do what a command line asks for; its exit code. A mistake is a HopscopeError."""
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
    except click.Abort as abort:  # a question that was not answered
        raise ConfigError("not confirmed: nothing was done") from abort
    except click.ClickException as error:
        raise ConfigError(_sentence(error)) from None


def _sentence(error: click.ClickException) -> str:
    """A mistake in one line, with the command whose help says more."""
    text = " ".join(error.format_message().split())
    if isinstance(error, click.NoSuchOption):
        near = " or ".join(error.possibilities or ())
        if "." in error.option_name:
            near = f"{error.option_name.lstrip('-')}=VALUE"
        text = f"no option {error.option_name}{f': did you mean {near}?' if near else ''}"
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"{text.removesuffix('.')} ({context.command_path} --help)" if context else text


def _explained(error: BaseException, *, interrupted: bool) -> int:
    """Show in one line what went wrong; the exit code for it."""
    code = 70  # a mistake of ours, for which a traceback is wanted
    if isinstance(error, Interrupted):
        warn(error)
        code = error.exit_code
    elif interrupted or isinstance(error, KeyboardInterrupt) or str(error) == "Query interrupted":
        warn("interrupted")
        code = 130
    elif isinstance(error, BrokenPipeError):  # the reader of the output (`| head`) has enough
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
        drop_output()  # else Python tries again when it ends
    return code


@contextmanager
def noting_interrupts() -> Iterator[list[int]]:
    """Note each Ctrl-C, beside raising KeyboardInterrupt as ever.

    Libraries that are being imported turn KeyboardInterrupt into an ImportError, DuckDB into a
    RuntimeError. Where it cannot be raised it comes again a moment later: in a finaliser, and while
    torch is imported, whose C++ code calls Python and would abort.
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
        timer.daemon = True  # a command that has ended does not wait for it
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
    """Is a module of torch being imported there?"""
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
    """Our warnings are one line; of others it is shown where they come from."""
    if issubclass(category, RunWarning):
        warn(message)
        return
    for each in warnings.formatwarning(message, category, filename, lineno, line).splitlines():
        note(each)
