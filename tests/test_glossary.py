"""The glossary explains every public name of the rooms that it describes."""

import re
from importlib import import_module
from pathlib import Path

import pytest

GLOSSARY = Path(__file__).parent.parent / "docs" / "glossary.md"
ROOMS = (
    "hopscope",
    *(
        f"hopscope.{room}"
        for room in ("circuits", "runs", "store", "study", "theory", "tracing", "workers")
    ),
)


def explained() -> set[str]:
    """The names in the first column of every table."""
    rows = [line.split("|")[1] for line in GLOSSARY.read_text().splitlines() if line[:1] == "|"]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_is_explained(room: str) -> None:
    assert {*import_module(room).__all__} - explained() == set()


def test_nothing_else_is_explained() -> None:
    public = {name for room in ROOMS for name in import_module(room).__all__}
    assert explained() - public == set()
