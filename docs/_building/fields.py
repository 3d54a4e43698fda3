"""`python docs/_building/fields.py docs/fields.md` writes the page of all config fields anew.

What a field means stands in the sources alone, as the text below it; this reads it from there.
"""

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args, get_origin

from hopscope.configs import (
    Asking,
    Config,
    Descent,
    Discovery,
    Experiment,
    InductionModel,
    LmBench,
    LmCircuit,
    Model,
    NgramExperiment,
    NgramProcess,
    Prompts,
    Tracing,
    Training,
)
from hopscope.configs.tasks import TASK_KINDS

HEAD = """\
# Every field

The meaning, unit and source of each field of a recipe: § is a section of Musat (ICLR 2025), other
papers are named. `hopscope train` takes every field as a word (`model.layers=4`), and it is a key
of a recipe's file. (Fields of `Discovery` are arguments of `discover`.) An impossible value is
refused with a line that names the possible ones.

Written by `python docs/_building/fields.py docs/fields.md`.
"""
CONFIGS: tuple[type[Config], ...] = (
    Experiment, Model, Training, *TASK_KINDS.values(),
    Discovery, NgramExperiment, NgramProcess, InductionModel, Descent,
    LmBench, Prompts, Asking, LmCircuit, Tracing,
)  # fmt: skip
"""Every config that somebody writes, in the order of use."""


def page() -> str:
    """The page of all fields, in Markdown."""
    return "\n".join([HEAD, *(line for config in CONFIGS for line in _section(config))])


def meanings(config: type[Config]) -> dict[str, str]:
    """What each field of a config means: the text below it, in its class or one above."""
    found: dict[str, str] = {}
    for owner in reversed(config.__mro__):
        if issubclass(owner, Config) and owner is not Config:
            found |= _texts(owner)
    return {name: found.get(name) or _plain(config, name) for name in config.model_fields}


def _plain(config: type[Config], name: str) -> str:
    """The meaning of a field that needs no text: a config of its own, or the name of this one."""
    field = config.model_fields[name]
    value = field.get_default(call_default_factory=True)
    if isinstance(value, Config):
        return f"All of [{type(value).__name__}](#{type(value).__name__.lower()})."
    names = get_origin(field.annotation) is Literal and len(get_args(field.annotation)) == 1
    return "In a file, says which of these it is." if names else ""


def _texts(owner: type) -> dict[str, str]:
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for node, below in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            text = getattr(getattr(below, "value", None), "value", None)
            if isinstance(below, ast.Expr) and isinstance(text, str):
                found[node.target.id] = " ".join(text.split())
    return found


def _section(config: type[Config]) -> Iterator[str]:
    yield from (
        f"## {config.__name__}",
        "",
        (inspect.getdoc(config) or "").replace("::\n", ":\n"),
        "",
    )
    yield from ("| field | unset | meaning |", "|---|---|---|")
    for name, text in meanings(config).items():
        yield f"| `{name}` | {_unset(config, name)} | {_cell(text)} |"
    yield ""


def _unset(config: type[Config], name: str) -> str:
    """What a field is if nobody sets it."""
    field = config.model_fields[name]
    if field.is_required():
        return "must be given"
    value = field.get_default(call_default_factory=True)
    return f"`{type(value).__name__}()`" if isinstance(value, Config) else f"`{_cell(repr(value))}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(page())
    print(f"page: {path}")
