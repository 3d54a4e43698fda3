"""One example under the microscope: its tokens, the answers to it, the attention of every head."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from hopscope.circuits import Ablation, Ablator, adapter_of, exam_of
from hopscope.circuits.ablator import check_head
from hopscope.circuits.attended import Attended, attended
from hopscope.circuits.exam import Exam
from hopscope.configs import Task
from hopscope.tasks import RenderedExample, Roles, rendered
from hopscope.web.measuring import Opened, changed_by, tabled
from hopscope.web.questions import ExampleQuestion
from hopscope.web.tensors import packed

OTHERS = 64
"""Examples, this one among them, over which changes are averaged that need others."""


def example(run: Opened, step: int, asked: ExampleQuestion) -> bytes:
    """A file of arrays, with the words in its metadata."""
    shown = rendered(run.task, asked.sample, asked.index, asked.tokens, asked.order)
    base, changes = changed_by(run, asked)
    adapter = adapter_of(run.model(step))
    for head in changes:
        check_head(adapter, head)
    exam = _exam(run.task, shown, asked.sample, OTHERS if base or changes else 1)
    ablator = Ablator(adapter, exam)
    ablator.check_paths(changes)
    exam = tabled(run, ablator, asked, [*base.values(), *changes.values()]).exam
    clean = attended(adapter, exam, Ablation.of(base))
    about = {
        "tokens": tokens(run.task, shown),
        "answers": answers(run.hops, shown, clean),
        "candidates": list(shown.candidates),
    }
    arrays = {"attention": _attention(clean), **inputs(shown)}
    if changes != base:
        changed = attended(adapter, exam, Ablation.of(changes))
        arrays["changes.attention"] = _attention(changed)
        about["changes"] = {"answers": answers(run.hops, shown, changed)}
    return packed(arrays, about)


def tokens(task: Task, shown: RenderedExample) -> list[dict[str, Any]]:
    """Every position: what stands there, and what it stands for."""
    table = task.roles()
    places = zip(shown.texts, shown.roles.role.tolist(), shown.roles.chain.tolist(), strict=True)
    return [
        {"text": text, "role": str(table[role]), "chain": chain, "fact": table[role].fact}
        for text, role, chain in places
    ]


def answers(hops: list[str], shown: RenderedExample, seen: Attended) -> list[dict[str, Any]]:
    """Every question: where it is asked, and hop by hop what is true and what the model says."""
    outputs, length = seen.outputs[0], len(shown.texts)
    found = []
    for question in shown.questions:
        predictions = shown.predictions(question, outputs[question.position - length])
        rows = zip(hops, question.truth, predictions, strict=True)
        found.append(
            {
                "position": question.position,
                "chain": question.chain,
                "hops": [
                    {
                        "hop": hop,
                        "truth": None if truth is None else shown.candidates[truth],
                        "answer": shown.candidates[one.answer],
                        "right": None if truth is None else one.answer == truth,
                        "loss": one.loss,
                        "probability": one.probability,
                        "distance": one.distance,
                    }
                    for hop, truth, one in rows
                ],
            }
        )
    return found


def inputs(shown: RenderedExample) -> dict[str, np.ndarray]:
    """What the model is given, and what positions stand for, as arrays."""
    tokens = not shown.inputs.is_floating_point()
    found = {
        "inputs": shown.inputs.numpy().astype(np.int32 if tokens else np.float32),
        "role": shown.roles.role.numpy().astype(np.int32),
        "chain": shown.roles.chain.numpy().astype(np.int32),
    }
    if shown.vectors is not None:
        found["vectors"] = shown.vectors.numpy()
    return found


def _attention(seen: Attended) -> np.ndarray:
    """[layer, head, query, key] of the first example."""
    halves: np.ndarray = seen.patterns[:, 0].numpy().astype(np.float16)
    return halves


def _exam(task: Task, shown: RenderedExample, sample: int, examples: int) -> Exam:
    """The example, and behind it others that were drawn."""
    exam = exam_of(task, examples, sample)
    roles = Roles(
        torch.cat([shown.roles.role[None], exam.roles.role[1:]]),
        torch.cat([shown.roles.chain[None], exam.roles.chain[1:]]),
    )
    return replace(exam, inputs=torch.cat([shown.inputs[None], exam.inputs[1:]]), roles=roles)
