"""`python docs/_building/reference.py docs/reference.md` writes the page of all commands anew."""

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from hopscope.cli.commands import SECTIONS, load

HEAD = """\
# Every command

Every command with every flag. Flags that mean the same everywhere, and the usual way, are on
[commands](commands.md). Written by `python docs/_building/reference.py docs/reference.md`.
"""


def page() -> str:
    """The page of all commands and their flags, in Markdown."""
    return "\n".join([HEAD, *_listed(), ""])


def _listed() -> Iterator[str]:
    for section in SECTIONS:
        named = f"[{section.page.removesuffix('.md')}]({section.page})"
        yield from (f"## {section.title}", "", f"Explained in {named}.", "")
        for name in section.commands:
            yield from _command(name)


def _command(name: str) -> Iterator[str]:
    made = load(name)
    context = click.Context(made, info_name=f"hopscope {name}")
    words = " ".join(made.collect_usage_pieces(context)[1:])
    yield from (
        f"### hopscope {name}",
        "",
        "```console",
        f"$ hopscope {name} {words}".rstrip(),
        "```",
        "",
    )
    yield from _text(made.help or "")
    rows = [record for each in made.params if (record := each.get_help_record(context))]
    if rows:
        cells = (
            " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in (f"`{flag}`", text))
            for flag, text in rows
        )
        yield from ("| | |", "|---|---|", *(f"| {row} |" for row in cells), "")


def _text(text: str) -> Iterator[str]:
    """The paragraphs of a help text; one that is not to be wrapped is a block."""
    for part in inspect.cleandoc(text).split("\n\n"):
        lines = part.splitlines()
        if lines and lines[0] == "\b":
            yield from ("```text", *lines[1:], "```", "")
        else:
            yield from (*lines, "")


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(page())
    print(f"page: {path}")
