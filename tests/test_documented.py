"""What README and the pages say: every command is there with its flags, every name can be imported,
every file that is linked exists.

Commands that need neither training nor network are run here, blocks of Python in
test_pages_python.py, pages that are notebooks when they are built.
"""

import ast
import re
import shlex
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from pages import BLOCK, PAGES, ROOT, blocks, commands

from hopscope.cli.commands import COMMANDS as THERE
from hopscope.cli.commands import asked
from hopscope.cli.flags import arguments_of
from hopscope.cli.main import run

COMMANDS = commands()
LIGHT = re.compile(
    r"(circuit show|emergence|maps|ablate|verify|compare|show|runs) gallery/"
    r"|contents gallery/demo(?! --over-training)"
    r"|(depth .*|presets|gallery|reproduce --list|claims.*|readings)$"
)
"""Commands that answer in seconds, from what comes with hopscope."""
LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]+)")
"""The file that a link leads to, if it is one of ours."""


def test_there_are_many() -> None:
    assert len(COMMANDS) > 60
    assert sum(LIGHT.match(line) is not None for line in COMMANDS) > 12


@cache
def flags_of(name: str) -> set[str]:
    return {flag for argument in arguments_of(THERE[name]) for flag in argument.flags}


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_is_there_with_its_flags(line: str) -> None:
    command, rest = asked(shlex.split(line))
    assert command is not None, line
    known = flags_of(command.name)
    given = {word.partition("=")[0] for word in rest if word.startswith("--")}
    fields = {flag for flag in given if "." in flag or flag == "--seeds"}
    assert given - known - (fields if command.name in ("train", "markov train") else set()) == set()


@pytest.mark.parametrize("line", [*filter(LIGHT.match, COMMANDS)])
def test_what_is_light_runs(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(shlex.split(line)) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize(
    "page",
    [*PAGES, *ROOT.glob("[A-Z]*.md"), ROOT / "results" / "README.md"],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_every_file_that_is_linked_is_there(page: Path) -> None:
    prose = BLOCK.sub("", page.read_text())
    linked = {page.parent / name for name in LINK.findall(prose)}
    assert [str(path) for path in linked if not path.exists()] == []


def imported() -> list[tuple[str, str]]:
    """Every name of hopscope that a block of Python imports, with its module."""
    found: dict[tuple[str, str], None] = {}
    for page in PAGES:
        for text in blocks(page, "python", "ipython3"):
            lines = (line for line in text.splitlines() if not line.startswith((":", "%")))
            for node in ast.walk(ast.parse("\n".join(lines))):
                if isinstance(node, ast.ImportFrom) and node.module:
                    found |= dict.fromkeys((node.module, each.name) for each in node.names)
                elif isinstance(node, ast.Import):
                    found |= dict.fromkeys((each.name, "") for each in node.names)
    return [(module, name) for module, name in found if module.split(".")[0] == "hopscope"]


@pytest.mark.parametrize(("module", "name"), imported())
def test_every_name_that_is_imported_is_there(module: str, name: str) -> None:
    found = import_module(module)
    assert not name or hasattr(found, name) or import_module(f"{module}.{name}")
