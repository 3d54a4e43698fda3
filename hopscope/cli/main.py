"""`hopscope COMMAND …`: a table of commands, each imported when it is called.

So `hopscope --help` answers at once, and imports neither torch nor the commands themselves.
"""

import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import TextIO

from hopscope import __version__
from hopscope.cli.interruption import Interruption, noted_interruption
from hopscope.cli.output import drop_output, flush, forgive_encodings, note, say, warn
from hopscope.errors import ConfigError, HopscopeError, Interrupted, OutputLost, RunWarning

COMMANDS = {
    "train": ("hopscope.cli.training:train", "Train a preset, with any field changed by a flag."),
    "resume": ("hopscope.cli.training:resume", "Go on with a run that was stopped or killed."),
    "presets": ("hopscope.cli.presets:presets", "List the presets, or one with all its sources."),
    "demo": ("hopscope.cli.training:demo", "Train a small model, take it apart, watch it emerge."),
    "maps": ("hopscope.cli.circuits:maps", "Draw every head's attention between roles."),
    "discover": ("hopscope.cli.circuits:discover", "Find a model's circuit, proved by ablation."),
    "ablate": ("hopscope.cli.ablate:ablate", "Losses with the attention of heads replaced."),
    "emergence": ("hopscope.cli.circuits:emergence", "When the paths of a circuit appeared."),
    "circuit": ("hopscope.cli.circuits:circuit", "Show a circuit, or export it."),
    "markov": ("hopscope.cli.markov:markov", "The n-gram experiment: train, figures, theory."),
    "llm": ("hopscope.cli.llm:llm", "Ask language models the five kinds of questions in words."),
    "models": ("hopscope.cli.llm:models", "List language models, or fetch one."),
    "reproduce": ("hopscope.cli.reproduce:reproduce", "Run, measure and draw what papers show."),
    "claims": ("hopscope.cli.claims:claims", "What the papers say, what we measured, a verdict."),
    "report": ("hopscope.cli.claims:report", "Write claims and figures as one page of HTML."),
    "depth": ("hopscope.cli.depth:depth", "How many layers a question needs, with a schedule."),
    "runs": ("hopscope.cli.runs:runs", "List all runs, with the course of their losses."),
    "show": ("hopscope.cli.runs:show", "Show one run: its losses, its settings, its files."),
    "gallery": ("hopscope.cli.gallery:gallery", "List the models that come with hopscope."),
    "sql": ("hopscope.cli.runs:sql", "Ask a question in SQL over every metric of every run."),
    "verify": ("hopscope.cli.runs:verify", "Check a run's files against its manifest."),
    "rm": ("hopscope.cli.runs:rm", "Remove runs."),
    "completion": ("hopscope.cli.completion:completion", "Print a completion script for a shell."),
}

Command = Callable[[Sequence[str]], int]


def main() -> None:
    """The entry point: one line for whatever a user can cause, and an exit code."""
    forgive_encodings()
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


def run(arguments: Sequence[str]) -> int:
    """Call the command that the arguments name."""
    if not arguments or arguments[0] in ("-h", "--help"):
        say(*help_text())
        return 0
    if arguments[0] == "--version":
        say(f"hopscope {__version__}")
        return 0
    return command(arguments[0])(arguments[1:])


def command(name: str) -> Command:
    """The function behind a command's name."""
    if name not in COMMANDS:
        close = get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean `hopscope {close[0]}`?" if close else "see `hopscope --help`"
        raise ConfigError(f"unknown command {name!r}: {hint}")
    module, _, function = COMMANDS[name][0].partition(":")
    found: Command = getattr(import_module(module), function)
    return found


def help_text() -> list[str]:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {summary}" for name, (_, summary) in COMMANDS.items()]
    return [
        "hopscope: a microscope for multi-hop attention",
        "",
        "usage: hopscope COMMAND [--help] …",
        "",
        *lines,
        "",
        "Runs are kept in ./runs, or $HOPSCOPE_STORE, or --store. Where a run is asked for,",
        "gallery/NAME is a model that comes with hopscope: see `hopscope gallery`.",
    ]
