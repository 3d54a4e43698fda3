"""`discover`: find the circuit of a model.

1. Search for attention rows that are enough to solve the task, and for what each looks at.
2. Measure the circuit, and the circuit without each component, on fresh examples.
3. If asked, search again on other examples, to measure how stable each component is.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from hopscope import __version__
from hopscope.circuits.ablation import Ablation
from hopscope.circuits.adapters import AnyModel, CallbackModel, adapter_of
from hopscope.circuits.budget import (
    CACHES,
    RECORDED,
    ablated_at_once,
    check_examples,
    check_search,
    kept_bytes,
    layer_bytes,
)
from hopscope.circuits.circuit import Circuit
from hopscope.circuits.components import Component, Found, Losses, PathFlow
from hopscope.circuits.engine import Adapter
from hopscope.circuits.examples import (
    Questions,
    SplitLoss,
    check_differ,
    example_seed,
    examples_of,
)
from hopscope.circuits.measurement import components_of, measure_components
from hopscope.circuits.scores import scores_of
from hopscope.circuits.search import Search, searched
from hopscope.circuits.slices import output_bytes
from hopscope.circuits.tables import table_bytes, tables_in
from hopscope.configs import Discovery, FactTask
from hopscope.errors import CircuitError, NotLearned
from hopscope.facts import FactGraph

DEFAULT = Discovery()
FEW = 4
"""How many examples are drawn to see how much memory one takes."""
APART = 1000
"""The difference between the seeds of independent searches."""


def discover(
    model: AnyModel,
    task: Questions,
    *,
    settings: Discovery = DEFAULT,
    seed: int = 0,
    force: bool = False,
    **changes: int | float,
) -> Circuit:
    """Find the circuit with which the model solves the task.

    `settings` are the parameters of the search; each can also be given by its name, as in
    `discover(model, task, examples=64)`. `seed` determines the examples. With `force`, a model is
    searched even if it has not learned the task; otherwise NotLearned is raised.
    """
    settings = settings.replace(**changes)
    adapter = adapter_of(model)
    _check_asks(task)
    _check_memory(adapter, task, settings)

    search = Search(adapter, task, settings, seed)
    _check_learned(search.on_all.losses([Ablation()])[0], search.examples.chance, settings, force)
    fresh = examples_of(task, settings.fresh, seed, "measurement")
    if not isinstance(task, FactTask):
        seeds = example_seed("search", seed), example_seed("measurement", seed)
        check_differ(search.examples.inputs, fresh.inputs, *seeds)
    state = searched(search)
    others = [
        searched(Search(adapter, task, settings, seed + APART * number))
        for number in range(1, settings.searches)
    ]

    search.progress.step("measuring on fresh examples")
    fresh = replace(fresh, tables=search.tables)
    components, losses, left_out, without_weak = measure_components(search, fresh, state)
    _check_learned(losses.model, losses.chance, settings, force)
    return Circuit(
        model=adapter.digest(),
        task=task if isinstance(task, FactTask) else None,
        roles=fresh.table,
        layers=adapter.layers,
        heads=adapter.heads,
        components=_with_stability(components, [state, *others]),
        itself=search.itself,
        tables=tables_in(search.tables, state),
        losses=losses,
        scores=scores_of(adapter, fresh, state, search.nothing),
        without_weak=without_weak,
        left_out=left_out,
        flow=_flow(task, fresh.graph, components, losses),
        found=Found(seed=seed, forced=force, settings=settings, version=__version__),
    )


def _flow(
    task: Questions, graph: FactGraph | None, components: Sequence[Component], losses: Losses
) -> PathFlow | None:
    """What the named paths bring to the query, of the answers that the model has learned.

    None if it cannot be known: without facts; if a user's task has neither one hop nor a hop for
    each fact; if a named row follows a relation, which does not end at a role; or if named paths
    lead through a role of which the facts say nothing.
    """
    named = [each for each in components if each.is_named]
    related = any(source.relation for each in named for source in each.sources)
    paths = [path for each in named for path in each.paths]
    through = {path.source for path in paths} & {path.destination for path in paths}
    if graph is None or related or through - {*graph.roles}:
        return None
    symbols, count = [fact.value for fact in graph.facts], len(losses.known)
    if isinstance(task, FactTask):
        asked = [symbols[number - 1] for number in task.asked_hops()]
    else:
        asked = symbols[-1:] if count == 1 else symbols
    if len(asked) != count:
        return None
    answers = [symbol for symbol, known in zip(asked, losses.known, strict=True) if known]
    return PathFlow.along(graph, paths, answers)


def _with_stability(
    components: Sequence[Component], states: Sequence[Ablation]
) -> tuple[Component, ...]:
    """Each component with the share of searches that found it: the same rows and target."""
    if len(states) < 2:
        return tuple(components)
    every = [{(each.rows, each.target) for each in components_of(state)} for state in states]
    return tuple(
        each.model_copy(
            update={"stability": float(np.mean([(each.rows, each.target) in f for f in every]))}
        )
        for each in components
    )


def _check_asks(task: Questions) -> None:
    """Raise CircuitError if the task's loss at chance is 0: then no circuit can be below chance."""
    if isinstance(task, FactTask) and task.chance() <= 0:
        raise CircuitError(
            "the loss at chance is 0 on this task (a single chain needs no look-up), so no "
            "circuit can be below chance: use a task with at least two chains"
        )


@torch.no_grad()
def _check_memory(adapter: Adapter | CallbackModel, task: Questions, settings: Discovery) -> None:
    """Raise CircuitError, before drawing, if this machine cannot hold so many examples."""
    if adapter.device.type != "cpu":
        return
    sizes = {"examples": settings.examples, "fresh": settings.fresh}
    for name, size in sizes.items():
        if isinstance(task, FactTask):
            check_examples(task, size, f"lower {name}")
    if not isinstance(adapter, CallbackModel):
        few = examples_of(task, FEW, purpose="search")
        x = adapter.embed(few.inputs)
        shape = adapter.heads, few.length, x.shape[-1]
        split = isinstance(few.losses, SplitLoss)
        most = ablated_at_once(adapter.device, *shape) if split else max(sizes.values())
        outputs = 0 if split else output_bytes(adapter, few)
        needed = {
            name: min(size, most) * layer_bytes(*shape) + size * outputs
            for name, size in sizes.items()
        }
        recorded = RECORDED * adapter.layers * settings.fresh * x.nbytes // FEW
        needed["fresh"] = max(needed["fresh"], recorded)
        least = table_bytes(adapter, few) + CACHES * kept_bytes(adapter.device)
        check_search(least, needed, sizes)


def _check_learned(
    losses: Sequence[float] | np.ndarray, chance: float, settings: Discovery, force: bool
) -> None:
    """Raise NotLearned if the mean over hops is near or above chance, unless forced."""
    loss = float(np.mean(losses))
    if loss > settings.unlearned * chance and not force:
        hops = f" (by hop: {', '.join(f'{its:.3f}' for its in losses)})" * (len(losses) > 1)
        raise NotLearned(
            f"this model has not learned the task: its mean loss is {loss:.3f}{hops}, above "
            f"{settings.unlearned:.0%} of chance ({chance:.3f}); train it further, or search with "
            "force=True (`--force`)"
        )
