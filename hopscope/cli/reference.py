"""`python -m hopscope.cli.reference docs/reference.md` writes the page of all commands anew."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from hopscope.cli.commands import GROUPS, Command
from hopscope.cli.flags import Argument, arguments_of
from hopscope.cli.output import say
from hopscope.store.files import write_bytes

HEAD = """\
# Every command

Written by `python -m hopscope.cli.reference docs/reference.md`. What holds for all of them is in
[commands](commands.md).
"""
TRAINED = "Every field of what is trained is a flag as well: `hopscope train demo --help`."


def page() -> str:
    """The page of all commands and their flags, in Markdown."""
    return "\n".join([HEAD, *_listed(), ""])


def _listed() -> Iterator[str]:
    for group in GROUPS:
        name = group.page.removesuffix(".md")
        yield from (f"## {group.title}", "", f"Explained in [{name}]({group.page}).", "")
        for command in group.commands:
            yield from _section(command)


def _section(command: Command) -> Iterator[str]:
    arguments = arguments_of(command)
    words = "".join(f" {_word(each)}" for each in arguments if not each.flags)
    if command.name == "train":
        words = " PRESET|FILE.json"
    yield from (f"### hopscope {command.name}", "", command.summary, "")
    yield from ("```console", f"$ hopscope {command.name}{words}", "```", "")
    rows = [_row(each) for each in arguments]
    if rows:
        yield from ("| | |", "|---|---|", *rows, "")
    if command.name == "train":
        yield from (TRAINED, "")


def _word(argument: Argument) -> str:
    return argument.value if argument.help.endswith("(required)") else f"[{argument.value}]"


def _row(argument: Argument) -> str:
    flag = argument.flags[0] if argument.flags else ""
    named = f"{flag} {argument.value}".strip()
    about = re.sub(r" \((required|default:( None| False|) ?)\)$", "", argument.help)
    return f"| `{_cell(named)}` | {_cell(about)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    path = Path(sys.argv[1])
    write_bytes(path, page().encode())
    say(f"page: {path}")
