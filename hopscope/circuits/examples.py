"""`Examples`: inputs for a model, the role of each position, and the loss of the answers.

Every position has one role. Examples may also have *relations*, which lead from every position to
another (such as the previous occurrence of the same letter) or to a set of others (such as the
first occurrences of all letters), and *conditions*, which hold at some positions (such as all
positions after a count token that says 2).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from statistics import fmean
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from hopscope.circuits.budget import check_examples
from hopscope.circuits.circuit import Circuit
from hopscope.circuits.pattern import (
    AS_IN_MODEL,
    ITSELF,
    MEAN,
    PREVIOUS,
    RESAMPLE,
    TIMES,
    UNIFORM,
    Source,
)
from hopscope.configs import MQAR, FactTask, Task
from hopscope.errors import CircuitError
from hopscope.facts import FactGraph, Role, number_of
from hopscope.tasks import Batch, Roles, dataset, question_losses

MOST_TIMES = 8
"""The largest number of times that a relation is followed from one position."""
SELDOM = 0.01
"""A relation is followed no further if it leads somewhere from less than this share of positions.
The share is small, since a circuit may fail at rare positions: those from which a hop leads nowhere
can be as few as 3 %."""
AND = " and "
"""Joins two conditions that both hold."""
LEADS = " leads"
"""Follows the name of a relation: the condition that it leads somewhere."""


@dataclass(frozen=True)
class SplitLoss:
    """A loss that is computed from the outputs of a few examples at a time, since those of all
    examples may not fit into memory (a large vocabulary).
    """

    terms: Callable[[Tensor, slice], Tensor]
    """A function from outputs [*variant, some, read, width] and their slice of the examples to the
    loss terms of that slice [*variant, some, …]: one for each answer, or for each hop.
    """
    total: Callable[[Tensor], Float[Tensor, "*variant batch hop"]] = lambda terms: terms
    """A function from the terms of all examples to the loss of each example and hop."""

    def __call__(self, outputs: Tensor) -> Float[Tensor, "*variant batch hop"]:
        """The loss of each example and hop, from the outputs of all examples."""
        return self.total(self.terms(outputs, slice(0, outputs.shape[-3])))


@dataclass(frozen=True)
class Examples:
    """Examples, with the role and chain of every position, and a loss for every hop."""

    inputs: Tensor
    """The inputs of the model [batch, seq, …], of whatever type it takes."""
    roles: Roles
    table: tuple[Role, ...]
    """The roles that `roles.role` indexes."""
    losses: Callable[[Tensor], Float[Tensor, "*variant batch hop"]]
    """A function from outputs [*variant, batch, read, width] to the loss of each example and hop.
    Unless it is a SplitLoss, the outputs of all examples must fit into memory.
    """
    chance: float
    """The loss of an answer that ignores how the facts connect."""
    read: int | None = None
    """How many of the last positions the loss uses; None: all at which the model answers."""
    relations: Mapping[str, Tensor] = field(default_factory=dict)
    """Where each relation leads: [batch, seq], a position for every position, or -1 for nowhere; or
    for a relation to sets, [batch, destination, source], True at the sources."""
    conditions: Mapping[str, Bool[Tensor, "batch seq"]] = field(default_factory=dict)
    """For each condition, True at the positions where it holds."""
    graph: FactGraph | None = None
    """The facts of one chain, if the task has facts; the flow check uses them."""
    symbols: Tensor | None = None
    """The symbols of each chain [batch, chain, symbol, …], as vectors or class numbers, for probes.
    For a task of hopscope this is None: probes draw the symbols themselves."""
    classes: bool = False
    """True if outputs are logits of classes (tokens), False if they are vectors."""
    answered: Int[Tensor, "batch answer"] | None = None
    """The positions of the answers, counted from the last (-1); None: all positions read."""
    targets: Int[Tensor, "batch answer"] | None = None
    """The right class of each answer, if known. The loss does not use it."""
    abreast: int = 1
    """The number of answers in the outputs of one position, one after the other."""
    tables: Mapping[Source, Float[Tensor, "destination source"]] = field(default_factory=dict)
    """Mean attention of heads on other examples, by position or by token."""
    names: tuple[str, ...] = ()
    """The names of `symbols`, along its third axis; empty without symbols."""
    chances: tuple[float, ...] = ()
    """The loss at chance of each hop (`chance` is their mean); empty if only the mean is known."""

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def length(self) -> int:
        """The number of positions of one example."""
        return self.roles.role.shape[-1]

    @property
    def shape(self) -> tuple[int, int]:
        """The number of examples, and of positions in each."""
        return len(self), self.length

    def read_of(self, answers_at: int | None) -> int:
        """How many of the last positions are read, for a model that answers at the last
        `answers_at` positions (None: at all).
        """
        return min(self.read or self.length, answers_at or self.length)

    def on(self, device: torch.device) -> "Examples":
        """The same examples on another device."""
        tables = {source: each.to(device) for source, each in self.tables.items()}
        return replace(self._each(lambda numbers: numbers.to(device)), tables=tables)

    def part(self, some: slice | list[int]) -> "Examples":
        """Some of the examples, for measuring attention. Their losses cannot be computed, since a
        loss knows all examples.
        """
        answered = None if self.answered is None else self.answered[some]
        targets = None if self.targets is None else self.targets[some]
        others = {"answered": answered, "targets": targets, "losses": _no_losses}
        return self._each(lambda numbers: numbers[some], **others)

    def _each(self, change: Callable[[Tensor], Tensor], **others: Any) -> "Examples":
        """The same examples, with `change` applied to all tensors with a value per position, and
        other fields replaced.
        """
        return replace(
            self,
            **others,
            inputs=change(self.inputs),
            roles=Roles(change(self.roles.role), change(self.roles.chain)),
            relations={name: change(leads) for name, leads in self.relations.items()},
            conditions={name: change(holds) for name, holds in self.conditions.items()},
        )

    def answers_of(self, outputs: Tensor) -> Tensor:
        """The outputs [batch, answer, …] at the answers, from outputs at the last positions."""
        if self.answered is None:
            return outputs[:, -(self.read or self.length) :]
        return outputs_at(outputs, self.answered)

    def number(self, role: Role | str) -> int:
        """The index of a role in the table; raises CircuitError if it is not there."""
        return number_of(role, self.table)

    def positions(self, *roles: Role | str) -> Bool[Tensor, "batch seq"]:
        """True where a position has one of these roles."""
        role = self.roles.role
        found: Tensor = torch.isin(role, role.new_tensor([self.number(each) for each in roles]))
        return found

    def table_of(self, source: Source) -> Float[Tensor, "destination source"]:
        """The table of a head's mean attention; raises CircuitError if it was not estimated."""
        if source not in self.tables:
            layer, head = source.head or (0, 0)
            raise CircuitError(
                f"head {layer}.{head} attends {source}, but no table was estimated for it: "
                "estimate_tables(model, other_examples) makes them"
            )
        return self.tables[source]

    def masks(
        self,
        relation: str,
        times: int = 1,
        at: slice | tuple[Int[Tensor, "spot"], Int[Tensor, "spot"]] = slice(None),
    ) -> Bool[Tensor, "*at seq"]:
        """True at the positions to which a relation, followed `times` times, leads. `at` selects
        the starting points: all positions of some examples (a slice), or single positions (a pair
        of tensors, their examples and positions).
        """
        every = leads = _named("relation", relation, self.relations)
        if leads.dim() == 2:
            there = self.landing(relation, times)[at]
            return there[..., None] == torch.arange(self.length, device=leads.device)
        for _ in range(times - 1):
            every = (every.float() @ leads.float()) > 0
        return every[at]

    def leads(self, relation: str, times: int = 1) -> Bool[Tensor, "batch seq"]:
        """True at the positions from which a relation, followed `times` times, leads somewhere."""
        leads = _named("relation", relation, self.relations)
        if leads.dim() == 2:
            return self.landing(relation, times) >= 0
        somewhere = leads.any(-1)
        for _ in range(times - 1):
            somewhere = (leads & somewhere[:, None]).any(-1)
        return somewhere

    def landing(self, relation: str, times: int = 1) -> Int[Tensor, "batch seq"]:
        """The position to which a relation, followed `times` times, leads from every position, -1
        for nowhere. Not for relations to sets.
        """
        here = leads = _named("relation", relation, self.relations)
        for _ in range(times - 1):
            here = torch.where(here >= 0, leads.gather(1, here.clamp_min(0)), here)
        return here

    def by_place(self, relation: str) -> bool:
        """True if the position alone determines where a relation leads: to the same place in every
        example, or by the same offset everywhere. Then a head that attends by position has the same
        attention.
        """
        leads = _named("relation", relation, self.relations)
        same = len(leads) > 1 and bool((leads == leads[0]).all())
        if same or len(leads) < 2 or leads.dim() == 3:
            return same
        offsets = torch.arange(self.length, device=leads.device) - leads
        return len(offsets[leads >= 0].unique()) == 1

    def follows(self) -> list[tuple[str, int]]:
        """Pairs of a relation and a number of times that it is followed: 1, 2, … as long as it
        leads somewhere from enough positions.
        """
        found = []
        for name in self.relations:
            for times in range(1, MOST_TIMES + 1):
                if float(self.leads(name, times).float().mean()) < SELDOM:
                    break
                found.append((name, times))
        return found

    def condition(self, name: str) -> Bool[Tensor, "batch seq"]:
        """True at the positions where a condition holds; raises CircuitError if it is not known.

        Conditions can be joined, as in `k=3 and hop leads`. `hop leads` is the condition that the
        relation `hop` leads somewhere.
        """
        if name in self.conditions:
            return self.conditions[name]
        first, _, rest = name.partition(AND)
        relation, _, times = first.removesuffix(LEADS).partition(TIMES)
        if first.endswith(LEADS) and relation in self.relations:
            holds = self.leads(relation, int(times) if times.isdecimal() else 1)
        else:
            holds = _named("condition", first, self.conditions)
        return holds & self.condition(rest) if rest else holds

    def losses_of(self, outputs: Tensor) -> Float[Tensor, "*variant batch hop"]:
        """The loss of each example and hop; raises CircuitError if a user's loss returns another
        shape.
        """
        return self.losses_from(self.terms_of(outputs, slice(0, len(self))))

    def terms_of(self, outputs: Tensor, some: slice) -> Tensor:
        """The loss terms of some examples; their outputs if the loss is not a SplitLoss."""
        read = self.read
        if read is not None and outputs.dim() > 2:
            if outputs.shape[-2] < read:
                raise CircuitError(
                    f"the loss looks at the last {read} positions; this model answers at "
                    f"{outputs.shape[-2]}: read answers there, or give CallbackModel outputs at all"
                )
            outputs = outputs[..., -read:, :]
        return self.losses.terms(outputs, some) if isinstance(self.losses, SplitLoss) else outputs

    def losses_from(self, terms: Tensor) -> Float[Tensor, "*variant batch hop"]:
        """The loss of each example and hop, from what `terms_of` returns for all examples."""
        found = (self.losses.total if isinstance(self.losses, SplitLoss) else self.losses)(terms)
        if not isinstance(found, Tensor) or found.dim() < 2 or found.shape[-2] != len(self):
            got = list(found.shape) if isinstance(found, Tensor) else type(found).__name__
            raise CircuitError(
                f"the losses are {got}; expected one for each example and hop, "
                f"[{len(self)}, hops]: take the mean over positions, keep an axis of hops (of "
                "length 1 if there is one loss), and do not take the mean over examples"
            )
        return found


def _no_losses(_: Tensor) -> Tensor:
    raise CircuitError("losses need all examples, and these are a part of them")


def outputs_at(outputs: Tensor, answers: Int[Tensor, "batch answer"]) -> Tensor:
    """The outputs [batch, answer, …] at positions counted from the last (-1). Counted this way, a
    position is the same whether or not the first positions are read.
    """
    rows = torch.arange(len(answers), device=outputs.device)[:, None]
    return outputs[rows, answers.to(outputs.device) + outputs.shape[1]]


def _named(kind: str, name: str, known: Mapping[str, Tensor]) -> Tensor:
    if name not in known:
        raise CircuitError(
            f"there is no {kind} {name!r} here; the {kind}s are {', '.join(known) or 'none'}"
        )
    return known[name]


Questions = Task | Callable[[int, int], Examples]
"""A task, or a function that draws Examples, given a number of examples and a seed."""


Purpose = Literal[
    "ablation", "tables", "attention", "emergence", "diagnosis", "patching", "fitting", "probing",
    "evaluation", "search", "measurement",
]  # fmt: skip
SEEDS = 10**8
"""The number of seeds of each purpose, and of training."""
FIRST_SEED: Mapping[Purpose, int] = {
    purpose: SEEDS * number for number, purpose in enumerate(get_args(Purpose), 1)
}
"""The first seed of each purpose."""


def example_seed(purpose: Purpose, seed: int = 0) -> int:
    """The seed for drawing examples, which differs between purposes for the same `seed`."""
    return FIRST_SEED[purpose] + seed


MOST_SEED = 2**40
"""The largest seed: with it, the seeds for all purposes fit into 64 bits."""


ENOUGH = 8
"""With at least this many examples, two draws that are equal are not so by chance."""


def check_differ(first: Tensor, second: Tensor, seed: int, other: int) -> None:
    """Raise CircuitError if two seeds drew the same inputs (as many as both have, if enough)."""
    count = min(len(first), len(second))
    if count >= ENOUGH and torch.equal(first[:count], second[:count]):
        raise CircuitError(
            f"the function that draws gave the same {count} examples for the seeds {seed} and "
            f"{other}; expected others: a circuit is found on some and proved on fresh ones"
        )


def examples_of(
    questions: Questions, count: int, seed: int = 0, purpose: Purpose = "ablation"
) -> Examples:
    """Fresh examples of a task, from its validation stream.

    The same seed gives different examples for each purpose, so that no later analysis uses the
    examples of the search.
    """
    check_count(count)
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or abs(seed) > MOST_SEED:
        raise CircuitError(f"seed is {seed!r}; expected a whole number up to {MOST_SEED:,}")
    seed = int(seed)
    if not isinstance(questions, FactTask):
        if not callable(questions):
            raise CircuitError(
                f"a model is examined on a task, on an OwnTask, or on a function of a number of "
                f"examples and a seed that draws Examples; got {type(questions).__name__}"
            )
        examples = questions(count, example_seed(purpose, seed))
        check_form(examples, count)
        return examples
    task = questions
    check_examples(task, count)
    batch = dataset(task, example_seed(purpose, seed), count, "validation")

    def terms(outputs: Tensor, some: slice) -> Tensor:
        return question_losses(task, outputs.to(batch.targets.device), batch.part(some))

    inputs, roles, table = batch.inputs, batch.roles, task.roles()
    chances = task.chances(task.labelled_positions())
    read = task.labelled_positions() or task.interface().read
    classes = not batch.targets.is_floating_point()
    return Examples(
        inputs,
        roles,
        table,
        SplitLoss(terms),
        fmean(chances),
        read,
        graph=task.graph(),
        classes=classes,
        answered=_answered(task, batch, read),
        abreast=batch.targets.shape[-1] if classes else 1,
        chances=chances,
    )


def _answered(task: FactTask, batch: Batch, read: int) -> Int[Tensor, "batch answer"] | None:
    """The positions of a task's answers, counted from the last; None: all positions read."""
    graph = task.graph()
    known = len(graph.known) if graph else 1
    if known > 1:  # a query of several symbols is answered at the last of them
        return torch.arange(known - 1 - read, 0, known).expand(len(batch.inputs), -1)
    if isinstance(task, MQAR):
        asked = batch.roles.role[:, -read:] == task.roles().index(Role("query"))
        return asked.nonzero()[:, 1].view(len(asked), -1) - read
    return None


def questions_of(circuit: Circuit, given: Questions | None) -> Questions:
    """The given task, or else the circuit's; raises CircuitError without either."""
    questions = given or circuit.task
    if questions is None:
        raise CircuitError("the circuit names no task: give the task to examine it on")
    return questions


def check_count(examples: object) -> None:
    """Raise CircuitError unless `examples` is a whole number of at least 1."""
    if isinstance(examples, bool) or not isinstance(examples, int | np.integer) or examples < 1:
        raise CircuitError(f"examples is {examples!r}; a model is examined with at least 1")


def check_interval(examples: object) -> None:
    """Raise CircuitError unless `examples` is at least 2, as an interval needs."""
    check_count(examples)
    if examples == 1:
        raise CircuitError("examples is 1; an interval needs at least 2")


def check_form(examples: object, count: int) -> None:
    """Raise CircuitError if the return value of a user's function is not `count` valid Examples."""
    if not isinstance(examples, Examples):
        raise CircuitError(
            f"the function that draws returned {type(examples).__name__}; expected Examples (a "
            "function that returns Drawn goes into an OwnTask)"
        )
    if len(examples) != count:
        raise CircuitError(
            f"the function drew {len(examples)} examples; expected {count}, its first argument"
        )
    if not examples.table or len(set(examples.table)) < len(examples.table):
        named = ", ".join(map(str, examples.table)) or "none"
        raise CircuitError(f"the table of roles is {named}; expected each role once")
    for role in examples.table:
        _check_free("role", str(role))
    shape = examples.shape
    check_places("the role of positions", examples.roles.role, shape, (0, len(examples.table)))
    check_places("the chain of positions", examples.roles.chain, shape, (0, None))
    for name, leads in examples.relations.items():
        _check_free("relation", name, examples.table)
        check_relation(name, leads, shape)
    for name, holds in examples.conditions.items():
        _check_free("condition", name)
        check_places(f"the condition {name!r}", holds, shape, (0, 2))
    if examples.read is not None and not 1 <= examples.read <= examples.length:
        raise CircuitError(
            f"read is {examples.read}; expected a number of last positions, from 1 to "
            f"{examples.length}"
        )
    if not 0 < examples.chance < inf:
        raise CircuitError(f"chance is {examples.chance}; expected the loss at chance, above 0")


def _check_free(kind: str, name: str, table: Sequence[Role] = ()) -> None:
    """Raise CircuitError if the name of a role, relation or condition has another meaning."""
    words = (ITSELF, PREVIOUS, UNIFORM, AS_IN_MODEL, MEAN, RESAMPLE)
    taken = {*map(str, table), *map(str, words), "position", "by position"}
    taken |= {role.kind for role in table}  # a relation "value" followed twice is "value 2"
    if name in taken or any(mark in f"{name} " for mark in (" ×", " and ", " leads ")):
        raise CircuitError(
            f"the {kind} name {name!r} has another meaning in hopscope (a role, itself, previous, "
            "uniform, mean, resample, position, ×, and, leads): choose another name"
        )


def check_relation(name: str, leads: object, shape: tuple[int, int]) -> None:
    """Raise CircuitError unless the relation leads from each position to a position or to a set."""
    is_set = isinstance(leads, Tensor) and (leads.dim() == 3 or leads.dtype == torch.bool)
    if not isinstance(leads, Tensor) or not is_set:
        check_places(f"the relation {name!r}", leads, shape, (-1, shape[1]))
    elif leads.dtype != torch.bool or tuple(leads.shape) != (*shape, shape[1]):
        raise CircuitError(
            f"the relation {name!r} is {leads.dtype} {list(leads.shape)}; expected the number of a "
            f"position from each, {list(shape)}, or a set of them, torch.bool "
            f"{[*shape, shape[1]]} (example, destination, source)"
        )


def check_places(
    what: str, numbers: object, shape: tuple[int, int], span: tuple[int, int | None]
) -> None:
    """Raise CircuitError unless `numbers` has a whole number for every position of every example,
    from the first value of `span` to below the second (None: no upper limit).
    """
    if not isinstance(numbers, Tensor) or tuple(numbers.shape) != shape:
        got = list(numbers.shape) if isinstance(numbers, Tensor) else type(numbers).__name__
        raise CircuitError(f"{what} is {got}; expected a tensor {list(shape)} (example, position)")
    if numbers.is_floating_point():
        raise CircuitError(f"{what} has numbers of type {numbers.dtype}; expected whole numbers")
    least, below = span
    low, high = int(numbers.min()), int(numbers.max())
    if low < least or (below is not None and high >= below):
        most = "" if below is None else f" … {below - 1}"
        raise CircuitError(
            f"{what} has numbers {low} … {high}; expected {least}{most or ' or more'}"
        )
