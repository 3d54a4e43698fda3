"""From a model to its circuit (the paper's appendix E, automated).

1. Remove heads, then single rows of attention, cheapest first, while the task stays solved. The
   rows that are left keep the model's attention.
2. Replace each of them by the simplest aim that does as well: now all attention is written down.
3. Remove what is not needed, and look for what could stand in for the rest.
4. Measure the circuit, and the removal of every part, on fresh examples.
"""

from collections.abc import Callable

import torch

from hopscope import __version__
from hopscope.circuits.ablator import Ablator
from hopscope.circuits.adapters import AnyModel, CallbackModel, adapter_of
from hopscope.circuits.budget import FLOAT, check_examples, check_search
from hopscope.circuits.circuit import Circuit
from hopscope.circuits.costs import measure
from hopscope.circuits.draft import Conditions, Draft, drafted
from hopscope.circuits.engine import Adapter
from hopscope.circuits.exam import Questions, exam_of
from hopscope.circuits.explaining import explained
from hopscope.circuits.first import first_answer
from hopscope.circuits.necessity import settled
from hopscope.circuits.parts import Alternative, FlowCheck, HeadReport, Switches
from hopscope.circuits.progress import Progress
from hopscope.circuits.pruning import needed_rows
from hopscope.circuits.search import DEFAULT, Search
from hopscope.circuits.stand_ins import alternatives
from hopscope.circuits.state import State
from hopscope.configs import Discovery, FactTask
from hopscope.errors import CircuitError, NotLearned
from hopscope.facts import FactGraph, Role
from hopscope.theory import Path, follow

FEW = 4
"""Examples by which it is seen how much memory one takes."""


def discover(
    model: AnyModel,
    task: Questions,
    *,
    settings: Discovery = DEFAULT,
    seed: int = 0,
    force: bool = False,
    watch: Callable[[str], None] = lambda _: None,
    **changes: int | float,
) -> Circuit:
    """Find the circuit by which the model solves the task.

    `settings` are the numbers by which the search decides; any of them can also be given by its
    name, as in `discover(model, task, examples=64)`. Examples are drawn by `seed`. `force` goes on
    with a model that has not learned the task; `watch` is told what happens. A task
    that names relations or conditions is searched only if the first answer, which is read off the
    maps, leaves it unsolved.
    """
    settings = settings.changed(**changes)
    _check_asks(task)
    adapter = adapter_of(model)
    digest = adapter.digest()
    _check_memory(adapter, task, settings)
    exam, few = (exam_of(task, size, seed) for size in (settings.examples, settings.few))
    progress = Progress(watch)
    search = Search(Ablator(adapter, exam), Ablator(adapter, few), settings, progress)
    _check_learned(float(search.clean.mean()), search.guess, settings, force)
    draft, others = _drafted(search)
    progress.step("measuring on fresh examples")
    findings = measure(search, task, draft, seed)
    # Fresh examples may tell otherwise than those of the search, if it saw few.
    _check_learned(findings.losses.mean("clean"), findings.losses.guess, settings, force)
    return Circuit(
        model=digest,
        task=task if isinstance(task, FactTask) else None,
        roles=exam.table,
        heads=tuple(
            HeadReport(layer=layer, head=head, mechanism=mechanism)
            for (layer, head), mechanism in draft.states.ideal.mechanisms.items()
        ),
        parts=findings.parts,
        losses=findings.losses,
        alternatives=others,
        shared=findings.shared,
        restored=findings.restored,
        flow=flow_check(exam.graph, [path for unit in draft.units for path in unit.paths]),
        switches=Switches(
            examples=settings.examples,
            batches=settings.batches,
            seed=seed,
            forced=force,
            settings=settings,
            version=__version__,
        ),
    )


def _drafted(search: Search) -> tuple[Draft, tuple[Alternative, ...]]:
    """The first answer where that is enough; else what the search finds.

    Where a task names no relations or conditions, the search knows more than the first answer can
    say.
    """
    search.progress.step(f"which of {len(search.heads)} heads matter")
    untouched = search.untouched()
    quick, exam = search.settings.quick, search.ablator.exam
    told = bool(exam.relations or exam.conditions)
    first = first_answer(search, untouched) if quick or told else None
    if first is not None and (quick or first.solved):
        return first.draft, ()
    draft, others = _searched(search, untouched)
    if first is not None and first.loss <= search.losses([draft.states.ideal])[0].mean():
        return first.draft, ()
    return draft, others


def _searched(search: Search, untouched: State) -> tuple[Draft, tuple[Alternative, ...]]:
    """What the search finds among all rows of the model."""
    own = needed_rows(search, untouched)
    search.progress.step(f"what explains {len(own.live)} rows of attention")
    states = Conditions(explained(search, own), untouched)
    search.progress.step("what of it is needed, and what could stand in")
    draft = settled(search, drafted(states, search.settings.path_share))
    return draft, alternatives(search, draft)


def _check_asks(task: Questions) -> None:
    """Refuse a task on which guessing is perfect: there no circuit is worth more than none."""
    if isinstance(task, FactTask) and task.chance() <= 0:
        raise CircuitError(
            "guessing has a loss of 0 on this task (of a single chain there is nothing to look up),"
            " so that no circuit is better than none: examine a model of two chains or more"
        )


@torch.no_grad()
def _check_memory(adapter: Adapter | CallbackModel, task: Questions, settings: Discovery) -> None:
    """Refuse more examples than this machine can hold, before they are drawn."""
    if not isinstance(task, FactTask) or adapter.device.type != "cpu":
        return
    most = max(settings.examples, settings.batches * settings.batch)
    check_examples(task, most)
    if not isinstance(adapter, CallbackModel):
        few = exam_of(task, FEW)
        stream = adapter.embed(few.inputs).nbytes // FEW
        check_search(most, stream, FLOAT * adapter.heads * few.length**2)


def _check_learned(clean: float, guess: float, settings: Discovery, force: bool) -> None:
    """Refuse a model that has not learned the task."""
    if clean > settings.unlearned * guess and not force:
        raise NotLearned(
            f"this model has not learned the task: its loss is {clean:.3f} where guessing "
            f"gives {guess:.3f}; train it further, or force the search"
        )


def flow_check(graph: FactGraph | None, paths: list[Path]) -> FlowCheck | None:
    """Do the paths alone bring every symbol to the query? (None: no fact graph is known.)"""
    if graph is None:
        return None
    readings = {path.reading: path for path in paths}
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
