"""Tests lie where what they test lies: for `hopscope/x/y.py` in `tests/x/test_y.py`.

Files without a function of their own (data, names that are handed on) need none. A test file may
add a word to the name of the file that it tests, `test_y_word.py`; tests of the whole package lie
in `tests/` itself. Modules of the page, `hopscope/web/static/y.js`, have theirs in
`tests/browser/test_y.py`, which run in a browser.
"""

import ast
from pathlib import Path

import pytest

import hopscope

HERE, ROOT = Path(__file__).parent, Path(hopscope.__file__).parent

ELSEWHERE = {
    # A claim is bent until its judge says no, beside all claims of its paper.
    **{
        f"papers/musat/{name}_claims.py": "papers/musat/test_claims.py"
        for name in ("depth", "language")
    },
    "papers/chen/judges.py": "papers/chen/test_claims.py",
    "papers/chen/setting_claims.py": "papers/chen/test_claims.py",
    "papers/chen/setting_judges.py": "papers/chen/test_claims.py",
    "papers/chen/measure_runs.py": "papers/chen/test_targets.py",
    # Figures are drawn from tables, and looked at there.
    "report/sweeps.py": "report/test_table_figures.py",
    # Commands are called as a user calls them, those that belong together in one story.
    "cli/circuit.py": "cli/test_circuits.py",
    "cli/circuit_text.py": "cli/test_circuits.py",
    "cli/fleet.py": "cli/test_circuits.py",
    "cli/subject.py": "cli/test_circuits.py",
    "cli/arguments.py": "cli/test_main.py",
    "cli/tables.py": "cli/test_runs.py",
    "cli/kinds.py": "runs/test_life.py",
    "cli/completion.py": "cli/test_complete.py",
    "cli/flags.py": "cli/test_commands.py",
    "cli/health.py": "cli/test_doctor.py",
    "cli/reference.py": "cli/test_commands.py",
    "cli/contents.py": "cli/test_explain.py",
    # A language model of a few thousand weights lives in tests/llm.
    "cli/llm_export.py": "llm/test_export.py",
    "cli/llm_heads.py": "llm/test_commands.py",
    "cli/llm.py": "llm/test_commands.py",
    "cli/models.py": "llm/test_commands.py",
    "llm/run.py": "llm/test_kept.py",
    # Pieces of one computation, which an oracle can be held to only as a whole.
    "circuits/account.py": "tracing/test_accounting.py",
    "tracing/contradictions.py": "tracing/test_accounting.py",
    "tracing/pairs.py": "tracing/test_patching.py",
    "tracing/patched.py": "tracing/test_patching.py",
    "tracing/ranking.py": "tracing/test_baselines.py",
    "report/baselines.py": "tracing/test_baselines.py",
    "cli/baselines.py": "cli/test_explain.py",
    "report/account.py": "tracing/test_accounting.py",
    "tracing/contents_story.py": "cli/test_explain.py",
    "tracing/story.py": "cli/test_explain.py",
    "circuits/encoder.py": "circuits/test_block_walk.py",
    "circuits/layer_steps.py": "circuits/test_block_walk.py",
    "tracing/lot.py": "tracing/test_reading.py",
    "tracing/marking.py": "tracing/test_linear.py",
    "tracing/streams.py": "tracing/test_reading.py",
    "models/layers.py": "models/test_transformer.py",
    "models/operations.py": "models/test_kernels.py",
    "models/triton_kernels.py": "models/test_graphic.py",
    "training/graph.py": "training/test_learner.py",
    # Protocols, and one that does nothing: those who keep to them are tested.
    "runs/watcher.py": "runs/test_life.py",
    "runs/work.py": "runs/test_life.py",
    "runs/carry.py": "workers/test_carry.py",
    "workers/session.py": "workers/test_cluster.py",
    "workers/here.py": "workers/test_contract.py",
    "workers/pool.py": "workers/test_contract.py",
    "report/markov.py": "cli/test_markov.py",
    "report/arrows.py": "report/test_circuit.py",
    "report/progress.py": "cli/test_display.py",
    "report/symbols.py": "report/test_names.py",
    # What a result shows of itself is asked of the result, as a notebook does.
    "display.py": "report/test_notebook.py",
    **{f"report/{name}.py": "report/test_notebook.py" for name in ("cells", "kinds", "run_cells")},
    # How a language model comes to its answer: beside hooks, or in models of known circuit.
    "cli/llm_mechanism.py": "llm/test_commands.py",
    "report/mechanism.py": "llm/test_commands.py",
    **{f"llm/{name}.py": "llm/test_walking.py" for name in ("lens", "patches")},
    **{f"llm/{name}.py": "llm/test_mechanism.py" for name in ("assembling", "paths", "weighing")},
    **dict.fromkeys(("configs/mechanism.py", "llm/rows.py"), "llm/test_tracer.py"),
    "study/circuits.py": "study/test_comparison.py",
    # What the page's own engine is told of a task: it draws the same examples.
    "web/tables.py": "browser/test_draw.py",
    # A saved page is written to be opened.
    "web/bundle.py": "browser/test_bundled.py",
    "web/carried.py": "browser/test_bundled.py",
    "web/frame.py": "browser/test_bundled.py",
    # What is asked of the page is asked of a whole view, and held to what commands print.
    **{
        f"web/{name}.py": "web/test_views.py"
        for name in ("described", "kept", "measuring", "stories")
    },
    "web/sequences.py": "web/test_ngram.py",
    "tasks/spelled_khop.py": "tasks/test_spelled.py",
    "tasks/spelled_mqar.py": "tasks/test_spelled.py",
    "tasks/spelled_vectors.py": "tasks/test_spelled.py",
}
"""Files whose tests lie elsewhere, and where."""

OF_SEVERAL = {
    "browser/test_attacks.py": "what other sites can make a browser ask of the server",
    "browser/test_documentation.py": "pages of the documentation, as they were built",
    "browser/test_papers.py": "the page of both papers, which has no script",
    "browser/test_figures.py": "the colours that a browser gives figures, on pages and as files",
    "cli/test_json.py": "what every command prints with --json",
    "cli/test_recipes.py": "recipes that leave as files and come back, of every command",
    "cli/test_streams.py": "commands in processes of their own, whose output nobody reads",
    "llm/test_commands.py": "all commands about language models",
    "workers/test_contract.py": "what every pool of workers keeps to",
    "training/test_kills.py": "a process that is killed, as a benchmark does it fifty times",
    "training/test_kinds.py": "what is asked of the wrong function",
}
"""Tests of no one file, and of what."""


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*.py"))


def has_code(name: str) -> bool:
    """Has the file a function or a method of its own?"""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    tree = ast.parse((ROOT / name).read_text())
    return any(isinstance(node, functions) for node in ast.walk(tree))


def place(name: str) -> str:
    """Where the tests of a file lie."""
    path = Path(name)
    return ELSEWHERE.get(name, str(path.with_name(f"test_{path.name}")))


SOURCES = [name for name in files(ROOT) if Path(name).name != "__init__.py" and has_code(name)]
STATIC = ROOT / "web" / "static"
MODULES = sorted(str(path.relative_to(STATIC)) for path in STATIC.rglob("*.js"))
TESTS = [name for name in files(HERE) if Path(name).name.startswith("test_")]


@pytest.mark.parametrize("name", SOURCES)
def test_every_file_has_its_tests(name: str) -> None:
    assert (HERE / place(name)).exists(), f"write tests/{place(name)}"


@pytest.mark.parametrize("name", [name for name in TESTS if "/" in name])
def test_every_test_is_of_a_file(name: str) -> None:
    if name in OF_SEVERAL:
        return
    room, _, own = name.rpartition("/test_")
    known = {Path(each).stem for each in (MODULES if room == "browser" else files(ROOT / room))}
    assert any(own.removesuffix(".py") == it or own.startswith(f"{it}_") for it in known)


def test_the_exceptions_are_needed() -> None:
    for name in ELSEWHERE:
        assert name in SOURCES, f"{name} is gone, or has no code of its own"
        own = Path(name).with_name(f"test_{Path(name).name}")
        assert not (HERE / own).exists(), f"{own} is there: it is no exception"
    assert set(OF_SEVERAL) <= set(TESTS)


@pytest.mark.parametrize(
    "name",
    [f"hopscope/{name}" for name in files(ROOT)]
    + [f"hopscope/web/static/{name}" for name in MODULES]
    + [f"tests/{name}" for name in TESTS],
)
def test_no_file_is_long(name: str) -> None:
    """Three hundred lines are about what one idea takes."""
    assert len((HERE.parent / name).read_text().splitlines()) <= 300
