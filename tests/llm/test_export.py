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
from hopscope.llm.prompts import questions

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


@pytest.mark.parametrize("prompts", KINDS, ids=lambda prompts: prompts.label)
def test_every_question_is_there_in_the_words_of_each_tool(prompts: Prompts) -> None:
    asked, name = questions(prompts, seed=3, count=9), task_name(prompts, 3)
    for each, row in zip(asked, rows(ruler(prompts, 3, 9)), strict=True):
        length = each.prompt.replace("\n", " ").count(" ") + 1
        assert row == {
            "index": each.index, "input": each.prompt, "outputs": [each.correct], "length": length,
        }  # fmt: skip
    files = lm_eval(prompts, 3, 9, "/there")
    assert list(files) == [f"{name}_lm_eval.jsonl", f"{name}.yaml"]
    for each, row in zip(asked, rows(files[f"{name}_lm_eval.jsonl"]), strict=True):
        assert (row["prompt"], tuple(row["choices"])) == (each.prompt, each.acceptable)
        assert row["choices"][row["answer"]] == each.correct
    files = inspect_ai(prompts, 3, 9, "/there")
    assert list(files) == [f"{name}_inspect.jsonl", f"{name}.py"]
    for each, row in zip(asked, rows(files[f"{name}_inspect.jsonl"]), strict=True):
        assert row == {
            "id": each.index, "input": each.prompt, "target": each.correct,
            "metadata": {"acceptable": list(each.acceptable)},
        }  # fmt: skip


def test_lm_evals_task_names_its_data_in_full() -> None:
    yaml = pytest.importorskip("yaml")
    for folder in ("/there", "/a: b #c", '/"quoted"', "/line\nbreak", "/añ𝄞o"):
        files = lm_eval(KINDS[0], 0, 1, folder)
        task = yaml.safe_load(files["hopscope_equations_d5.yaml"])
        data = f"{folder}/hopscope_equations_d5_lm_eval.jsonl"
        assert task["dataset_kwargs"] == {"data_files": {"test": data}}
        assert (task["task"], task["dataset_path"]) == ("hopscope_equations_d5", "json")
        assert (task["test_split"], task["output_type"]) == ("test", "multiple_choice")
        (row,) = rows(files["hopscope_equations_d5_lm_eval.jsonl"])
        assert {task["doc_to_text"], task["doc_to_choice"], task["doc_to_target"]} <= set(row)


def rules(tree: ast.Module) -> Callable[..., str | None]:
    """The part of a task file that needs no inspect_ai, executed."""
    body = [
        part
        for part in tree.body
        if (isinstance(part, ast.ImportFrom) and part.module == "collections.abc")
        or (isinstance(part, ast.FunctionDef) and part.name in RULES)
    ]
    names: dict[str, Any] = {}
    exec(compile(ast.Module(body, []), "task", "exec"), names)
    found: Callable[..., str | None] = names["answered"]
    return found


def test_inspects_task_file_needs_no_hopscope_and_keeps_its_rules() -> None:
    for prompts in KINDS:
        code = inspect_ai(prompts, 3, 1, "/there/\nhere")[f"{task_name(prompts, 3)}.py"]
        tree = ast.parse(code)
        assert not any(isinstance(part, ast.Import) for part in tree.body)
        imports = {part.module for part in tree.body if isinstance(part, ast.ImportFrom)}
        tops = {name.partition(".")[0] for name in imports if name}
        assert tops == {"collections", "inspect_ai", "pathlib"}
        defined = {part.name for part in tree.body if isinstance(part, ast.FunctionDef)}
        assert defined == {*RULES, "exact_answer", task_name(prompts, 3)}
        said = rules(tree)
        for text in [*TEXTS, *(form for answer in ACCEPTABLE for form in forms(answer, ""))]:
            assert said(text, ACCEPTABLE) == answered(text, ACCEPTABLE)


def test_a_name_tells_the_questions_apart() -> None:
    names = {task_name(prompts, seed) for prompts in KINDS for seed in (0, 1, -1)}
    assert len(names) == 3 * len(KINDS)
    assert all(name.isidentifier() for name in names)


def test_the_command_writes_what_it_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    name = "hopscope_lives_with_d2"
    for tool, names in {
        "ruler": [f"{name}_ruler.jsonl"],
        "lm-eval": [f"{name}_lm_eval.jsonl", f"{name}.yaml"],
        "inspect": [f"{name}_inspect.jsonl", f"{name}.py"],
    }.items():
        words = f"llm export --formulation f2 --hops 2 --questions 5 --format {tool} --out {tool}"
        assert run(words.split()) == 0
        assert capsys.readouterr().out.splitlines() == [f"{tool}: {tool}/{its}" for its in names]
        assert sorted(path.name for path in (tmp_path / tool).iterdir()) == sorted(names)
        assert len(rows((tmp_path / tool / names[0]).read_text())) == 5
    # A relative data path would be looked up from elsewhere.
    data = f'"{tmp_path}/lm-eval/{name}_lm_eval.jsonl"'
    assert data in (tmp_path / "lm-eval" / f"{name}.yaml").read_text()


def test_what_cannot_be_exported_is_refused() -> None:
    with pytest.raises(ConfigError, match="--questions is 0; expected at least 1"):
        run("llm export --questions 0".split())
    with pytest.raises(ConfigError, match="without an opening"):
        ruler(Prompts(formulation="f1", hops=1, opening=True), 0, 2)
