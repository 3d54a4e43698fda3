"""The questions as files that other evaluation tools read.

Each tool gets what it knows: RULER prompts and answers, lm-evaluation-harness a choice among the
acceptable answers, inspect_ai free text and a scorer with the rules of `hopscope.llm.answers`.
They agree on the questions, which depend on the config and the seed alone, and differ in what
counts as right: RULER finds the answer anywhere in the text, and lm-evaluation-harness takes the
choice that is likeliest in one spelling, where this package adds up several.
"""

import inspect
import json
from collections.abc import Iterable, Mapping
from string import Template

from hopscope.configs import Prompts
from hopscope.errors import ConfigError
from hopscope.llm import answers
from hopscope.llm.prompts import Question, questions

LM_EVAL = Template("""\
# Written by hopscope llm export. To run it:
# lm_eval --tasks $name --include_path $folder --model hf --model_args pretrained=MODEL
# The data file is named in full because it is looked up from where lm_eval is started.
task: $name
dataset_path: json
dataset_kwargs:
  data_files:
    test: $data
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
# Written by hopscope llm export. To run it: inspect eval $path --model MODEL
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
    """Chatter, which answers nothing, is marked N; like a wrong answer it counts as 0."""

    async def score(state: TaskState, target: Target) -> Score:
        text = state.output.completion
        said = answered(text, state.metadata["acceptable"])
        value = NOANSWER if said is None else CORRECT if said == target.text else INCORRECT
        return Score(value=value, answer=said, explanation=text)

    return score


@task
def $name() -> Task:
    data = Path(__file__).with_name("$data")
    return Task(dataset=json_dataset(str(data)), solver=generate(), scorer=exact_answer())
''')

RULES = (answers.first_line, answers.normal, answers.answered)
"""What inspect_ai's task file copies, source and all."""


def task_name(prompts: Prompts, seed: int) -> str:
    """A name for files and tasks that is also a Python name, as inspect_ai needs it."""
    suffix = f"_s{seed}" if seed else ""
    return f"hopscope_{prompts.label}{suffix}".replace("-", "_")


def _exported(prompts: Prompts, seed: int, count: int) -> list[Question]:
    if prompts.opening:
        raise ConfigError(
            "other tools begin answers themselves: export the questions without an opening"
        )
    return questions(prompts, seed, count)


def ruler(prompts: Prompts, seed: int, count: int) -> str:
    """Lines in the shape of RULER's `validation.jsonl`.

    RULER counts `length` in a model's tokens; here no model is given, and it counts words.
    """
    return _lines(
        {
            "index": each.index,
            "input": each.prompt,
            "outputs": [each.correct],
            "length": len(each.prompt.split()),
        }
        for each in _exported(prompts, seed, count)
    )


def lm_eval(prompts: Prompts, seed: int, count: int, folder_name: str) -> dict[str, str]:
    """A task for lm-evaluation-harness and its data: file name → text.

    The task names its data by path, so the folder's name must be absolute, and who moves the
    folder exports again.
    """
    name = task_name(prompts, seed)
    data = f"{name}_lm_eval.jsonl"
    rows = (
        {
            "index": each.index,
            "prompt": each.prompt,
            "choices": each.acceptable,
            "answer": each.acceptable.index(each.correct),
        }
        for each in _exported(prompts, seed, count)
    )
    task = LM_EVAL.substitute(
        name=name, folder=_quoted(folder_name), data=_quoted(f"{folder_name}/{data}")
    )
    return {data: _lines(rows), f"{name}.yaml": task}


def inspect_ai(prompts: Prompts, seed: int, count: int, folder_name: str) -> dict[str, str]:
    """A task file for inspect_ai and its data, which lies beside it: file name → text.

    The scorer's rules are the very source of `hopscope.llm.answers`: the file needs no hopscope,
    and its rules cannot drift from ours. The folder's name is for the reader alone.
    """
    name = task_name(prompts, seed)
    data = f"{name}_inspect.jsonl"
    rows = (
        {
            "id": each.index,
            "input": each.prompt,
            "target": each.correct,
            "metadata": {"acceptable": each.acceptable},
        }
        for each in _exported(prompts, seed, count)
    )
    task = INSPECT.substitute(
        name=name,
        data=data,
        path=_quoted(f"{folder_name}/{name}.py"),
        rules=answers.__doc__,
        functions="\n\n".join(inspect.getsource(rule) for rule in RULES),
    )
    return {data: _lines(rows), f"{name}.py": task}


def _lines(rows: Iterable[Mapping[str, object]]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def _quoted(path: str) -> str:
    """As YAML and a shell read it, on one line whatever the path holds."""
    return json.dumps(path, ensure_ascii=False)
