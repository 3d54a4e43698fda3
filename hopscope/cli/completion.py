"""`hopscope completion SHELL`: a script that completes commands, presets and flags."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union

import tyro

from hopscope.cli import (
    ablate,
    circuits,
    claims,
    depth,
    gallery,
    llm,
    markov,
    presets,
    reproduce,
    runs,
    training,
)
from hopscope.cli.arguments import parse
from hopscope.configs import Recipe
from hopscope.papers import presets as all_presets

ARGUMENTS: dict[str, Any] = {
    "resume": training.ResumeArguments,
    "presets": presets.PresetsArguments,
    "demo": training.DemoArguments,
    "maps": circuits.MapsArguments,
    "discover": circuits.DiscoverArguments,
    "ablate": ablate.AblateArguments,
    "emergence": circuits.EmergenceArguments,
    "circuit": circuits.CircuitArguments,
    "reproduce": reproduce.ReproduceArguments,
    "claims": claims.ClaimsArguments,
    "report": claims.ReportArguments,
    "depth": depth.DepthArguments,
    "gallery": gallery.GalleryArguments,
    "runs": runs.RunsArguments,
    "show": runs.ShowArguments,
    "sql": runs.SqlArguments,
    "verify": runs.VerifyArguments,
    "rm": runs.RmArguments,
}


@dataclass(frozen=True)
class CompletionArguments:
    """Print a completion script, e.g. `source <(hopscope completion bash)`."""

    shell: Annotated[Literal["bash", "zsh"], tyro.conf.Positional] = "bash"
    """Which shell."""


def completion(arguments: Sequence[str]) -> int:
    shell = parse(CompletionArguments, "completion", arguments).shell
    tyro.cli(_parser(), prog="hopscope", args=["--tyro-print-completion", shell])
    return 0


def everything() -> dict[str, Any]:
    """What every command parses, by its name."""
    return {
        **ARGUMENTS,
        "completion": CompletionArguments,
        "train": _train_parser(),
        "markov": _grouped("The n-gram experiment.", markov.ARGUMENTS),
        "llm": _grouped("Language models.", llm.ARGUMENTS),
        "models": llm.ModelsArguments,
    }


def _parser() -> Any:
    """One parser of all commands; it exists for its completions alone."""
    named = everything()
    subcommands = [Annotated[target, tyro.conf.subcommand(name)] for name, target in named.items()]
    return Union[tuple(subcommands)]  # noqa: UP007  (the members are only known here)


def _grouped(summary: str, actions: dict[str, Any]) -> Any:
    """A command with actions of its own."""
    choices = [Annotated[target, tyro.conf.subcommand(name)] for name, target in actions.items()]
    which: Any = Annotated[Union[tuple(choices)], tyro.conf.arg(name="")]  # noqa: UP007

    def parser(action: which) -> None:
        del action

    parser.__doc__ = summary
    return parser


def _preset_parser(name: str, recipe: Recipe) -> Any:
    form = training.arguments_for(recipe)
    simple: Any = tyro.conf.AvoidSubcommands
    return Annotated[simple[form], tyro.conf.subcommand(name, default=form(recipe))]


def _train_parser() -> Any:
    choices = [_preset_parser(name, one.experiment) for name, one in all_presets().items()]
    which: Any = Annotated[Union[tuple(choices)], tyro.conf.arg(name="")]  # noqa: UP007

    def train(preset: which) -> None:
        """Train a preset."""

    return train
