"""`hopscope completion SHELL`: a script that completes commands, flags, and names of all kinds.

The script holds a table of all arguments, and hands it to `hopscope complete` at every press of
the key: what takes long, tyro's parsers, is done here and once.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import tyro

from hopscope.cli.commands import COMMANDS
from hopscope.cli.complete import Row, write_table
from hopscope.cli.flags import Argument, arguments_of, read
from hopscope.cli.output import emit

SCRIPTS = {
    "bash": """\
_hopscope_table=$(cat <<'END'
TABLE
END
)
_hopscope() {
    local IFS=$'\\n'
    COMPREPLY=($(hopscope complete "${COMP_WORDS[@]:1:COMP_CWORD}" \\
        <<< "$_hopscope_table" 2> /dev/null))
}
complete -o default -F _hopscope hopscope
""",
    "zsh": """\
_hopscope_table=$(cat <<'END'
TABLE
END
)
_hopscope() {
    local -a found
    found=(${(f)"$(hopscope complete "${(@)words[2,CURRENT]}" \\
        <<< "$_hopscope_table" 2> /dev/null)"})
    if (( $#found )); then compadd -a found; else _files; fi
}
compdef _hopscope hopscope
""",
    "fish": """\
set -g _hopscope_table 'TABLE'
function _hopscope
    set -l words (commandline -opc) (commandline -ct)
    set -e words[1]
    printf '%s\\n' $_hopscope_table | hopscope complete $words 2> /dev/null
end
complete -c hopscope -a '(_hopscope)'
""",
}


@dataclass(frozen=True)
class CompletionArguments:
    """Print a completion script, e.g. `source <(hopscope completion bash)`."""

    shell: tyro.conf.Positional[Literal["bash", "zsh", "fish"]] = "bash"
    """Which shell."""


def completion(chosen: CompletionArguments) -> int:
    emit([SCRIPTS[chosen.shell].replace("TABLE", write_table(table()))], end="")
    return 0


def table() -> Iterator[tuple[Sequence[str], Iterable[Row]]]:
    """The arguments of every command; of `train`, those of every preset."""
    for name, command in COMMANDS.items():
        yield (name,), map(_row, arguments_of(command))
    from hopscope.cli.training import arguments_for
    from hopscope.papers import presets

    alike: dict[type, list[str]] = {}
    for name, preset in presets().items():
        alike.setdefault(type(preset.recipe), []).append(name)
    for names in alike.values():
        recipe = presets()[names[0]].recipe
        form = arguments_for(recipe)
        yield [f"train {name}" for name in names], map(_row, read(form, default=form(recipe)))


def _row(argument: Argument) -> Row:
    value = argument.value.strip("[]").split(" ")[0]
    choices = argument.choices or tuple(NAMES[value]() if value in NAMES else ())
    return Row(argument.flags, value, argument.many, choices)


def _presets() -> Iterable[str]:
    from hopscope.papers import presets

    return presets()


def _claims() -> Iterable[str]:
    from hopscope.papers.registry import PAPERS

    return PAPERS.claims


def _targets() -> Iterable[str]:
    from hopscope.papers.registry import PAPERS

    return PAPERS.targets


def _models() -> Iterable[str]:
    from hopscope.llm.models import KNOWN

    return KNOWN


def _gallery() -> Iterable[str]:
    from hopscope.store.gallery import names

    return names()


NAMES: dict[str, Callable[[], Iterable[str]]] = {
    "PRESET": _presets,
    "CLAIM": _claims,
    "TARGET": _targets,
    "MODEL": _models,
    "GALLERY": _gallery,
    "DEVICE": lambda: ("auto", "cpu", "cuda"),
}
"""The names that stand for a value; those of runs are looked up when they are needed."""
