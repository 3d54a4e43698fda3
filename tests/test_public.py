"""Every public name says in a sentence that can be read alone what it is."""

import inspect
import re
from importlib import import_module
from pathlib import Path
from types import GenericAlias

import pytest

ROOMS = (
    "hopscope", "hopscope.circuits", "hopscope.configs", "hopscope.markov", "hopscope.models",
    "hopscope.runs", "hopscope.store", "hopscope.study", "hopscope.tasks", "hopscope.theory",
    "hopscope.tracing", "hopscope.workers",
)  # fmt: skip


PAGE = Path(__file__).parent.parent / "docs" / "api.md"


def sentences() -> dict[str, str]:
    """The first sentence of every public class and function."""
    found = {}
    for room in ROOMS:
        for name in import_module(room).__all__:
            each = getattr(import_module(room), name)
            if (inspect.isclass(each) or inspect.isfunction(each)) and type(
                each
            ) is not GenericAlias:
                own = each.__doc__ or ""
                found[f"{room}.{name}"] = inspect.cleandoc(own).split("\n\n")[0]
    return found


@pytest.mark.parametrize(("name", "text"), sentences().items())
def test_it_is_said_in_a_sentence(name: str, text: str) -> None:
    first = " ".join(text.split())
    assert len(first.split()) >= 3, name
    assert first.endswith((".", ":", "?", ")")), first
    assert not first.startswith(("See ", "The same", "As ", "Like ")), first


def test_there_are_many() -> None:
    assert len(sentences()) > 100


def documented() -> set[str]:
    """The names on the page of the API, where Sphinx documents whatever `__all__` lists."""
    text = PAGE.read_text()
    names = {*re.findall(r"auto(?:function|class):: \S+\.(\w+)", text)}
    for module in re.findall(r"automodule:: (\S+)\n   :members:\n", text):
        names |= {*getattr(import_module(module), "__all__", vars(import_module(module)))}
    return names


@pytest.mark.parametrize("room", ROOMS)
def test_every_name_is_on_the_page_of_the_api(room: str) -> None:
    assert {*import_module(room).__all__} - documented() == set()
