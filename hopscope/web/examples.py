"""One example for the page: its tokens, the model's answers, and the attention of every head."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hopscope.circuits import Ablation, Ablator, examples_of
from hopscope.circuits.ablator import EXAMPLES, as_a_whole, check_head
from hopscope.circuits.adapters import CallbackModel
from hopscope.circuits.attention import attended
from hopscope.circuits.engine import Adapter
from hopscope.circuits.examples import Examples, example_seed
from hopscope.circuits.pattern import Head, Pattern, Source
from hopscope.circuits.tables import TABLE_DIGITS, other_tables
from hopscope.configs import FactTask, Task
from hopscope.errors import ConfigError
from hopscope.facts import Role
from hopscope.tasks import (
    Prediction,
    QueryPosition,
    RenderedExample,
    Roles,
    example_arrays,
    rendered,
    sampler_of,
)
from hopscope.web.measuring import changed_by, tabled
from hopscope.web.opened import Opened
from hopscope.web.questions import ExampleQuestion
from hopscope.web.tensors import packed

OTHERS = 64
"""Number of examples (with this one) for changes that need a mean over examples."""


def example(run: Opened, asked: ExampleQuestion) -> bytes:
    """Return a file with the attention of an example; tokens and answers are in its metadata."""
    base, changes = changed_by(run, asked)
    adapter = run.adapter
    for head in changes:
        check_head(adapter, head)
    shown, examples = _posed(run, asked, OTHERS if base or changes else 1)
    ablator = Ablator(adapter, examples)
    ablator.check_paths(changes)
    ablator = tabled(run, ablator, asked, [*base.values(), *changes.values()])
    attention, outputs = _seen(ablator, base)
    about: dict[str, Any] = {
        "tokens": tokens(shown, examples.table),
        "answers": shown_answers(run, shown, outputs),
    }
    arrays = {"attention": attention}
    if changes != base:
        arrays["changes.attention"], outputs = _seen(ablator, changes)
        about["changes"] = {"answers": shown_answers(run, shown, outputs)}
    return packed(arrays, about)


def _posed(run: Opened, asked: ExampleQuestion, count: int) -> tuple[RenderedExample, Examples]:
    """Return a rendered example, and `count` examples of which it is the first."""
    task = run.task
    if isinstance(task, FactTask):
        seed = example_seed("ablation", asked.sample)
        shown = rendered(task, seed, asked.index, asked.tokens, asked.order)
        return shown, _examples(task, shown, asked.sample, count)
    if asked.tokens is not None or asked.order is not None:
        raise ConfigError(
            "this task is a function that draws examples, which cannot be typed or shuffled: ask "
            "for another by its number"
        )
    drawn = examples_of(task, max(EXAMPLES, asked.index + 1), asked.sample)
    others = [number for number in range(len(drawn)) if number != asked.index]
    examples = drawn.part([asked.index, *others[: count - 1]])
    return _in_words(examples, run.words), examples


def _in_words(examples: Examples, words: Callable[[int], str]) -> RenderedExample:
    """Render the first of these examples: its tokens, and its answers if these are classes."""
    inputs, length = examples.inputs[0], examples.length
    tokens = inputs.dim() == 1 and not inputs.is_floating_point()
    texts = map(words, inputs.tolist()) if tokens else (f"#{at}" for at in range(length))
    at: list[int] = []
    if examples.classes and examples.abreast == 1:
        read = range(-(examples.read or length), 0)
        at = list(read) if examples.answered is None else examples.answered[0].tolist()
    known = [None] * len(at) if examples.targets is None else examples.targets[0].tolist()
    roles = Roles(examples.roles.role[0], examples.roles.chain[0])
    chain = roles.chain.tolist()
    questions = [QueryPosition(length + p, chain[p], (t,)) for p, t in zip(at, known, strict=True)]
    return RenderedExample(inputs, roles, tuple(texts), tuple(questions), ())


@torch.no_grad()
def _seen(ablator: Ablator, changes: Mapping[Head, Pattern]) -> tuple[np.ndarray, Tensor]:
    """Return attention [layer, head, query, key] and outputs [position, width] of example 0."""
    adapter, examples, ablation = ablator.adapter, ablator.examples, Ablation.of(changes)
    if isinstance(adapter, CallbackModel):
        outputs, patterns = as_a_whole(adapter, examples, ablator.prescriber, ablation)
    else:
        seen = attended(adapter, examples, ablation)
        outputs, patterns = adapter.unembed(seen.streams[-1]), torch.stack(seen.weights)
    return patterns[:, 0].float().cpu().numpy().astype(np.float16), outputs[0].cpu()


def tokens(shown: RenderedExample, table: Sequence[Role]) -> list[dict[str, Any]]:
    """Return for every position its text, role and chain."""
    roles = (str(table[number]) for number in shown.roles.role.tolist())
    places = zip(shown.texts, roles, shown.roles.chain.tolist(), strict=True)
    return [{"text": text, "role": role, "chain": chain} for text, role, chain in places]


def shown_answers(run: Opened, shown: RenderedExample, outputs: Tensor) -> list[dict[str, Any]]:
    """Return for every question its position, and for each hop the truth and the model's answer."""
    length = len(shown.texts)

    def named(candidate: int) -> str:
        few = candidate < len(shown.candidates)  # a model may have more tokens than its task
        return shown.candidates[candidate] if few else run.words(candidate)

    def answered(hop: str, truth: int | None, one: Prediction) -> dict[str, Any]:
        return asdict(one) | {
            "hop": hop,
            "truth": None if truth is None else named(truth),
            "answer": named(one.answer),
            "right": None if truth is None else one.answer == truth,
        }

    found = []
    for question in shown.questions:
        predictions = shown.predictions(question, outputs[question.position - length])
        hops = run.hops if len(run.hops) == len(predictions) else ["answer"] * len(predictions)
        each = zip(hops, question.truth, predictions, strict=True)
        rows = [answered(*its) for its in each]
        found.append({"position": question.position, "chain": question.chain, "hops": rows})
    return found


def first_examples(task: Task, count: int) -> bytes:
    """Return the first examples as a file of arrays, for a page that runs the model itself.

    Arrays: the symbol, role and chain at every position, the position and chain of each question,
    and its truth for each hop (none: -1). For tasks of vectors also the vector of each symbol and
    the code of every position.
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
    about = {
        "symbols": list(sampler_of(task).names),
        "candidates": list(shown[0].candidates),
        "roles": [str(role) for role in task.roles()],
    }
    return packed(arrays, about)


def mean_attention(adapter: Adapter | CallbackModel, task: Task) -> np.ndarray:
    """Return the attention of heads with the change `position` [layer, head, destination, source].

    It is their mean attention on other examples, in units of 1e-4.
    """
    found = other_tables(adapter, task)
    rows = [
        [found[Source("position", head=(layer, head))] for head in range(adapter.heads)]
        for layer in range(adapter.layers)
    ]
    tables = torch.stack([torch.stack(each) for each in rows]).cpu() * 10**TABLE_DIGITS
    units: np.ndarray = tables.round().numpy().astype(np.uint16)
    return units


def _examples(task: Task, shown: RenderedExample, sample: int, count: int) -> Examples:
    """Return the rendered example, followed by other drawn examples."""
    examples = examples_of(task, count, sample)
    roles = Roles(
        torch.cat([shown.roles.role[None], examples.roles.role[1:]]),
        torch.cat([shown.roles.chain[None], examples.roles.chain[1:]]),
    )
    return replace(
        examples, inputs=torch.cat([shown.inputs[None], examples.inputs[1:]]), roles=roles
    )
