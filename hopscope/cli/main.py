"""`hopscope COMMAND …`: finds a command in the table, imports it and calls it.

So `hopscope --help` answers at once, and imports neither torch nor the commands themselves.
"""

import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any, TextIO

from hopscope import __version__
from hopscope.cli.commands import HELP, Command, asked, form_of, function_of, help_of, help_text
from hopscope.cli.interruption import Interruption, noted_interruption
from hopscope.cli.output import drop_output, flush, forgive_encodings, note, say, warn
from hopscope.errors import HopscopeError, Interrupted, OutputLost, RunWarning
from hopscope.machine import keep_pages


def main() -> None:
    """The entry point: one line for whatever a user can cause, and an exit code."""
    forgive_encodings()
    keep_pages()
    warnings.showwarning = _show_warning
    with noted_interruption() as interruption:
        try:
            code = _answered(sys.argv[1:])
        except BaseException as error:  # noqa: BLE001  (told to the user, whatever it is)
            code = _told(error, interruption)
    sys.exit(code)


def _answered(arguments: Sequence[str]) -> int | str | None:
    """The exit code of what the arguments ask for, when all of its output has gone out."""
    try:
        code: int | str | None = run(arguments)
    except SystemExit as stop:  # --help
        code = stop.code
    flush()
    return code


def _told(error: BaseException, interruption: Interruption) -> int:
    """Tell the user in one line what went wrong; the exit code it means."""
    code = 70  # a mistake of ours, for which a traceback is wanted
    if isinstance(error, Interrupted):
        warn(error)
        code = error.exit_code
    elif interruption.explains(error):
        warn("interrupted")
        code = 130
    elif isinstance(error, BrokenPipeError):  # whoever read our output (`| head`) has enough
        code = 0
    elif isinstance(error, HopscopeError):
        warn(error)
        code = error.exit_code
    else:
        for line in "".join(traceback.format_exception(error)).splitlines():
            note(line)
    try:
        flush()
    except (BrokenPipeError, OutputLost):
        drop_output()  # or Python tries it again at its end
    return code


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,  # noqa: ARG001  (the signature is Python's)
    line: str | None = None,
) -> None:
    """Ours are for the user, in one line; of others it is said where they come from."""
    if issubclass(category, RunWarning):
        warn(message)
        return
    for each in warnings.formatwarning(message, category, filename, lineno, line).splitlines():
        note(each)


def run(words: Sequence[str]) -> int:
    """Do what a command line asks for."""
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    if not words or words[0] in HELP:
        say(*help_text())
        return 0
    if words[0] in ("--version", "-V"):
        say(f"hopscope {__version__}")
        return 0
    command, rest = asked(words)
    if command is None:
        say(*help_of(words[0]))
        return 0
    return call(command, rest)


def call(command: Command, words: Sequence[str], **given: Any) -> int:
    """Call a command's function with what its flags say; what is given by name is handed on."""
    function, form = function_of(command), form_of(command)
    if form is None:
        return function(words, **given)
    from hopscope.cli.arguments import parse

    return function(parse(form, command.name, words), **given)
