"""From a model to its circuit (the paper's appendix E, automated).

1. Give up heads, then single rows of attention, cheapest first, while the task stays solved. The
   rows that are left attend on their own.
2. Replace each of them by the simplest aim that does as well: now all attention is written down.
3. Give up what is not needed, and look for what could stand in for the rest.
4. Measure the circuit, and every part's removal, on fresh examples.
"""

from collections.abc import Callable

import torch
from torch import nn

from hopscope.circuits.adapters import subject_of
from hopscope.circuits.bench import Bench
from hopscope.circuits.budget import FLOAT, check_examples, check_search
from hopscope.circuits.circuit import Circuit, FlowCheck, HeadReport, Switches
from hopscope.circuits.measure import BATCHES, measure
from hopscope.circuits.probe import Questions, probe_of
from hopscope.circuits.search import Limits, Search, State, live
from hopscope.circuits.settling import alternatives, drafted, settled
from hopscope.circuits.subject import Subject, Whole
from hopscope.configs import FactTask
from hopscope.errors import NotLearned
from hopscope.facts import Path, Role
from hopscope.machine import keep_pages
from hopscope.theory import Reading, follow

EXAMPLES = 128
"""Examples of the search; each of the 20 batches that measure has an eighth of them."""
SKETCH = 0.25
"""Share of them by which it is seen roughly what is cheap to give up."""
UNLEARNED = 0.5
"""A loss above this share of the guessing level is no learned task."""


FEW = 4
"""Examples by which it is seen what one takes."""


def of_a_batch(examples: int) -> int:
    """Examples of each of the batches that measure."""
    return max(1, examples // 8)


def discover(
    model: Subject | Whole | nn.Module,
    task: Questions,
    examples: int = EXAMPLES,
    seed: int = 0,
    force: bool = False,
    watch: Callable[[str], None] = lambda _: None,
) -> Circuit:
    """Find the circuit by which the model solves the task.

    `force` goes on with a model that has not learned it; `watch` is told what happens.
    """
    keep_pages()
    subject = subject_of(model)
    _check_memory(subject, task, examples)
    probe = probe_of(task, examples, seed)
    few = probe_of(task, max(1, round(examples * SKETCH)), seed)
    search = Search(Bench(subject, probe), Bench(subject, few))
    limits = _limits(search, force)
    watch(f"which of {len(search.heads)} heads matter")
    untouched = search.untouched()
    own = _needed_rows(search, untouched, limits)
    watch(f"what explains {len(live(own))} rows of attention")
    draft = drafted(search.explained(own, limits), own, untouched)
    watch("what of it is needed, and what could stand in")
    draft = settled(search, draft, limits)
    others = alternatives(search, draft, limits)
    watch("measuring on fresh examples")
    findings = measure(search, task, draft, of_a_batch(examples), seed)
    paths = [path for part in draft.parts for path in part.paths]
    return Circuit(
        model=subject.digest(),
        task=task if isinstance(task, FactTask) else None,
        roles=probe.table,
        heads=tuple(HeadReport(layer=h[0], head=h[1], mechanism=m) for h, m in draft.ideal.items()),
        parts=findings.parts,
        losses=findings.losses,
        alternatives=others,
        shared=findings.shared,
        restored=findings.restored,
        flow=flow_check(task, paths),
        switches=Switches(examples=examples, batches=BATCHES, seed=seed, forced=force),
    )


@torch.no_grad()
def _check_memory(subject: Subject | Whole, task: Questions, examples: int) -> None:
    """Refuse more examples than this machine can hold, before they are drawn."""
    if not isinstance(task, FactTask) or subject.device.type != "cpu":
        return
    most = max(examples, BATCHES * of_a_batch(examples))
    check_examples(task, most)
    if not isinstance(subject, Whole):
        few = probe_of(task, FEW)
        stream = subject.enter(few.inputs).nbytes // FEW
        check_search(most, stream, FLOAT * subject.heads * few.length**2)


def _limits(search: Search, force: bool) -> Limits:
    clean = search.losses([{}])[0]
    guess = search.bench.probe.guess
    if clean.mean() > UNLEARNED * guess and not force:
        raise NotLearned(
            f"this model has not learned the task: its loss is {clean.mean():.3f} where guessing "
            f"gives {guess:.3f}; train it further, or force the search"
        )
    return Limits.of(clean, guess)


def _needed_rows(search: Search, untouched: State, limits: Limits) -> State:
    """The rows that matter, attending on their own; all others given up."""
    heads = [search.all_rows(head) for head in search.heads]
    state = search.pruned(untouched, heads, limits)
    return search.pruned(state, [[row] for row in live(state)], limits)


def flow_check(task: Questions, paths: list[Path]) -> FlowCheck | None:
    """Do the paths alone bring every symbol to the query? (None: no fact graph is known.)"""
    graph = task.graph() if isinstance(task, FactTask) else None
    if graph is None:
        return None
    readings = {Reading(path.layer, path.query, path.key): path for path in paths}
    known = set(graph.roles)
    readings = {r: p for r, p in readings.items() if {r.reader, r.source} <= known}
    found = follow(graph, readings)
    held = found.holdings[Role("query", len(graph.known) - 1)]
    asked = [fact.value for fact in graph.facts]
    return FlowCheck(
        reached=tuple(symbol for symbol in asked if symbol in held),
        missed=tuple(symbol for symbol in asked if symbol not in held),
        jumps=tuple(sorted(readings[reading] for reading in found.jumps)),
    )
