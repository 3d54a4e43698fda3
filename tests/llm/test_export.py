"""Exports: every question is there, with its answer, in the shape that each tool reads."""

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hopscope.cli.main import run
from hopscope.configs import Prompts
from hopscope.configs.prompts import FORMULATIONS
from hopscope.errors import ConfigError
from hopscope.llm.answers import answered, forms
from hopscope.llm.export import inspect_ai, lm_eval, ruler, task_name
from hopscope.llm.prompts import Question, questions

KINDS = [Prompts.model_validate({"formulation": name}) for name in FORMULATIONS]
TEXTS = [
    "", " ", "3", " 3.", "**3.**", "The answer is 3", "33", "4", "Alice", "alices", "ALICE!", "s",
    "New  York", '"new york"', "New York City", "Straße", "STRASSE", "s.", "¿Bob?", "3\n4",
]  # fmt: skip
RULES = {"first_line", "normal", "answered"}
ACCEPTABLE = ("3", "Alice", "New York", "Strasse", "s", "Bob")


def rows(text: str) -> list[dict[str, Any]]:
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(params=KINDS, ids=lambda prompts: prompts.label)
def prompts(request: pytest.FixtureRequest) -> Prompts:
    kind: Prompts = request.param
    return kind


@pytest.fixture
def asked(prompts: Prompts) -> list[Question]:
    return questions(prompts, seed=3, count=9)


def test_ruler_has_the_four_fields_of_its_lines(prompts: Prompts, asked: list[Question]) -> None:
    found = rows(ruler(prompts, 3, 9))
    assert [each["input"] for each in found] == [each.prompt for each in asked]
    assert [each["outputs"] for each in found] == [[each.correct] for each in asked]
    assert [each["index"] for each in found] == list(range(9))
    for each in found:
        assert list(each) == ["index", "input", "outputs", "length"]
        assert each["length"] == each["input"].replace("\n", " ").count(" ") + 1


def test_lm_eval_chooses_among_the_acceptable(prompts: Prompts, asked: list[Question]) -> None:
    files = lm_eval(prompts, 3, 9, "/there")
    name = task_name(prompts, 3)
    assert list(files) == [f"{name}_lm_eval.jsonl", f"{name}.yaml"]
    found = rows(files[f"{name}_lm_eval.jsonl"])
    assert [each["prompt"] for each in found] == [each.prompt for each in asked]
    assert [each["choices"][each["answer"]] for each in found] == [each.correct for each in asked]
    assert [tuple(each["choices"]) for each in found] == [each.acceptable for each in asked]


@pytest.mark.parametrize("folder", ["/there", "/a: b #c", '/"quoted"', "/line\nbreak", "/añ𝄞o"])
def test_lm_evals_task_names_its_data_in_full(folder: str) -> None:
    yaml = pytest.importorskip("yaml")
    files = lm_eval(KINDS[0], 0, 1, folder)
    task = yaml.safe_load(files["hopscope_equations_d5.yaml"])
    assert task["task"] == "hopscope_equations_d5"
    assert task["dataset_path"] == "json"
    data = f"{folder}/hopscope_equations_d5_lm_eval.jsonl"
    assert task["dataset_kwargs"] == {"data_files": {"test": data}}
    assert task["test_split"] == "test"
    assert task["output_type"] == "multiple_choice"
    assert [each["metric"] for each in task["metric_list"]] == ["acc"]
    (row,) = rows(files["hopscope_equations_d5_lm_eval.jsonl"])
    assert {task["doc_to_text"], task["doc_to_choice"], task["doc_to_target"]} <= set(row)


def test_inspect_gets_samples_in_its_own_words(prompts: Prompts, asked: list[Question]) -> None:
    name = task_name(prompts, 3)
    files = inspect_ai(prompts, 3, 9, "/there")
    assert list(files) == [f"{name}_inspect.jsonl", f"{name}.py"]
    found = rows(files[f"{name}_inspect.jsonl"])
    assert [each["id"] for each in found] == list(range(9))
    assert [each["input"] for each in found] == [each.prompt for each in asked]
    assert [each["target"] for each in found] == [each.correct for each in asked]
    assert [each["metadata"] for each in found] == [
        {"acceptable": list(each.acceptable)} for each in asked
    ]


def rules(code: str) -> Callable[..., str | None]:
    """The part of a task file that needs no inspect_ai, executed."""
    tree = ast.parse(code)
    tree.body = [
        part
        for part in tree.body
        if (isinstance(part, ast.ImportFrom) and part.module == "collections.abc")
        or (isinstance(part, ast.FunctionDef) and part.name in RULES)
    ]
    names: dict[str, Any] = {}
    exec(compile(tree, "task", "exec"), names)
    found: Callable[..., str | None] = names["answered"]
    return found


def test_inspects_task_file_needs_no_hopscope_and_keeps_its_rules(prompts: Prompts) -> None:
    code = inspect_ai(prompts, 3, 1, "/there/\nhere")[f"{task_name(prompts, 3)}.py"]
    compile(code, "task.py", "exec")
    tree = ast.parse(code)
    imports = {part.module for part in tree.body if isinstance(part, ast.ImportFrom)}
    assert not any(isinstance(part, ast.Import) for part in tree.body)
    assert {name.partition(".")[0] for name in imports if name} == {
        "collections",
        "inspect_ai",
        "pathlib",
    }
    defined = {part.name for part in tree.body if isinstance(part, ast.FunctionDef)}
    assert defined == {*RULES, "exact_answer", task_name(prompts, 3)}
    said = rules(code)
    for text in [*TEXTS, *(form for answer in ACCEPTABLE for form in forms(answer, ""))]:
        assert said(text, ACCEPTABLE) == answered(text, ACCEPTABLE)


def test_a_name_tells_the_questions_apart() -> None:
    names = {task_name(prompts, seed) for prompts in KINDS for seed in (0, 1, -1)}
    assert len(names) == 3 * len(KINDS)
    assert all(name.isidentifier() for name in names)
    assert task_name(Prompts(formulation="lives-with", hops=2, chains=3), 0) == (
        "hopscope_lives_with_d2_n3"
    )


@pytest.mark.parametrize(
    ("tool", "names"),
    [
        ("ruler", ["hopscope_lives_with_d2_ruler.jsonl"]),
        ("lm-eval", ["hopscope_lives_with_d2_lm_eval.jsonl", "hopscope_lives_with_d2.yaml"]),
        ("inspect", ["hopscope_lives_with_d2_inspect.jsonl", "hopscope_lives_with_d2.py"]),
    ],
)
def test_the_command_writes_what_it_prints(
    tool: str,
    names: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    words = f"llm export --formulation f2 --hops 2 --questions 5 --format {tool} --out out"
    assert run(words.split()) == 0
    assert capsys.readouterr().out.splitlines() == [f"{tool}: out/{name}" for name in names]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(names)
    assert len(rows((tmp_path / "out" / names[0]).read_text())) == 5
    if tool == "lm-eval":  # its relative data path would be looked up from elsewhere
        assert f'"{tmp_path}/out/{names[0]}"' in (tmp_path / "out" / names[1]).read_text()


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("--questions 0", "--questions is 0; expected at least 1"),
        ("--hops 21", "hops is 21; a question has 1 to 20"),
        ("--formulation f9", "'equations', 'lives-with', 'kingdoms'"),
        ("--format csv", "csv"),
    ],
)
def test_a_mistake_is_one_line(words: str, answer: str) -> None:
    with pytest.raises(ConfigError) as error:
        run(["llm", "export", *words.split()])
    assert answer in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_an_opening_is_not_exported() -> None:
    opened = Prompts(formulation="f1", hops=1, opening=True)
    with pytest.raises(ConfigError, match="without an opening"):
        ruler(opened, 0, 2)
