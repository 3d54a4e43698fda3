"""Losses with heads changed: of one model, at every checkpoint, or with each head and path in turn.

For the same number and sample, examples and losses equal those of `hopscope ablate`.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np

from hopscope import intervals
from hopscope.circuits import Ablation, Ablator, Examples, Pattern, examples_of
from hopscope.circuits.ablation import changes_of
from hopscope.circuits.pattern import Head
from hopscope.circuits.tables import with_tables
from hopscope.errors import CircuitError
from hopscope.web.opened import Key, Opened, Spread
from hopscope.web.questions import AblateQuestion, Ask, CostsQuestion, ModelQuestion

CHUNK, MOMENT = 8, 0.2
"""Largest number of changes that are measured together, and the seconds that this should take: the
stream shows nothing, and other clicks wait, until they are done."""


def changed_by(
    run: Opened, asked: ModelQuestion
) -> tuple[Mapping[Head, Pattern], dict[Head, Pattern]]:
    """Return the changes of heads before the question's changes (the circuit's patterns, or none),
    and with them.
    """
    base: Mapping[Head, Pattern] = {}
    if asked.circuit:
        if run.circuit is None:
            raise CircuitError("no circuit was found in this model yet: run `hopscope circuit`")
        base = run.circuit.patterns
    return base, changes_of(asked.changes, base)


def ablated(run: Opened, asked: AblateQuestion, ask: Ask) -> dict[str, Any]:
    """Return the losses without and with the changes, and (if asked) what can be decoded."""
    found = _told(run, asked, lambda: run.ablator(asked.examples, asked.sample), ask)
    return found | {"decodable": _decodable(run, asked, ask)} if asked.probe else found


def _decodable(run: Opened, asked: AblateQuestion, ask: Ask) -> dict[str, Any]:
    """Return how well each symbol can be decoded at each role with the changes, by the probes that
    were fitted on the unchanged model.
    """
    _, changes = changed_by(run, asked)
    reader = run.reader()
    examples = _with_tables(run, reader.examples, asked, changes.values())
    own = reader.own(Ablation.of(changes), examples, ask)
    roles = [str(role) for role in reader.examples.table]
    return {"roles": roles, "symbols": list(reader.symbols), "own": own.round(4).tolist()}


def tabled(
    run: Opened, ablator: Ablator, asked: ModelQuestion, changes: Iterable[Pattern]
) -> Ablator:
    """Return the ablator with the attention tables that these changes need."""
    examples = _with_tables(run, ablator.examples, asked, changes)
    return ablator if examples is ablator.examples else Ablator(ablator.adapter, examples)


def _with_tables(
    run: Opened, examples: Examples, asked: ModelQuestion, changes: Iterable[Pattern]
) -> Examples:
    """Return the examples with the attention tables that these changes need."""
    circuit = run.circuit if asked.circuit else None
    return with_tables(examples, changes, lambda: run.tables(asked.sample), circuit)


def over_time(
    runs: Mapping[int, Opened], asked: AblateQuestion, ask: Ask
) -> Iterator[dict[str, Any]]:
    """Yield the losses without and with the changes, for the models of these steps."""

    @cache
    def examples() -> Examples:  # drawn once, and only if some losses are not cached
        return examples_of(run.task, asked.examples, asked.sample)

    for step, run in runs.items():
        ask()
        ablator = cache(lambda run=run: Ablator(run.adapter, examples()))
        yield {"step": step, **_told(run, asked, ablator, ask)}


def costs(run: Opened, asked: CostsQuestion, ask: Ask) -> Iterator[dict[str, Any]]:
    """Yield the losses with every head changed in turn, then with every path of the circuit (or,
    without a circuit, every attention row).
    """
    plain = run.ablator(asked.examples, asked.sample)
    _, before = changed_by(run, asked)
    plain.check_paths(before)
    texts = _in_turn(run, plain, asked)
    tried = [changes_of([text], before) for text in texts]
    every = [change for changes in (before, *tried) for change in changes.values()]
    ablator = tabled(run, plain, asked, every)
    clean, done, size = _losses(ablator, [Ablation.of(before)], ask)[0], 0, 1
    while done < len(texts):
        some, begun = texts[done : done + size], time.monotonic()
        some_changes = tried[done : done + size]
        found = _losses(ablator, [Ablation.of(changes) for changes in some_changes], ask)
        for text, changed in zip(some, found, strict=True):
            yield {"change": text, "clean": clean, "changed": changed}
        done += size
        took = time.monotonic() - begun
        size = min(CHUNK, 2 * size) if 2 * took < MOMENT else max(1, size // 2)


def spread(losses: np.ndarray) -> Spread:
    """Return the mean of each hop over examples [example, hop], and half its 95 % interval."""
    each = [intervals.mean(losses[:, hop]) for hop in range(losses.shape[1])]
    return {
        "mean": [float(mean) for mean in losses.mean(axis=0)],
        "half": [(high - low) / 2 for low, high in each],
    }


def _told(
    run: Opened,
    asked: AblateQuestion,
    ablator: Callable[[], Ablator],
    ask: Ask,
) -> dict[str, Any]:
    """Return the losses without and with the changes; cached losses are not measured again."""
    base, changes = changed_by(run, asked)

    def measured(missing: list[Key]) -> list[Spread]:
        plain = ablator()
        plain.check_paths(changes)
        with_its = tabled(run, plain, asked, [*base.values(), *changes.values()])
        return _losses(with_its, [key[-1] for key in missing], ask)

    both = [Ablation.of(base), Ablation.of(changes)]
    keys = [(asked.examples, asked.sample, asked.circuit, its) for its in both]
    clean, changed = run.spreads(keys, measured)
    return {
        "names": run.hops,
        "examples": asked.examples,
        "chance": run.chances,
        "clean": clean,
        "changed": changed,
    }


def _losses(ablator: Ablator, ablations: list[Ablation], ask: Ask) -> list[Spread]:
    found = ablator.losses(ablations, ask=ask).double().cpu().numpy()
    return [spread(losses) for losses in found]


def _in_turn(run: Opened, ablator: Ablator, asked: CostsQuestion) -> list[str]:
    """Return one change for every head, and for each attention row on a path of the circuit.

    Without a circuit, for every row.
    """
    layers, heads = range(ablator.adapter.layers), range(ablator.adapter.heads)
    every = [(layer, head) for layer in layers for head in heads]
    if run.circuit is not None:
        rows = dict.fromkeys((p.layer, p.head, p.destination) for p in run.circuit.paths)
    else:
        rows = dict.fromkeys((*at, role) for at in every for role in ablator.examples.table)
    names = [f"{layer}.{head}" for layer, head in every]
    names += [f"{layer}.{head}:{destination}" for layer, head, destination in rows]
    return [f"{name}={asked.instead}" for name in names]
