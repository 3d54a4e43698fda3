"""One example under the microscope: its tokens, the answers to it, the attention of every head."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from hopscope.circuits import Ablation, Ablator, adapter_of, examples_of
from hopscope.circuits.ablator import check_head
from hopscope.circuits.adapters import CallbackModel
from hopscope.circuits.attention import Attended, attended
from hopscope.circuits.engine import Adapter
from hopscope.circuits.examples import Examples, example_seed
from hopscope.circuits.pattern import Source
from hopscope.circuits.tables import DIGITS, estimate_tables
from hopscope.configs import Task
from hopscope.tasks import RenderedExample, Roles, example_arrays, rendered, sampler_of
from hopscope.web.measuring import Opened, changed_by, tabled
from hopscope.web.questions import ExampleQuestion
from hopscope.web.tensors import packed

OTHERS = 64
"""Examples, this one among them, over which changes are averaged that need others."""


def example(run: Opened, step: int, asked: ExampleQuestion) -> bytes:
    """A file of arrays, with the words in its metadata."""
    seed = example_seed("ablation", asked.sample)
    shown = rendered(run.task, seed, asked.index, asked.tokens, asked.order)
    base, changes = changed_by(run, asked)
    adapter = adapter_of(run.model(step))
    for head in changes:
        check_head(adapter, head)
    examples = _examples(run.task, shown, asked.sample, OTHERS if base or changes else 1)
    ablator = Ablator(adapter, examples)
    ablator.check_paths(changes)
    examples = tabled(run, ablator, asked, [*base.values(), *changes.values()]).examples
    clean = attended(adapter, examples, Ablation.of(base))
    about = {
        "tokens": tokens(run.task, shown),
        "answers": answers(run.hops, shown, clean),
        "candidates": list(shown.candidates),
    }
    arrays = {"attention": _attention(clean)}
    if changes != base:
        changed = attended(adapter, examples, Ablation.of(changes))
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


def first_examples(task: Task, count: int) -> bytes:
    """The first examples, for a page that has the model and draws nothing: the symbol, role and
    chain at every position, where each question is asked, and its truth hop by hop (none: -1).
    Tasks of vectors also give the vector of each symbol, then the code of every position.
    """
    seed = example_seed("ablation")
    found = example_arrays(task, seed, count)
    shown = [rendered(task, seed, number) for number in range(count)]
    truth = [
        [[-1 if t is None else t for t in question.truth] for question in its.questions]
        for its in shown
    ]
    arrays = {name: found[name].astype(np.int16) for name in ("symbol", "role", "chain")}
    places = [[(q.position, q.chain) for q in its.questions] for its in shown]
    arrays |= {"question": np.array(places, np.int16), "truth": np.array(truth, np.int16)}
    if "vectors" in found:
        arrays["vectors"] = found["vectors"]
        arrays["code"] = found["inputs"][..., found["vectors"].shape[-1] :]
    table = task.roles()
    about = {
        "symbols": list(sampler_of(task).names),
        "candidates": list(shown[0].candidates),
        "roles": [str(role) for role in table],
        "facts": [role.fact for role in table],
    }
    return packed(arrays, about)


def mean_attention(adapter: Adapter | CallbackModel, task: Task, count: int) -> np.ndarray:
    """What heads with the change `position` attend to [layer, head, destination, source]: their
    mean attention on as many other examples, in units of 1e-4.
    """
    found = estimate_tables(adapter, examples_of(task, count, purpose="tables"))
    rows = [
        [found[Source("position", head=(layer, head))] for head in range(adapter.heads)]
        for layer in range(adapter.layers)
    ]
    tables = torch.stack([torch.stack(each) for each in rows]).cpu() * 10**DIGITS
    units: np.ndarray = tables.round().numpy().astype(np.uint16)
    return units


def _attention(seen: Attended) -> np.ndarray:
    """[layer, head, query, key] of the first example."""
    halves: np.ndarray = seen.patterns[:, 0].numpy().astype(np.float16)
    return halves


def _examples(task: Task, shown: RenderedExample, sample: int, count: int) -> Examples:
    """The example, and behind it others that were drawn."""
    examples = examples_of(task, count, sample)
    roles = Roles(
        torch.cat([shown.roles.role[None], examples.roles.role[1:]]),
        torch.cat([shown.roles.chain[None], examples.roles.chain[1:]]),
    )
    return replace(
        examples, inputs=torch.cat([shown.inputs[None], examples.inputs[1:]]), roles=roles
    )
