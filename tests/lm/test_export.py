"""Exports: every question is there, with its answer, in the shape that each tool reads."""

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from calling import Captured, Patch

from hopscope.cli.main import run
from hopscope.configs import Prompts
from hopscope.configs.prompts import FORMULATIONS
from hopscope.errors import ConfigError
from hopscope.lm.export import exported, task_name
from hopscope.lm.prompts import answered, first_line, forms, normal, questions

KINDS = [Prompts.model_validate({"formulation": name}) for name in FORMULATIONS]
TEXTS = [
    "", " 3.", "**3.**", "The answer is 3", "33", "alices", "ALICE!", "s", "New  York",
    "New York City", "STRASSE", "s.", "¿Bob?", "3\n4",
]  # fmt: skip
RULES = {"first_line", "normal", "answered"}
ACCEPTABLE = ("3", "Alice", "New York", "Strasse", "s", "Bob")


def rows(text: str) -> list[dict[str, Any]]:
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("prompts", KINDS, ids=lambda prompts: prompts.label)
def test_every_question_is_there_in_the_words_of_each_tool(prompts: Prompts) -> None:
    asked, name = questions(prompts, seed=3, count=9), task_name(prompts, 3)
    (text,) = exported("ruler", prompts, 3, 9, "/there").values()
    for each, row in zip(asked, rows(text), strict=True):
        length = each.prompt.replace("\n", " ").count(" ") + 1
        assert row == {
            "index": each.index, "input": each.prompt, "outputs": [each.correct], "length": length,
        }  # fmt: skip
    files = exported("lm-eval", prompts, 3, 9, "/there")
    assert list(files) == [f"{name}_lm_eval.jsonl", f"{name}.yaml"]
    for each, row in zip(asked, rows(files[f"{name}_lm_eval.jsonl"]), strict=True):
        assert (row["prompt"], tuple(row["choices"])) == (each.prompt, each.acceptable)
        assert row["choices"][row["answer"]] == each.correct
    files = exported("inspect", prompts, 3, 9, "/there")
    assert list(files) == [f"{name}_inspect.jsonl", f"{name}.py"]
    for each, row in zip(asked, rows(files[f"{name}_inspect.jsonl"]), strict=True):
        assert row == {
            "id": each.index, "input": each.prompt, "target": each.correct,
            "metadata": {"acceptable": list(each.acceptable)},
        }  # fmt: skip


def test_lm_evals_task_names_its_data_in_full() -> None:
    yaml = pytest.importorskip("yaml")
    for folder in ("/a: b #c", '/"quoted"', "/line\nbreak"):
        files = exported("lm-eval", KINDS[0], 0, 1, folder)
        task = yaml.safe_load(files["hopscope_equations_d5.yaml"])
        data = f"{folder}/hopscope_equations_d5_lm_eval.jsonl"
        assert task["dataset_kwargs"] == {"data_files": {"test": data}}
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
        files = exported("inspect", prompts, 3, 1, "/there/\nhere")
        code = files[f"{task_name(prompts, 3)}.py"]
        tree = ast.parse(code)
        imports = {part.module for part in tree.body if isinstance(part, ast.ImportFrom)}
        assert not [name for name in imports if name.startswith("hopscope")]
        assert task_name(prompts, 3) in {getattr(part, "name", "") for part in tree.body}
        assert task_name(prompts, 3) != task_name(prompts, 0)
        said = rules(tree)
        for text in [*TEXTS, *(form for answer in ACCEPTABLE for form in forms(answer, ""))]:
            assert said(text, ACCEPTABLE) == answered(text, ACCEPTABLE)


def test_the_command_writes_what_it_prints(
    tmp_path: Path, monkeypatch: Patch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    name = "hopscope_lives_with_d2"
    for tool, names in {
        "ruler": [f"{name}_ruler.jsonl"],
        "lm-eval": [f"{name}_lm_eval.jsonl", f"{name}.yaml"],
        "inspect": [f"{name}_inspect.jsonl", f"{name}.py"],
    }.items():
        words = f"lm export --formulation f2 --hops 2 --questions 5 --to {tool} --save {tool}"
        assert run(words.split()) == 0
        assert capsys.readouterr().out.splitlines() == [f"{tool}: {tool}/{its}" for its in names]
        assert {path.name for path in (tmp_path / tool).iterdir()} == {*names}
        assert len(rows((tmp_path / tool / names[0]).read_text())) == 5
    # A relative data path would be looked up from elsewhere.
    assert f'"{tmp_path}/lm-eval/{name}_lm_eval' in Path(f"lm-eval/{name}.yaml").read_text()


def test_what_cannot_be_exported_is_refused() -> None:
    with pytest.raises(ConfigError, match="'--questions': 0 is not in the range x>=1"):
        run("lm export --questions 0".split())
    with pytest.raises(ConfigError, match="without an opening"):
        exported("ruler", Prompts(formulation="f1", hops=1, opening=True), 0, 2, "/there")


def test_texts_that_are_the_same() -> None:
    for text, same in {
        "**Berlin.**": "berlin", "  New \n  York ": "new york", "Doctors": "doctor",
        "Berlin's": "berlin", "0:S": "0", "s": "s", "?!": "", "GROSSE STRASSE": "große straße",
        "3.5": "3.5",
    }.items():  # fmt: skip
        assert normal(text) == normal(same), text


def test_an_answer_is_all_of_the_first_line_and_no_sentence() -> None:
    for text, line in {
        "3": "3", " 3\n\nFor a = 3.": " 3", "3 \r\n4": "3 \r", "\n \n3\n4\n": "\n \n3",
        "\n ": "\n ", "": "",
    }.items():  # fmt: skip
        assert first_line(text) == line
        assert answered(text, ["3"]) == answered(line, ["3"]) == ("3" if "3" in line else None)
    acceptable = ["3", "Berlin", "New York", "Paris"]
    for text, answer in {
        "3.": "3", "-3": "3", " **berlin.** ": "Berlin", "Berlins": "Berlin",
        "new  york": "New York", "The answer is 3": None, "30": None, "...": None,
    }.items():  # fmt: skip
        assert answered(text, acceptable) == answer, text
