"""No imports go in a circle inside a room, not even those that are hidden in functions."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import hopscope

ROOT = Path(hopscope.__file__).parent
ROOMS = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))


def module_of(path: Path) -> str:
    """The name by which a file is imported."""
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.AST) -> Iterator[str]:
    """The names that a file imports anywhere, each as a module or as what is in one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are written in full"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def owner(name: str, modules: set[str]) -> str | None:
    """The module of the room that holds this name, if one does."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name or None


def graph(root: Path) -> dict[str, set[str]]:
    """For every module below a folder, the modules there that it imports."""
    files = {module_of(path): path for path in root.rglob("*.py")}
    return {
        module: {
            found
            for name in imported(ast.parse(path.read_text()))
            if (found := owner(name, set(files))) is not None and found != module
        }
        for module, path in files.items()
    }


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_has_no_circle(room: str) -> None:
    assert circle(graph(ROOT / room)) == []


def circle(imports: dict[str, set[str]]) -> list[str]:
    """Modules each of which imports the one before it, and the first the last."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


def test_a_circle_would_be_seen() -> None:
    papers = graph(ROOT / "papers")
    assert "hopscope.papers.musat.claims" in papers["hopscope.papers.registry"]
    assert "hopscope.papers.musat.measure_runs" in papers["hopscope.papers.musat.measuring"]
    papers["hopscope.papers.claim"].add("hopscope.papers.registry")
    assert {"hopscope.papers.claim", "hopscope.papers.registry"} <= set(circle(papers))
