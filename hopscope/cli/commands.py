"""The table of all commands: help, dispatch, completion and the reference page use it.

Importing this module imports none of the commands.

To add a command, write its function and an entry here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NoReturn

import click

from hopscope import __version__
from hopscope.cli.output import say
from hopscope.errors import ConfigError
from hopscope.names import alike


@dataclass(frozen=True)
class CommandSection:
    """Commands that are listed under one title."""

    title: str
    page: str
    """The page of docs/ that explains them."""
    commands: Mapping[str, tuple[str, str]]
    """For each name, its function (`module:name` of this package) and what it does."""


SECTIONS = (
    CommandSection("Train", "training.md", {
        "train": ("training:train", "Train a preset or a recipe's file, with any field changed."),
        "resume": ("training:resume", "Go on with a run that was stopped or killed."),
        "presets": ("training:presets", "List the presets, or one with the source of each value."),
        "demo": ("training:demo", "Train a small model, take it apart, watch it emerge."),
        "sweep": ("sweep:sweep", "Train all recipes of a file, here or on a cluster."),
    }),
    CommandSection("Look into a model", "circuits.md", {
        "attention": ("analysis:attention", "Every head's attention between roles."),
        "circuit": ("analysis:circuit", "Find a model's circuit, or show the one that was found."),
        "probe": ("analysis:probe", "Which symbols can be read at each role, layer by layer."),
        "patch": ("analysis:patch", "Which symbol each path of the circuit moves."),
        "ablate": ("analysis:ablate", "Losses with the attention of heads replaced."),
        "emergence": ("emergence:emergence", "When the paths of the circuit appeared in training."),
        "evaluate": ("analysis:evaluate", "Losses on fresh examples, also of other sizes."),
        "baselines": ("analysis:baselines", "What other methods say, beside the circuit."),
        "view": ("view:view", "Open models in the browser, or write one as a page."),
    }),
    CommandSection("Runs", "runs.md", {
        "runs": ("listing:runs", "List all runs, with the course of their losses."),
        "show": ("runs:show", "Show a run: its losses or answers, its settings, its files."),
        "compare": ("runs:compare", "Two runs side by side: settings, losses, circuits."),
        "sql": ("runs:sql", "Ask a question in SQL over every metric of every run."),
        "tag": ("runs:tag", "Give a run names of your own, to find it by."),
        "verify": ("runs:verify", "Check a run's files against its manifest."),
        "rm": ("runs:rm", "Remove runs."),
        "gallery": ("runs:gallery", "List the models that come with hopscope, or copy one."),
    }),
    CommandSection("Share", "sharing.md", {
        "export": ("sharing:export", "Send a run to a tracker, or its model to transformers."),
        "push": ("sharing:push", "Put a run on a hub, with a card."),
        "pull": ("sharing:pull", "Fetch a run from a hub, or a model of the gallery."),
    }),
    CommandSection("The papers", "papers.md", {
        "papers list": ("papers:experiments", "List the experiments, and what each still needs."),
        "papers run": ("papers:run", "Train, measure and draw what the papers show."),
        "papers claims": ("papers:claims", "What the papers say, what we measured, a verdict."),
        "papers report": ("papers:report", "Write claims and figures as one page of HTML."),
        "depth": ("depth:depth", "How many layers a question needs, with a schedule."),
    }),
    CommandSection("The n-gram experiment", "ngram.md", {
        "ngram train": ("ngram:train", "Train the experiment; by itself, as in the paper."),
        "ngram theory": ("ngram:theory", "Which lags stage I is predicted to choose, and why."),
        "ngram transfer": ("ngram:transfer", "The model on chains of other lengths and priors."),
    }),
    CommandSection("Language models", "lm.md", {
        "lm ask": ("lm:ask", "Ask a model the paper's five kinds of questions."),
        "lm heads": ("lm:heads", "Which heads look things up, and what they are worth."),
        "lm circuit": ("lm:circuit", "How a model comes to its answer, patched and proved."),
        "lm claims": ("lm:claims", "What the paper says of language models, judged on one."),
        "lm export": ("lm:export", "Write the questions for other evaluation tools."),
        "lm list": ("lm:listing", "List the language models that can be fetched."),
        "lm pull": ("lm:pull", "Fetch one of them, or any OWNER/NAME of a hub."),
    }),
    CommandSection("This installation", "commands.md", {
        "doctor": ("health:doctor", "Check the installation, this machine and the store."),
        "completion": ("health:completion", "Print a completion script for a shell."),
    }),
)  # fmt: skip
COMMANDS = {name: command for section in SECTIONS for name, command in section.commands.items()}
GROUPS = {
    "papers": "The experiments and claims of both papers.",
    "ngram": "The n-gram experiment: how a transformer learns in-context n-grams, in three stages.",
    "lm": "Language models: the paper's questions, and how a model comes to its answers.",
}
"""Help text of each group: the first word of its commands."""
ENDS = """\
Runs are kept in ./runs, in $HOPSCOPE_STORE, or in the folder of --store. Where a command takes a
RUN, gallery/NAME is a model that comes with hopscope: see `hopscope gallery`."""


class Command(click.Command):
    """A command that prints its help with `say`, like all other output."""

    allow_extra_args = True  # `parse_args` refuses them

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words after the command; one too many is refused."""
        extra = super().parse_args(ctx, args)
        if extra and not ctx.resilient_parsing:
            refuse_word(ctx, extra[0])
        return extra

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """The option --help."""
        return _help_option() if self.add_help_option else None


class CommandGroup(click.Group):
    """All commands, or those whose names begin with `word`; each is imported when it is used."""

    def __init__(self, word: str = "") -> None:
        settings = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
        text = GROUPS[word] if word else "A microscope for multi-hop attention."
        super().__init__(word or "hopscope", help=text, context_settings=settings)
        self.start = f"{word} " if word else ""
        if not word:
            version = f"hopscope {__version__}"
            self.params.append(
                _printing(["-V", "--version"], "Show the version.", lambda _: version)
            )

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """The option --help."""
        return _help_option()

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The next word of each command."""
        names = (name.removeprefix(self.start) for name in COMMANDS if name.startswith(self.start))
        return [*dict.fromkeys(name.partition(" ")[0] for name in names)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command, or make the group of this name."""
        if self.start + cmd_name in COMMANDS:
            return load(self.start + cmd_name)
        return CommandGroup(cmd_name) if cmd_name in GROUPS and not self.start else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command for these words; raises ConfigError with similar names if unknown."""
        if ctx.resilient_parsing:  # a shell asks what may come next
            return self._completed(ctx, args)
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            here = self.list_commands(ctx)
            otherwise = f"there are {', '.join(here)}" if self.start else "see `hopscope --help`"
            close = alike(args[0], here, 1) or alike(args[0], COMMANDS, 1)
            start = "" if close and close[0] in COMMANDS else self.start
            hint = f"did you mean `hopscope {start}{close[0]}`?" if close else otherwise
            raise ConfigError(f"unknown command {self.start + args[0]!r}: {hint}")
        return super().resolve_command(ctx, args)

    def _completed(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command to complete (after `help`: the next word); an empty one if unknown."""
        if args == ["help"]:
            return None, None, []
        first, *others = args[1:] if args[0] == "help" else args
        found = self.get_command(ctx, first)
        return first, found or click.Command(first, add_help_option=False), others

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table of commands, section by section."""
        for section in SECTIONS:
            rows = [
                (name, does) for name, (_, does) in section.commands.items()
                if name.startswith(self.start)
            ]  # fmt: skip
            if rows:
                with formatter.section(section.title):
                    formatter.write_dl(rows, col_max=20)
        if not self.start:
            formatter.write_paragraph()
            formatter.write_text(ENDS)


def load(name: str) -> click.Command:
    """Import a command."""
    module, _, function = COMMANDS[name][0].partition(":")
    found: click.Command = getattr(import_module(f"hopscope.cli.{module}"), function)
    found.name = name.rpartition(" ")[2]
    return found


def refuse_word(ctx: click.Context, word: str) -> NoReturn:
    """Fail for a word that the command does not take; for a number, suggest options for it."""
    near = [each.opts[0] for each in ctx.command.params if _takes(each, word, ctx)]
    known = " or ".join(filter(None, [", ".join(near[:-1]), *near[-1:]]))
    ctx.fail(f"unexpected argument {word!r}{known and f': did you mean {known} {word}?'}")


def _takes(option: click.Parameter, word: str, ctx: click.Context) -> bool:
    """Return whether this is an option whose value is a number, and accepts this one."""
    if option.metavar != "N":
        return False
    try:
        option.type.convert(word, option, ctx)
    except click.BadParameter:
        return False
    return True


def _printing(flags: list[str], says: str, text: Callable[[click.Context], str]) -> click.Option:
    """Return a flag that prints a text with `say` and ends the command."""

    def shown(ctx: click.Context, _: click.Parameter, value: Any) -> None:
        if value and not ctx.resilient_parsing:
            say(*text(ctx).splitlines())
            ctx.exit()

    return click.Option(
        flags, is_flag=True, is_eager=True, expose_value=False, callback=shown, help=says
    )


def _help_option() -> click.Option:
    return _printing(["-h", "--help"], "Show this help.", click.Context.get_help)
