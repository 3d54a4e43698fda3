"""What README and the pages say: every command is there with its flags, every name can be imported.

What needs neither training nor network is run here; pages that are notebooks, when they are built.
"""

import ast
import re
import shlex
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import hopscope
from hopscope.cli.commands import COMMANDS as THERE
from hopscope.cli.commands import asked
from hopscope.cli.flags import arguments_of
from hopscope.cli.main import run
from hopscope.papers import preset

ROOT = Path(hopscope.__file__).parents[1]
WRITTEN = {"reference.md", "fields.md"}
"""Pages that are generated."""
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name not in WRITTEN),
]
PAGES = [page for page in PAGES if "_build" not in page.parts]
BLOCK = re.compile(r"^```(?:\{code-cell\} )?(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LIGHT = re.compile(
    r"(circuit show|emergence|maps|ablate|contents|verify|compare|show|runs) gallery/"
    r"|(depth --hops \d+|presets|gallery)$"
)
"""Commands that answer in seconds, from what comes with hopscope."""


def blocks(page: Path, *languages: str) -> list[str]:
    return [text for language, text in BLOCK.findall(page.read_text()) if language in languages]


def commands() -> list[str]:
    """Every line of every page that begins with the command, once."""
    found: dict[str, None] = {}
    for page in PAGES:
        if page.name == "log.md":  # what was typed on its day stays as it was
            continue
        for text in blocks(page, "bash", "console"):
            for line in text.replace("\\\n", " ").splitlines():
                match = re.search(r"(?:^|&& )(?:\$ )?(?:srun .* )?hopscope (.+)", line.strip())
                if match:
                    found[match[1].split(" > ")[0].split(" | ")[0]] = None
    return [*found]


COMMANDS = commands()


def words_of(line: str) -> list[str]:
    return shlex.split(line.rstrip("…").replace("[", "").replace("]", ""), comments=True)


def light(line: str) -> bool:
    return LIGHT.match(shlex.join(words_of(line))) is not None


def test_there_are_many() -> None:
    assert len(COMMANDS) > 60
    assert sum(map(light, COMMANDS)) > 8


@cache
def flags_of(name: str) -> set[str]:
    return {flag for argument in arguments_of(THERE[name]) for flag in argument.flags}


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_is_there_with_its_flags(line: str) -> None:
    command, rest = asked(words_of(line))
    assert command is not None, line
    known = flags_of(command.name)
    given = {word.partition("=")[0] for word in rest if word.startswith("--")}
    fields = {flag for flag in given if "." in flag or flag == "--seeds"}
    assert given - known - (fields if command.name in ("train", "markov train") else set()) == set()


@pytest.mark.parametrize("line", [*filter(light, COMMANDS)])
def test_what_is_light_runs(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(words_of(line)) == 0
    assert capsys.readouterr().out


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


@pytest.mark.slow
def test_the_main_flow_of_the_readme_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the demo's, whose training is in the gallery."""
    asked_for: list[hopscope.Experiment] = []

    def trained(experiment: hopscope.Experiment) -> hopscope.Run:
        asked_for.append(experiment)
        run: hopscope.Run = hopscope.load("gallery/demo").run
        return run

    monkeypatch.setattr("hopscope.runs.train", trained)
    (flow,) = blocks(ROOT / "README.md", "python")
    told: dict[str, object] = {}
    exec(compile(flow, "README.md", "exec"), told)
    assert asked_for == [preset("demo").experiment]
    kept = hopscope.load("gallery/demo").circuit
    assert isinstance(found := told["circuit"], hopscope.Circuit)
    assert found.paths == kept.paths
    assert [path for path, _ in told["story"].order]  # type: ignore[attr-defined]
