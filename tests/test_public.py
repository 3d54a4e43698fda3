"""Every public name says in a sentence that can be read alone what it is."""

import inspect
from importlib import import_module
from types import GenericAlias

import pytest

ROOMS = (
    "hopscope", "hopscope.circuits", "hopscope.configs", "hopscope.markov", "hopscope.models",
    "hopscope.runs", "hopscope.store", "hopscope.study", "hopscope.tasks", "hopscope.theory",
    "hopscope.tracing", "hopscope.workers",
)  # fmt: skip


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
