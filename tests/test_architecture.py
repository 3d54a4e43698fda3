"""Every file and every name in docs/architecture.md is there."""

import re
from importlib import import_module
from pathlib import Path

import pytest

import hopscope

ROOT = Path(hopscope.__file__).parent
PAGE = (ROOT.parent / "docs" / "architecture.md").read_text()
FILES = sorted(set(re.findall(r"`(?:hopscope/)?((?:\w+/)*\w+\.(?:py|c|h))[:`]", PAGE)))
NAMES = sorted(set(re.findall(r"`((?:\w+/)*\w+)\.py:([\w.]+)`", PAGE)))
PLACES = (ROOT, ROOT.parent, ROOT / "models", ROOT / "models" / "native")
"""What the page calls a file by: below the package, the repository, or beside the one before."""


def test_the_page_names_many() -> None:
    assert len(FILES) > 30
    assert len(NAMES) > 30


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_there(name: str) -> None:
    assert any((place / name).exists() for place in PLACES)


@pytest.mark.parametrize(("file", "name"), NAMES)
def test_every_name_is_there(file: str, name: str) -> None:
    found = import_module(f"hopscope.{file}".replace("/", ".").removesuffix(".__init__"))
    for part in name.split("."):
        found = getattr(found, part)
    assert found is not None


@pytest.mark.parametrize("line", re.findall(r"^  (\w+[/.]\S*) ", PAGE, re.MULTILINE))
def test_every_room_is_there(line: str) -> None:
    assert (ROOT / line).exists()


def test_every_room_is_on_the_page() -> None:
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert rooms <= {line.rstrip("/") for line in re.findall(r"^  (\w+)/", PAGE, re.MULTILINE)}
