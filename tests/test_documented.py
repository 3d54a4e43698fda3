"""What README and the pages say is so: commands and their flags, names, files, rows of circuits;
and whatever is public is on a page.

Commands and blocks of Python run in test_pages_commands.py and test_pages_python.py, pages that are
notebooks when they are built.
"""

import ast
import inspect
import re
import shlex
from importlib import import_module
from pathlib import Path

from pages import BLOCK, PAGES, ROOT, blocks, commands

import hopscope
from hopscope.cli.commands import COMMANDS, GROUPS, load
from hopscope.plots.account import account_table

DOCS = ROOT / "docs"
IN_GLOSSARY = (
    "hopscope", "hopscope.circuits", "hopscope.runs", "hopscope.store", "hopscope.study",
    "hopscope.theory", "hopscope.workers",
)  # fmt: skip
ROOMS = (*IN_GLOSSARY, "hopscope.configs", "hopscope.ngram", "hopscope.models", "hopscope.tasks")
LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]+)")
"""The file that a link leads to, if it is one of ours."""


def test_every_command_is_there_with_its_flags() -> None:
    wrong = {}
    for line in commands():
        words = shlex.split(line)
        name = next((n for n in (" ".join(words[:2]), words[0]) if n in COMMANDS), None)
        if name is None:
            assert words[0] in GROUPS or words[0].startswith("-"), line
            continue
        known = {flag for each in load(name).params for flag in each.opts} | {"--help"}
        given = {word.partition("=")[0] for word in words if word.startswith("--")}
        if given - known:
            wrong[line] = given - known
    assert wrong == {}


def test_every_file_that_is_linked_is_there() -> None:
    pages = [*PAGES, *ROOT.glob("[A-Z]*.md"), *(ROOT / "notes").rglob("*.md")]
    pages += [ROOT / "results" / "README.md"]
    linked = {
        (p, p.parent / to) for p in pages for to in LINK.findall(BLOCK.sub("", p.read_text()))
    }
    assert [(page.name, to) for page, to in linked if not to.exists()] == []


def test_every_name_that_is_imported_is_there() -> None:
    for page in PAGES:
        for text in blocks(page, "python", "ipython3"):
            lines = (line for line in text.splitlines() if not line.startswith(":"))
            code = re.sub(r"^( *)%.*", r"\1pass", "\n".join(lines), flags=re.MULTILINE)
            for node in ast.walk(ast.parse(code)):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hopscope"):
                    module = import_module(str(node.module))
                    for each in node.names:
                        there = hasattr(module, each.name)
                        assert there or import_module(f"{node.module}.{each.name}"), page
                elif isinstance(node, ast.Import):
                    for each in node.names:
                        assert not each.name.startswith("hopscope") or import_module(each.name)


def test_every_public_name_is_documented() -> None:
    """It says in a sentence what it is, on the page of the API and in the glossary."""
    api, glossary = (DOCS / "api.md").read_text(), (DOCS / "glossary.md").read_text()
    on_page = {*re.findall(r"auto(?:function|class):: \S+\.(\w+)", api)}
    for name in re.findall(r"automodule:: (\S+)\n   :members:\n", api):
        on_page |= {*getattr(import_module(name), "__all__", vars(import_module(name)))}
    first_cells = [line.split("|")[1] for line in glossary.splitlines() if line[:1] == "|"]
    explained = {name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)}
    public = {room: {*import_module(room).__all__} for room in ROOMS}
    for room, names in public.items():
        for name in names:
            own = getattr(import_module(room), name)
            said = inspect.isclass(own) or inspect.isfunction(own)
            assert not said or len((own.__doc__ or "").split()) >= 3, name
        assert names - on_page == set(), room
    assert {name for room in IN_GLOSSARY for name in public[room]} == explained


def test_what_the_page_on_the_architecture_names_is_there() -> None:
    package = Path(hopscope.__file__).parent
    page = (DOCS / "architecture.md").read_text()
    places = (package, ROOT, package / "models", package / "models" / "csrc")
    files = {*re.findall(r"`(?:hopscope/)?((?:\w+/)*\w+\.(?:py|c|h))[:`]", page)}
    assert [file for file in files if not any((place / file).exists() for place in places)] == []
    for file, name in re.findall(r"`((?:\w+/)*\w+)\.py:([\w.]+)`", page):
        found = import_module(f"hopscope.{file}".replace("/", ".").removesuffix(".__init__"))
        for part in name.split("."):
            found = getattr(found, part)


def test_every_row_of_an_account_is_in_the_notes_on_its_circuit() -> None:
    models = ("figure-5", "three-heads", "transformer-a", "transformer-b", "transformer-c")
    pages = {**dict(zip(models, models, strict=True)), "transformer-d": "transformer-d-fan-in"}
    for page, model in pages.items():
        told = (ROOT / "notes" / "travels" / f"{page}.md").read_text()
        rows = account_table(hopscope.load(f"gallery/{model}").circuit).rows
        assert rows
        assert [row for row in rows if f"| {' | '.join(row)} |" not in told] == [], page


def test_the_citation_and_the_pages_are_of_this_version() -> None:
    for file, line in (
        ("CITATION.cff", "\nversion: {}\n"),
        ("packaging/conda/recipe.yaml", "  version: {}\n"),
        ("README.md", "alpha ({})"),
        ("docs/api.md", "alpha ({})"),
    ):
        assert line.format(hopscope.__version__) in (ROOT / file).read_text(), file
