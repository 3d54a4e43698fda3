"""Losses with heads changed: of one model, at every checkpoint, of every head and path in turn.

The examples are those of `hopscope ablate` (the same number and sample), so are the numbers.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from hopscope import intervals
from hopscope.circuits import Ablation, Ablator, Carried, Circuit, exam_of, subject_of
from hopscope.circuits.ablation import Change, Head
from hopscope.circuits.changes import CARRIED, changes_of
from hopscope.configs import Task
from hopscope.errors import CircuitError, Withdrawn
from hopscope.models import Transformer
from hopscope.web.questions import AblateQuestion, CostsQuestion, Question

Stop = Callable[[], bool]
CHUNK = 8
"""Changes that are measured together while others wait to hear of them."""


@runtime_checkable
class Opened(Protocol):
    """A run whose models can be had."""

    @property
    def task(self) -> Task: ...
    @property
    def hops(self) -> list[str]: ...
    @property
    def circuit(self) -> Circuit | None: ...
    def ablator(self, step: int, examples: int, sample: int) -> Ablator: ...
    def model(self, step: int) -> Transformer: ...


def asked_to_stop(stop: Stop) -> Callable[[], None]:
    """What is called between layers, and ends a measurement that nobody waits for."""

    def ask() -> None:
        if stop():
            raise Withdrawn("the question was withdrawn before its answer: ask again")

    return ask


def changed_by(run: Opened, asked: Question) -> tuple[dict[Head, Change], dict[Head, Change]]:
    """What heads do before the changes (the circuit's mechanisms, if asked), and with them."""
    base: dict[Head, Change] = {}
    if asked.circuit:
        if run.circuit is None:
            raise CircuitError("no circuit was found in this model yet: run `hopscope discover`")
        base = dict(run.circuit.ablation().changes)
    return base, changes_of(asked.changes, base)


def ablated(run: Opened, step: int, asked: AblateQuestion, stop: Stop) -> dict[str, Any]:
    """Losses as the model is, and with the changes."""
    ablator = run.ablator(step, asked.examples, asked.sample)
    return _told(run, ablator, asked, asked_to_stop(stop))


def over_time(
    run: Opened, steps: Sequence[int], asked: AblateQuestion, stop: Stop
) -> Iterator[dict[str, Any]]:
    """The same at every checkpoint."""
    ask = asked_to_stop(stop)
    exam = exam_of(run.task, asked.examples, asked.sample)
    for step in steps:
        ask()
        ablator = Ablator(subject_of(run.model(step)), exam)
        yield {"step": step, **_told(run, ablator, asked, ask)}


def costs(run: Opened, step: int, asked: CostsQuestion, stop: Stop) -> Iterator[dict[str, Any]]:
    """Every head in turn, then every path of the circuit (without one, the row of each role)."""
    ask = asked_to_stop(stop)
    ablator = run.ablator(step, asked.examples, asked.sample)
    _, before = changed_by(run, asked)
    texts = [*_heads(ablator, asked), *_rows(run, ablator, asked, before)]
    for start in range(0, len(texts), CHUNK):
        some = texts[start : start + CHUNK]
        variants = [Ablation.of(changes_of([text], before)) for text in some]
        found = ablator.losses([Ablation.of(before), *variants], ask=ask).double().cpu().numpy()
        clean = spread(found[0])
        for text, losses in zip(some, found[1:], strict=True):
            yield {"change": text, "clean": clean, "changed": spread(losses)}


def spread(losses: np.ndarray) -> dict[str, list[float]]:
    """The mean of each hop over examples [example, hop], and half its 95 % interval."""
    each = [intervals.mean(losses[:, hop]) for hop in range(losses.shape[1])]
    return {
        "mean": [float(mean) for mean in losses.mean(axis=0)],
        "half": [(high - low) / 2 for low, high in each],
    }


def _told(
    run: Opened, ablator: Ablator, asked: AblateQuestion, ask: Callable[[], None]
) -> dict[str, Any]:
    base, changes = changed_by(run, asked)
    both = [Ablation.of(base), Ablation.of(changes)]
    clean, changed = ablator.losses(both, ask=ask).double().cpu().numpy()
    return {
        "names": run.hops,
        "examples": asked.examples,
        "guess": [ablator.exam.guess] * len(run.hops),
        "clean": spread(clean),
        "changed": spread(changed),
    }


def _heads(ablator: Ablator, asked: CostsQuestion) -> list[str]:
    """A change of every head."""
    layers, heads = ablator.subject.layers, ablator.subject.heads
    return [f"{n}.{head}={asked.instead}" for n in range(layers) for head in range(heads)]


def _rows(
    run: Opened, ablator: Ablator, asked: CostsQuestion, before: dict[Head, Change]
) -> list[str]:
    """A change of each row that makes a path of the circuit; without a circuit, of every row. A
    head whose values are replaced has no rows that matter.
    """
    what = "uniform" if asked.instead in CARRIED else asked.instead
    if run.circuit is not None:
        rows = dict.fromkeys((p.layer, p.head, p.reader) for p in run.circuit.paths)
    else:
        layers, heads = range(ablator.subject.layers), range(ablator.subject.heads)
        rows = dict.fromkeys((n, h, r) for n in layers for h in heads for r in ablator.exam.table)
    return [
        f"{layer}.{head}:{reader}={what}"
        for layer, head, reader in rows
        if not isinstance(before.get((layer, head)), Carried)
    ]
