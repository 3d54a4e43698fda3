"""Every command there is, in one table: help, dispatch, completion, the reference page and a test
are made from it. Importing it imports none of the commands.

To add a command, write its function, whose first parameter says by its type what flags there are,
and an entry here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, is_dataclass
from importlib import import_module
from inspect import signature
from typing import Any

from hopscope.errors import ConfigError
from hopscope.names import alike


@dataclass(frozen=True)
class Command:
    """A command (`maps`), or an action of one (`circuit show`)."""

    name: str
    summary: str
    place: str
    """Its function, as `module:name` of this room. It takes a dataclass, whose fields are its
    arguments; a function of words reads them itself."""
    form: str = ""
    """Of a function that reads words: the dataclass of the flags that are always there."""


@dataclass(frozen=True)
class Group:
    """Commands that are listed under one title."""

    title: str
    page: str
    """The page of docs/ that explains them."""
    commands: tuple[Command, ...]


GROUPS = (
    Group("Train", "training.md", (
        Command("train", "Train a preset, with any field changed by a flag.", "training:train",
                form="training:TrainOptions"),
        Command("resume", "Go on with a run that was stopped or killed.", "training:resume"),
        Command("presets", "List the presets, or one with all its sources.", "presets:presets"),
        Command("demo", "Train a small model, take it apart, watch it emerge.", "training:demo"),
    )),
    Group("Many runs", "many_runs.md", (
        Command("sweep", "Carry out all recipes of a file, on one machine or on many.",
                "sweep:sweep"),
        Command("sweep plan", "What there is of them, what is missing, how long it takes.",
                "sweep:plan"),
        Command("sweep slurm", "Print a job script for SLURM, to read and submit.",
                "sweep:slurm"),
    )),
    Group("Look into a model", "circuits.md", (
        Command("maps", "Draw every head's attention between roles.", "circuits:maps"),
        Command("discover", "Find a model's circuit, proved by ablation.", "circuits:discover"),
        Command("patch", "Which symbol each path of its circuit moves.", "patch:patch"),
        Command("baselines", "What other methods say, beside its circuit.",
                "baselines:baselines"),
        Command("ablate", "Losses with the attention of heads replaced.", "ablate:ablate"),
        Command("probe", "Which symbols can be read at each role, by layer.", "probe:probe"),
        Command("emergence", "When the paths of a circuit appeared.", "circuits:emergence"),
        Command("circuit show", "Show the circuit of a model.", "circuit:show"),
        Command("circuit export", "Write the circuit of a model to a file, for other tools too.",
                "circuit:export"),
    )),
    Group("The explorer", "explorer.md", (
        Command("view", "Open a model in the browser, or write it as a page.", "view:view"),
        Command("serve", "Show the models of a store to browsers.", "view:serve"),
    )),
    Group("Runs", "runs.md", (
        Command("runs", "List all runs, with the course of their losses.", "listing:runs"),
        Command("show", "Show one run: its losses, its settings, its files.", "runs:show"),
        Command("sql", "Ask a question in SQL over every metric of every run.", "runs:sql"),
        Command("compare", "Two runs side by side: settings, losses, circuits.",
                "compare:compare"),
        Command("tag", "Give a run names of your own, by which it is found.", "tag:tag"),
        Command("verify", "Check a run's files against its manifest.", "runs:verify"),
        Command("rm", "Remove runs.", "runs:rm"),
        Command("gallery list", "List the models that come with hopscope.", "gallery:listing"),
        Command("gallery copy", "Copy one of them into a store, to write to.", "gallery:copy"),
    )),
    Group("Sharing", "sharing.md", (
        Command("export", "Send a run to a tracker, or its model to transformers.",
                "sharing:export"),
        Command("models push", "Put a run on a hub, with a card.", "models:push"),
    )),
    Group("The papers", "papers.md", (
        Command("reproduce", "Run, measure and draw what papers show.", "reproduce:reproduce"),
        Command("claims", "What the papers say, what we measured, a verdict.", "claims:claims"),
        Command("readings", "Which claims hold under which reading of a paper.",
                "readings:readings"),
        Command("report", "Write claims and figures as one page of HTML.", "claims:report"),
    )),
    Group("Theory", "theory.md", (
        Command("depth", "How many layers a question needs, with a schedule.", "depth:depth"),
    )),
    Group("The n-gram experiment", "ngram.md", (
        Command("ngram train", "Train the experiment; without flags, as in the paper.",
                "ngram:train"),
        Command("ngram figures", "Draw a run: stages, heads, the way to the induction head.",
                "ngram:figures"),
        Command("ngram transfer", "The trained model on chains of other lengths and priors.",
                "ngram:transfer"),
        Command("ngram theory", "Which lags stage I is predicted to choose, and why.",
                "ngram:theory"),
    )),
    Group("Language models", "llm.md", (
        Command("llm bench", "Ask a model the paper's five kinds of questions.", "llm:bench"),
        Command("llm show", "Show benchmarks, draw them, or print every answer.", "llm:show"),
        Command("llm heads", "Which heads look things up, and what switching them off does.",
                "llm_heads:heads"),
        Command("llm mechanism", "How a model comes to its answer, patched and proved.",
                "llm_mechanism:mechanism"),
        Command("llm export", "Write the questions for RULER, lm-evaluation-harness, inspect_ai.",
                "llm_export:export"),
        Command("models list", "List the language models that can be fetched.", "models:listing"),
        Command("models pull", "Fetch one of them, or any OWNER/NAME of a hub; runs, too.",
                "models:fetch"),
    )),
    Group("The shell", "commands.md", (
        Command("doctor", "Check the installation, this machine and the store.", "doctor:doctor"),
        Command("completion", "Print a completion script for a shell.", "completion:completion"),
    )),
)  # fmt: skip
COMMANDS = {command.name: command for group in GROUPS for command in group.commands}
HIDDEN = {"complete": Command("complete", "What may come next on a line.", "complete:complete")}
"""Commands for programs, that nobody types."""
HELP = ("-h", "--help")


def function_of(command: Command) -> Callable[..., int]:
    """The function behind a command."""
    found: Callable[..., int] = _fetched(command.place)
    return found


def _fetched(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f"hopscope.cli.{module}"), name)


def form_of(command: Command) -> type[Any] | None:
    """The dataclass that a command takes; None for one that reads words itself."""
    form = next(iter(signature(function_of(command)).parameters.values())).annotation
    return form if is_dataclass(form) and isinstance(form, type) else None


def always_there(command: Command) -> type[Any]:
    """The dataclass of the flags that a command has, whatever the words before them."""
    found: type[Any] = form_of(command) or _fetched(command.form)
    return found


def actions(name: str) -> list[Command]:
    """What there is of a command that has actions."""
    return [command for command in COMMANDS.values() if command.name.startswith(f"{name} ")]


def asked(words: Sequence[str]) -> tuple[Command | None, Sequence[str]]:
    """The command that a line names, and the rest of the line; None is the help of a command that
    has actions.

    A command that has an action `list` does that when none is named. Before the word of a command
    that does something by itself (`sweep FILE`) come its actions.
    """
    head, rest = words[0], words[1:]
    if rest and head in COMMANDS and (found := COMMANDS.get(f"{head} {rest[0]}")):
        return found, rest[1:]
    if found := COMMANDS.get(head) or HIDDEN.get(head):
        return found, rest
    if not actions(head):
        raise ConfigError(f"unknown command {head!r}: {_hint(head)}")
    if not rest or rest[0] in HELP:
        return (COMMANDS.get(f"{head} list") if not rest else None), rest
    if found := COMMANDS.get(f"{head} {rest[0]}"):
        return found, rest[1:]
    if rest[0].startswith("-") and (found := COMMANDS.get(f"{head} list")):
        return found, rest
    raise ConfigError(f"unknown action {rest[0]!r} of {head}: {_hint(rest[0], head)}")


def _hint(word: str, head: str = "") -> str:
    """What may have been meant: a command, or an action of one."""
    start = f"{head} " if head else ""
    names = [name.removeprefix(start) for name in COMMANDS if name.startswith(start)]
    if close := alike(word, [*names, *(name.partition(" ")[0] for name in names)], 1):
        return f"did you mean `hopscope {start}{close[0]}`?"
    return f"there are {', '.join(names)}" if head else "see `hopscope --help`"


def help_text() -> list[str]:
    """What `hopscope --help` prints."""
    listed = [["", f"{group.title}:", *_lines(group.commands)] for group in GROUPS]
    return [
        "hopscope: a microscope for multi-hop attention",
        "",
        "usage: hopscope COMMAND [--help] …",
        *(line for lines in listed for line in lines),
        "",
        "Runs are kept in ./runs, or $HOPSCOPE_STORE, or --store. Where a run is asked for,",
        "gallery/NAME is a model that comes with hopscope: see `hopscope gallery`.",
    ]


def help_of(name: str) -> list[str]:
    """What `hopscope NAME --help` prints of a command that has actions."""
    return [f"usage: hopscope {name} ACTION [--help] …", "", *_lines(actions(name))]


def _lines(commands: Sequence[Command]) -> list[str]:
    width = max(map(len, COMMANDS))
    return [f"  {command.name:<{width}}  {command.summary}" for command in commands]
