"""What a model is examined with: inputs, roles of their positions, and how answers are marked.

Beside roles, of which each position has one, examples may name *relations*, which lead from every
position to another (the previous occurrence of the same letter) or to a set of others (all first
occurrences of letters), and *conditions*, which hold at some positions (everywhere behind a count
token that says 2).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from statistics import fmean
from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from hopscope.circuits.budget import check_examples
from hopscope.circuits.circuit import Circuit
from hopscope.circuits.pattern import AS_IN_MODEL, ITSELF, PREVIOUS, TIMES, UNIFORM, Source
from hopscope.configs import MQAR, FactTask, Task
from hopscope.errors import CircuitError
from hopscope.facts import FactGraph, Role, number_of
from hopscope.tasks import Batch, Roles, dataset, question_losses

MOST_TIMES = 8
"""The largest number of times that a relation is followed from one position."""
SELDOM = 0.01
"""A relation is followed no further once it leads somewhere from less than this share of positions.
Positions whose hops lead nowhere may be as few as three in a hundred, and yet be what a circuit
fails at."""
AND = " and "
"""Between two conditions that hold together."""
LEADS = " leads"
"""Behind the name of a relation: the condition that it leads somewhere."""


@dataclass(frozen=True)
class SplitLoss:
    """A loss that takes the outputs of some examples at a time: a large vocabulary needs that."""

    marks: Callable[[Tensor, slice], Tensor]
    """Outputs [*variant, some, read, width] of a slice of the examples → its marks [*variant, some,
    …], the losses of single answers or of hops."""
    total: Callable[[Tensor], Float[Tensor, "*variant batch hop"]] = lambda marks: marks
    """The marks of all examples → the loss of each example and hop."""

    def __call__(self, outputs: Tensor) -> Float[Tensor, "*variant batch hop"]:
        """The same for the outputs of all examples."""
        return self.total(self.marks(outputs, slice(0, outputs.shape[-3])))


@dataclass(frozen=True)
class Examples:
    """Examples, with the role and chain of every position, and a loss for every hop."""

    inputs: Tensor
    """The inputs of the model [batch, seq, …], of whatever type it takes."""
    roles: Roles
    table: tuple[Role, ...]
    """The roles that `roles.role` indexes."""
    losses: Callable[[Tensor], Float[Tensor, "*variant batch hop"]]
    """Outputs [*variant, batch, read, width] → the loss of each example and hop. Unless it is a
    SplitLoss, it is given the outputs of all examples, which must then fit into memory."""
    chance: float
    """The loss of an answer that ignores how the facts connect."""
    read: int | None = None
    """How many of the last positions the loss looks at; unset: all that the model answers at."""
    relations: Mapping[str, Tensor] = field(default_factory=dict)
    """Where each relation leads: [batch, seq] a position from every position, -1 where it leads
    nowhere; or [batch, destination, source] True at the sources of a set."""
    conditions: Mapping[str, Bool[Tensor, "batch seq"]] = field(default_factory=dict)
    """For each condition by its name, True at the positions where it holds."""
    graph: FactGraph | None = None
    """The facts of one chain, if the task has such: the flow check follows them."""
    symbols: Tensor | None = None
    """What the symbols of each chain are [batch, chain, symbol, …]: vectors, or numbers of classes.
    Probes read them; for a task it is drawn when it is asked for."""
    classes: bool = False
    """Are outputs logits of classes (of tokens), and not vectors?"""
    answered: Int[Tensor, "batch answer"] | None = None
    """The positions of the answers, counted from the last (-1); unset: all that are read."""
    targets: Int[Tensor, "batch answer"] | None = None
    """The right class of each answer, where one is known: it is shown, and marks nothing."""
    abreast: int = 1
    """How many answers the outputs of one position hold, one after the other."""
    tables: Mapping[Source, Float[Tensor, "destination source"]] = field(default_factory=dict)
    """Mean attention of heads on other examples, by position or by token."""
    names: tuple[str, ...] = ()
    """The names of `symbols`, along its third axis; empty where symbols are not given."""
    chances: tuple[float, ...] = ()
    """`chance` for each hop, of which it is the mean; empty where only the mean is given."""

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def length(self) -> int:
        """The number of positions of one example."""
        return self.roles.role.shape[-1]

    @property
    def shape(self) -> tuple[int, int]:
        """The number of examples, and of positions of one."""
        return len(self), self.length

    def read_of(self, answers_at: int | None) -> int:
        """How many last positions are read of a model that answers at so many (None: at all)."""
        return min(self.read or self.length, answers_at or self.length)

    def on(self, device: torch.device) -> "Examples":
        """The same examples on another device."""
        tables = {source: each.to(device) for source, each in self.tables.items()}
        return replace(self._each(lambda numbers: numbers.to(device)), tables=tables)

    def part(self, some: slice | list[int]) -> "Examples":
        """Some of the examples, to be looked at; their answers are not marked."""
        answered = None if self.answered is None else self.answered[some]
        targets = None if self.targets is None else self.targets[some]
        mine = self._each(lambda numbers: numbers[some])
        return replace(mine, answered=answered, targets=targets)

    def _each(self, change: Callable[[Tensor], Tensor]) -> "Examples":
        """The same, with all that says something of each position changed in this way."""
        return replace(
            self,
            inputs=change(self.inputs),
            roles=Roles(change(self.roles.role), change(self.roles.chain)),
            relations={name: change(leads) for name, leads in self.relations.items()},
            conditions={name: change(holds) for name, holds in self.conditions.items()},
        )

    def answers_of(self, outputs: Tensor) -> Tensor:
        """The outputs [batch, answer, …] at the answers, of outputs at the last positions."""
        if self.answered is None:
            return outputs[:, -(self.read or self.length) :]
        return outputs_at(outputs, self.answered)

    def number(self, role: Role | str) -> int:
        """Where a role stands in the table."""
        return number_of(role, self.table)

    def positions(self, *roles: Role | str) -> Bool[Tensor, "batch seq"]:
        """True where a position has one of these roles."""
        role = self.roles.role
        found: Tensor = torch.isin(role, role.new_tensor([self.number(each) for each in roles]))
        return found

    def table_of(self, source: Source) -> Float[Tensor, "destination source"]:
        """The table of a head's mean attention; refuses one that was not estimated."""
        if source not in self.tables:
            layer, head = source.head or (0, 0)
            raise CircuitError(
                f"head {layer}.{head} is to attend {source}, and no table was estimated for it: "
                "estimate_tables(model, other_examples) makes them"
            )
        return self.tables[source]

    def masks(
        self,
        relation: str,
        times: int = 1,
        at: slice | tuple[Int[Tensor, "spot"], Int[Tensor, "spot"]] = slice(None),
    ) -> Bool[Tensor, "*at seq"]:
        """True where a relation leads to if it is followed so many times, from every position of
        some examples, or from single positions: their examples, and where they are.
        """
        every = leads = _named("relation", relation, self.relations)
        if leads.dim() == 2:
            there = self.landing(relation, times)[at]
            return there[..., None] == torch.arange(self.length, device=leads.device)
        for _ in range(times - 1):
            every = (every.float() @ leads.float()) > 0
        return every[at]

    def leads(self, relation: str, times: int = 1) -> Bool[Tensor, "batch seq"]:
        """True where a relation leads somewhere if it is followed so many times."""
        leads = _named("relation", relation, self.relations)
        if leads.dim() == 2:
            return self.landing(relation, times) >= 0
        somewhere = leads.any(-1)
        for _ in range(times - 1):
            somewhere = (leads & somewhere[:, None]).any(-1)
        return somewhere

    def landing(self, relation: str, times: int = 1) -> Int[Tensor, "batch seq"]:
        """The position that a relation (not one to sets) leads to from every position, -1 for
        nowhere, if it is followed so many times.
        """
        here = leads = _named("relation", relation, self.relations)
        for _ in range(times - 1):
            here = torch.where(here >= 0, leads.gather(1, here.clamp_min(0)), here)
        return here

    def by_place(self, relation: str) -> bool:
        """True if a position alone says where a relation leads from it: in every example to the
        same place, or everywhere by the same offset. A head by position would do the same.
        """
        leads = _named("relation", relation, self.relations)
        same = len(leads) > 1 and bool((leads == leads[0]).all())
        if same or len(leads) < 2 or leads.dim() == 3:
            return same
        offsets = torch.arange(self.length, device=leads.device) - leads
        return len(offsets[leads >= 0].unique()) == 1

    def follows(self) -> list[tuple[str, int]]:
        """Every relation, and how many times it is followed: 1, 2, … while it leads somewhere."""
        found = []
        for name in self.relations:
            for times in range(1, MOST_TIMES + 1):
                if float(self.leads(name, times).float().mean()) < SELDOM:
                    break
                found.append((name, times))
        return found

    def condition(self, name: str) -> Bool[Tensor, "batch seq"]:
        """True at the positions where this condition holds; refuses a name that is not known.

        Several hold together as `k=3 and hop leads`: where a relation leads somewhere is a
        condition, too.
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
        """The loss of each example and hop; refuses what a function of one's own got wrong."""
        return self.losses_from(self.marks_of(outputs, slice(0, len(self))))

    def marks_of(self, outputs: Tensor, some: slice) -> Tensor:
        """What the losses need of the outputs of some examples: their marks, else all of them."""
        read = self.read
        if read is not None and outputs.dim() > 2:
            if outputs.shape[-2] < read:
                raise CircuitError(
                    f"the loss looks at the last {read} positions; this model answers at "
                    f"{outputs.shape[-2]}: read answers there, or give CallbackModel outputs at all"
                )
            outputs = outputs[..., -read:, :]
        return self.losses.marks(outputs, some) if isinstance(self.losses, SplitLoss) else outputs

    def losses_from(self, marks: Tensor) -> Float[Tensor, "*variant batch hop"]:
        """The loss of each example and hop, from what `marks_of` gives of all examples."""
        found = (self.losses.total if isinstance(self.losses, SplitLoss) else self.losses)(marks)
        if not isinstance(found, Tensor) or found.dim() < 2 or found.shape[-2] != len(self):
            got = list(found.shape) if isinstance(found, Tensor) else type(found).__name__
            raise CircuitError(
                f"the losses are {got}; expected one for each example and hop, "
                f"[{len(self)}, hops]: take the mean over positions, keep an axis of hops (of "
                "length 1 if there is one loss), and do not take the mean over examples"
            )
        return found


def outputs_at(outputs: Tensor, answers: Int[Tensor, "batch answer"]) -> Tensor:
    """The outputs [batch, answer, …] at positions counted from the last (-1): these are the
    same whether or not the first positions are read.
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
"""A task, or whatever draws Examples from a number of examples and a seed."""


Purpose = Literal[
    "search", "measurement", "ablation", "tables", "attention", "emergence", "diagnosis",
    "patching", "fitting", "probing", "evaluation",
]  # fmt: skip
FIRST_SEED: Mapping[Purpose, int] = {
    "search": 0,
    "measurement": 1,
    **{purpose: 10**8 * n for n, purpose in enumerate(get_args(Purpose)[2:], 1)},
}
"""The seed that seed 0 stands for: each later analysis has a hundred million seeds of its own."""


def example_seed(purpose: Purpose, seed: int = 0) -> int:
    """The seed that examples are drawn by: one seed draws other examples for each purpose."""
    return FIRST_SEED[purpose] + seed


MOST_SEED = 2**40
"""The largest seed of examples: those of all purposes fit into 64 bits."""


def examples_of(
    questions: Questions, count: int, seed: int = 0, purpose: Purpose = "ablation"
) -> Examples:
    """Fresh examples of a task, from its validation stream.

    The same seed draws other examples for each purpose: what a search has seen is seen by no later
    analysis.
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

    def marks(outputs: Tensor, some: slice) -> Tensor:
        return question_losses(task, outputs.to(batch.targets.device), batch.part(some))

    inputs, roles, table = batch.inputs, batch.roles, task.roles()
    chances = task.chances(task.labelled_positions())
    read = task.labelled_positions() or task.interface().read
    classes = not batch.targets.is_floating_point()
    return Examples(
        inputs,
        roles,
        table,
        SplitLoss(marks),
        fmean(chances),
        read,
        graph=task.graph(),
        classes=classes,
        answered=_answered(task, batch, read),
        abreast=batch.targets.shape[-1] if classes else 1,
        chances=chances,
    )


def _answered(task: FactTask, batch: Batch, read: int) -> Int[Tensor, "batch answer"] | None:
    """The positions of a task's answers, from the last; None: all that are read."""
    graph = task.graph()
    known = len(graph.known) if graph else 1
    if known > 1:  # a query of several symbols is answered at its last
        return torch.arange(known - 1 - read, 0, known).expand(len(batch.inputs), -1)
    if isinstance(task, MQAR):
        asked = batch.roles.role[:, -read:] == task.roles().index(Role("query"))
        return asked.nonzero()[:, 1].view(len(asked), -1) - read
    return None


def questions_of(circuit: Circuit, given: Questions | None) -> Questions:
    """The task that is given, or else the circuit's own."""
    questions = given or circuit.task
    if questions is None:
        raise CircuitError("the circuit names no task: give the task to examine it on")
    return questions


def check_count(examples: object) -> None:
    """Refuse what is no number of examples."""
    if isinstance(examples, bool) or not isinstance(examples, int | np.integer) or examples < 1:
        raise CircuitError(f"examples is {examples!r}; a model is examined with at least 1")


def check_interval(examples: object) -> None:
    """Refuse fewer examples than an interval needs."""
    check_count(examples)
    if examples == 1:
        raise CircuitError("examples is 1; an interval needs at least 2")


def check_form(examples: object, count: int) -> None:
    """Refuse what a function of one's own made of its examples, if it cannot be used."""
    if not isinstance(examples, Examples):
        raise CircuitError(
            f"the function that draws returned {type(examples).__name__}; expected Examples"
        )
    if len(examples) != count:
        raise CircuitError(
            f"{count} examples were asked for, and {len(examples)} drawn: draw as many as the "
            "first argument says"
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
    """Refuse the name of a role, relation or condition that says something else already."""
    words = (ITSELF, PREVIOUS, UNIFORM, AS_IN_MODEL)
    taken = {*map(str, table), *map(str, words), "position", "by position"}
    taken |= {role.kind for role in table}  # "value" followed twice is no role "value 2"
    if name in taken or any(mark in f"{name} " for mark in (" ×", " and ", " leads ")):
        raise CircuitError(
            f"a {kind} is called {name!r}, which hopscope says of something else (a role, "
            "itself, previous, uniform, position, ×, and, leads): give it another name"
        )


def check_relation(name: str, leads: object, shape: tuple[int, int]) -> None:
    """Refuse what leads neither to a position nor to a set of positions from each."""
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
    """Refuse what is not a number for every position of every example, within a span."""
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
