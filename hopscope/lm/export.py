"""Write the questions as files for other evaluation tools.

RULER gets prompts and answers, lm-evaluation-harness a choice among the acceptable answers,
inspect_ai free text and a scorer with the rules of `hopscope.lm.prompts`. All get the same
questions, which depend only on the config and the seed. They count different answers as correct:
RULER accepts the answer anywhere in the text, and lm-evaluation-harness scores one spelling of each
choice, where this package adds up several.
"""

import inspect
import json
from string import Template
from typing import Any, Literal

from hopscope.configs import Prompts
from hopscope.errors import ConfigError
from hopscope.lm.prompts import ANSWER_RULES, Question, answered, first_line, normal, questions

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
"""The ending and the text of a tool's task file; RULER needs none."""


def task_name(prompts: Prompts, seed: int) -> str:
    """Return a name for files and tasks that is a valid Python name (for inspect_ai)."""
    suffix = f"_s{seed}" if seed else ""
    return f"hopscope_{prompts.label}{suffix}".replace("-", "_")


def exported(
    tool: Tool, prompts: Prompts, seed: int, count: int, folder_name: str
) -> dict[str, str]:
    """Return the files of questions and of the task for a tool, as file name → text.

    lm-evaluation-harness finds its data by path: the folder's name must be absolute, and the
    questions must be exported again if the folder is moved. The scorer of inspect_ai is a copy of
    the functions in `hopscope.lm.prompts`, so it has the same rules and does not import hopscope.
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
            rules=ANSWER_RULES,
            functions="\n\n".join(inspect.getsource(rule) for rule in rules),
        )
    return files


def _row(tool: Tool, each: Question) -> dict[str, Any]:
    """Return a question as a line of a tool's data.

    RULER's length is in tokens of a model; without a model it is in words here.
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
    """Return a path quoted for YAML and for a shell."""
    return json.dumps(path, ensure_ascii=False)
