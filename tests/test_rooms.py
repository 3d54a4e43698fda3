"""No imports go in a circle inside a room, not even those that are hidden in functions."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import hopscope

ROOT = Path(hopscope.__file__).parent


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


def graph(root: Path) -> dict[str, set[str]]:
    """For every module below a folder, the modules there that it imports."""
    files = {module_of(path): path for path in root.rglob("*.py")}
    found: dict[str, set[str]] = {}
    for module, path in files.items():
        names = set(imported(ast.parse(path.read_text())))
        owners = {name if name in files else name.rpartition(".")[0] for name in names}
        found[module] = owners & {*files} - {module}
    return found


def circle(imports: dict[str, set[str]]) -> list[str]:
    """Modules each of which imports the one before it, and the first the last."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_a_room_has_no_circle() -> None:
    rooms = {path.parent.name: graph(path.parent) for path in ROOT.glob("*/__init__.py")}
    assert {room: circle(imports) for room, imports in rooms.items() if circle(imports)} == {}
    one, others = next((each, its) for each, its in rooms["papers"].items() if its)
    rooms["papers"][next(iter(others))].add(one)
    assert one in circle(rooms["papers"])  # one would be seen
