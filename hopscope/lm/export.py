"""Write the questions as files that other evaluation tools read.

RULER gets prompts and answers, lm-evaluation-harness a choice among the acceptable answers,
inspect_ai free text and a scorer with the rules of `hopscope.lm.prompts`. All get the same
questions, which depend on the config and the seed alone. They differ in what counts as right: RULER
finds the answer anywhere in the text, and lm-evaluation-harness takes the likeliest choice in one
spelling, where this package adds up several.
"""

import inspect
import json
from string import Template
from typing import Any, Literal

from hopscope.configs import Prompts
from hopscope.errors import ConfigError
from hopscope.lm.prompts import RULES, Question, answered, first_line, normal, questions

Tool = Literal["ruler", "lm-eval", "inspect"]
"""A tool that reads the files."""

LM_EVAL = Template("""\
# Written by hopscope lm export. To run it:
# lm_eval --tasks $name --include_path $folder --model hf --model_args pretrained=MODEL
# The data file is named in full because it is looked up from where lm_eval is started.
task: $name
dataset_path: json
dataset_kwargs:
  data_files:
    test: $file
test_split: test
num_fewshot: 0
output_type: multiple_choice
doc_to_text: prompt
doc_to_choice: choices
doc_to_target: answer
metric_list:
  - metric: acc
    aggregation: mean
    higher_is_better: true
metadata:
  version: 1.0
""")

INSPECT = Template('''\
# Written by hopscope lm export. To run it: inspect eval $path --model MODEL
"""$rules"""

from collections.abc import Iterable
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import json_dataset
from inspect_ai.scorer import (
    CORRECT,
    INCORRECT,
    NOANSWER,
    Score,
    Scorer,
    Target,
    accuracy,
    scorer,
    stderr,
)
from inspect_ai.solver import TaskState, generate


$functions

@scorer(metrics=[accuracy(), stderr()])
def exact_answer() -> Scorer:
    """A text that gives no answer is marked N; like a wrong answer it counts as 0."""

    async def score(state: TaskState, target: Target) -> Score:
        text = state.output.completion
        answer = answered(text, state.metadata["acceptable"])
        value = NOANSWER if answer is None else CORRECT if answer == target.text else INCORRECT
        return Score(value=value, answer=answer, explanation=text)

    return score


@task
def $name() -> Task:
    data = Path(__file__).with_name("$data")
    return Task(dataset=json_dataset(str(data)), solver=generate(), scorer=exact_answer())
''')

TASKS: dict[Tool, tuple[str, Template]] = {"lm-eval": ("yaml", LM_EVAL), "inspect": ("py", INSPECT)}
"""The ending and the text of the file that describes the task to a tool; RULER needs none."""


def task_name(prompts: Prompts, seed: int) -> str:
    """A name for files and tasks that is also a Python name, as inspect_ai needs it."""
    suffix = f"_s{seed}" if seed else ""
    return f"hopscope_{prompts.label}{suffix}".replace("-", "_")


def exported(
    tool: Tool, prompts: Prompts, seed: int, count: int, folder_name: str
) -> dict[str, str]:
    """The questions as a tool reads them, and its task: file name → text.

    lm-evaluation-harness finds its data by path: the folder's name must be absolute, and the
    questions must be exported again if the folder is moved. The scorer of inspect_ai is a copy of
    the functions in `hopscope.lm.prompts`: it needs no hopscope, and has the same rules.
    """
    if prompts.opening:
        raise ConfigError(
            "other tools begin answers themselves: export the questions without an opening"
        )
    name = task_name(prompts, seed)
    data = f"{name}_{tool}.jsonl".replace("-", "_")
    rows = [_row(tool, each) for each in questions(prompts, seed, count)]
    files = {data: "".join(f"{json.dumps(row)}\n" for row in rows)}
    if tool in TASKS:
        ending, task = TASKS[tool]
        rules = (first_line, normal, answered)
        files[f"{name}.{ending}"] = task.substitute(
            name=name,
            data=data,
            folder=_quoted(folder_name),
            file=_quoted(f"{folder_name}/{data}"),
            path=_quoted(f"{folder_name}/{name}.py"),
            rules=RULES,
            functions="\n\n".join(inspect.getsource(rule) for rule in rules),
        )
    return files


def _row(tool: Tool, each: Question) -> dict[str, Any]:
    """A question as a line of a tool's data. RULER counts a length in a model's tokens; no model is
    given here, so it is in words.
    """
    if tool == "ruler":
        return {
            "index": each.index, "input": each.prompt, "outputs": [each.correct],
            "length": len(each.prompt.split()),
        }  # fmt: skip
    if tool == "lm-eval":
        return {
            "index": each.index, "prompt": each.prompt, "choices": each.acceptable,
            "answer": each.acceptable.index(each.correct),
        }  # fmt: skip
    return {
        "id": each.index, "input": each.prompt, "target": each.correct,
        "metadata": {"acceptable": each.acceptable},
    }  # fmt: skip


def _quoted(path: str) -> str:
    """A path as YAML and a shell read it, on one line."""
    return json.dumps(path, ensure_ascii=False)
