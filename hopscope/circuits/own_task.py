"""`OwnTask`: a user's task, with a function that draws examples, roles of positions, and a loss.

    def draw(examples, seed):
        ...
        return Drawn(inputs, targets, roles=names, relations={"hop": landing})

    task = OwnTask(draw, roles=("count", "letter"), chance=math.log(4), hops=2)
    discover(model, task)

Everything that the function returns is checked; a mistake raises CircuitError.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import cross_entropy

from hopscope.circuits.examples import (
    ENOUGH,
    SEEDS,
    Examples,
    SplitLoss,
    check_differ,
    check_form,
    check_places,
    outputs_at,
)
from hopscope.errors import CircuitError
from hopscope.facts import FactGraph, parse_facts, parse_role
from hopscope.machine import out_of_memory
from hopscope.tasks import Roles


@dataclass(frozen=True)
class Drawn:
    """Some examples of a user's task."""

    inputs: Tensor
    """The inputs of the model [example, position, …], of any type that it takes."""
    targets: Tensor
    """The right answers [example, answer, …]: class numbers, vectors, or any tensor that the loss
    takes."""
    roles: Sequence[str] | Tensor
    """The name of each position's role, the same in all examples; or [example, position], the
    index of each role in the task's table."""
    chain: Tensor | None = None
    """[example, position]: the number of the chain of each position; None: there is one chain."""
    answers_at: Sequence[int] | Tensor | None = None
    """The positions of the answers, [answer] or [example, answer]; None: the last positions, as
    many as there are targets."""
    hop: Tensor | None = None
    """[example, answer]: the hop of each answer, from 0 to `OwnTask`'s `hops` - 1. None: there is
    one hop, or the loss returns a value for each hop."""
    relations: Mapping[str, Tensor] = field(default_factory=dict)
    """Name → [example, position], the position to which the relation leads, -1 for nowhere; or for
    a relation to sets, [example, destination, source], True for each source."""
    conditions: Mapping[str, Tensor] = field(default_factory=dict)
    """Name → [example, position] or [example]: True where the condition holds."""


Loss = Callable[[Tensor, Tensor], Tensor]
"""Outputs at the answers [example, answer, …] and targets → a loss for each answer, or for each
answer and hop. It may be called on some of the examples.
"""


def plain_losses(outputs: Tensor, targets: Tensor) -> Float[Tensor, "example answer"]:
    """Cross-entropy if targets are class numbers, else the mean squared error."""
    if targets.is_floating_point():
        if outputs.shape != targets.shape:
            raise CircuitError(
                f"the model's answers are {list(outputs.shape)}, the targets {list(targets.shape)}:"
                " expected the same; give a loss of your own to compare others"
            )
        return (outputs - targets).square().flatten(2).mean(-1)
    classes = outputs.shape[-1]
    if targets.dim() != 2 or int(targets.max()) >= classes or int(targets.min()) < 0:
        raise CircuitError(
            f"targets are {list(targets.shape)} with classes {int(targets.min())} … "
            f"{int(targets.max())}; expected [example, answer] with 0 … {classes - 1}, as the "
            "model's outputs have (is its head loaded, as AutoModelForCausalLM does?)"
        )
    found = cross_entropy(outputs.float().flatten(0, 1), targets.flatten(), reduction="none")
    return found.view(targets.shape)


class OwnTask:
    """A user's task, which can be used like hopscope's tasks. Calling it with a number of examples
    and a seed returns `Examples`, of the same length in all calls.
    """

    def __init__(
        self,
        draw: Callable[[int, int], Drawn],
        *,
        roles: Sequence[str],
        chance: float,
        hops: int = 1,
        loss: Loss = plain_losses,
        facts: Sequence[str] = (),
    ) -> None:
        """`hops` is the number of hops with a separate loss, the same in every draw. `loss` is
        called on a few examples at a time, so it must not depend on other examples. `facts` (such
        as "x0->x1") are the facts of one chain, if the roles are theirs; `discover` uses them to
        check whether the paths of a circuit bring every answer to the query: the value of the last
        fact, or with as many hops as facts the value of each.
        """
        if not callable(draw) or isinstance(draw, type):
            raise CircuitError(
                "an OwnTask begins with a function that draws (examples, seed) -> Drawn; "
                f"got {draw!r}"
            )
        if not _are_names(roles) or not roles:
            raise CircuitError(
                f"roles are {_told(roles)}; expected a list of names, such as ['query']"
            )
        if isinstance(hops, bool) or not isinstance(hops, int | np.integer) or hops < 1:
            raise CircuitError(f"hops is {hops!r}; expected how many hops the task has, at least 1")
        number = isinstance(chance, int | float | np.number) and not isinstance(chance, bool)
        if not number or not 0 < chance < inf:
            raise CircuitError(f"chance is {chance!r}; expected the loss at chance, above 0")
        self.draw, self.chance, self.hops, self.loss = draw, float(chance), int(hops), loss
        self.table = tuple(parse_role(name) for name in roles)
        self.graph: FactGraph | None = parse_facts(facts) if facts else None
        self._fresh = False  # True once another seed was found to draw other examples
        self._form: dict[str, str] = {}  # that of the first examples

    def __call__(self, examples: int, seed: int) -> Examples:
        """Draw and check examples."""
        drawn = self._drawn(examples, seed)
        if not self._fresh and examples >= ENOUGH:
            for other in (seed + 1, seed + SEEDS):
                check_differ(drawn.inputs, self._drawn(examples, other).inputs, seed, other)
            self._fresh = True
        shape = (examples, drawn.inputs.shape[1])
        answers = _Answers(drawn, self.hops, self.loss)
        holds = {name: _spread(name, each, shape) for name, each in drawn.conditions.items()}
        chain = torch.zeros(shape, dtype=torch.long) if drawn.chain is None else drawn.chain
        classes = not drawn.targets.is_floating_point()
        role = self._numbers(drawn.roles, shape)
        check_places("the role of positions", role, shape, (0, len(self.table)))
        check_places("the chain of positions", chain, shape, (0, None))
        found = Examples(
            inputs=drawn.inputs,
            roles=Roles(role, chain),
            table=self.table,
            losses=SplitLoss(answers.terms, answers.total),
            chance=self.chance,
            read=answers.read,
            relations=dict(drawn.relations),
            conditions=holds,
            graph=self.graph,
            classes=classes,
            answered=answers.at,
            targets=drawn.targets if classes and drawn.targets.dim() == 2 else None,
        )
        check_form(found, examples)
        return found

    def _drawn(self, examples: int, seed: int) -> Drawn:
        """The checked return value of the user's function."""
        drawn = self.draw(examples, seed)
        if not isinstance(drawn, Drawn):
            raise CircuitError(
                f"the function that draws returned {type(drawn).__name__}; expected a Drawn"
            )
        _check_first_axis(drawn, examples)
        _check_kinds(drawn)
        self._check_same_form(drawn)
        return replace(
            drawn,
            targets=_whole(
                drawn.targets.long() if drawn.targets.dtype is torch.bool else drawn.targets
            ),
            roles=_whole(drawn.roles),
            chain=_whole(drawn.chain),
            answers_at=_whole(drawn.answers_at),
            hop=_whole(drawn.hop),
            relations={name: _whole(leads) for name, leads in drawn.relations.items()},
        )

    def _check_same_form(self, drawn: Drawn) -> None:
        """Raise CircuitError if examples differ in form from those of earlier calls."""
        form = {
            "inputs": f"{drawn.inputs.dtype} {list(drawn.inputs.shape[1:])}",
            "targets": f"{drawn.targets.dtype} {list(drawn.targets.shape[1:])}",
            "relations": ", ".join(sorted(drawn.relations)) or "none",
            "conditions": ", ".join(sorted(drawn.conditions)) or "none",
        }
        self._form = self._form or form
        for name, now in form.items():
            if now != self._form[name]:
                raise CircuitError(
                    f"the function that draws gave examples with {name} {self._form[name]}, and in "
                    f"a later call {now}; expected the same in all calls (pad short examples)"
                )

    def _numbers(self, roles: Sequence[str] | Tensor, shape: tuple[int, int]) -> Tensor:
        """The index of each position's role in the table."""
        if isinstance(roles, Tensor):
            return roles
        if len(roles) != shape[1]:
            raise CircuitError(f"{len(roles)} roles are named for {shape[1]} positions")
        found = [parse_role(name) for name in roles]
        if unknown := [role for role in found if role not in self.table]:
            known = ", ".join(map(str, self.table))
            raise CircuitError(
                f"a position has the role {str(unknown[0])!r}; the task's roles are {known}"
            )
        return torch.tensor([self.table.index(role) for role in found]).expand(shape)


def _whole(numbers: Any) -> Any:
    """Integer tensors converted to int64, as torch needs for indexing; anything else unchanged."""
    whole = isinstance(numbers, Tensor) and not numbers.is_floating_point()
    return numbers.long() if whole and numbers.dtype != torch.bool else numbers


class _Answers:
    """The positions and targets of the answers of some examples, and their losses."""

    def __init__(self, drawn: Drawn, hops: int, loss: Loss) -> None:
        examples, length = drawn.inputs.shape[:2]
        self.targets, self.hops, self.loss = drawn.targets, hops, loss
        count = drawn.targets.shape[1]
        at = _positions(drawn.answers_at, (examples, count), length)
        self.read = length - int(at.min())
        self.at = at - length
        # With several hops and no hop for each answer, the loss must return a value for each hop.
        hop = torch.zeros_like(at) if drawn.hop is None and hops == 1 else drawn.hop
        self.weights = None if hop is None else _weights(hop, hops, (examples, count))

    def terms(self, outputs: Tensor, some: slice) -> Tensor:
        """The loss of each answer of some examples (or of each answer and hop), from their outputs
        [*variant, some, position, width].
        """
        if outputs.dim() > 3:
            return torch.stack([self.terms(each, some) for each in outputs])
        at = self.at[some]
        try:
            found = self.loss(outputs_at(outputs, at), self.targets[some].to(outputs.device))
        except RuntimeError as error:
            if len(at) == len(self.at) or out_of_memory(error):
                raise
            raise CircuitError(
                f"the loss of {len(at)} of {len(self.at)} examples failed "
                f"({_first_line(error)}): an answer's loss must not depend on other examples"
            ) from error
        expected = [*at.shape, *([self.hops] if self.weights is None else [])]
        if not isinstance(found, Tensor) or list(found.shape) != expected:
            got = list(found.shape) if isinstance(found, Tensor) else type(found).__name__
            raise CircuitError(
                f"the loss is {got}; expected one for each answer"
                f"{' and hop' if self.weights is None else ''}, {expected}: "
                f"{self._advice(found, at.shape)}"
            )
        return found.float()

    def total(self, terms: Tensor) -> Float[Tensor, "*variant example hop"]:
        """The loss of each example and hop, from the terms of all examples."""
        if self.weights is None:
            return terms.mean(-2)
        weights = self.weights.to(terms.device)
        losses = torch.einsum("...ea,eah->...eh", terms, weights)
        # The mean over a hop's answers is a ratio of two sums over examples. To first order (the
        # delta method) it varies by the losses of an example less the mean, not by how many answers
        # of the hop the example has.
        lacking = 1 - weights.sum(1)
        return torch.where(lacking == 0, losses, losses + lacking * losses.mean(-2, keepdim=True))

    @staticmethod
    def _advice(found: object, answers: tuple[int, ...]) -> str:
        """Advice for a loss of a wrong shape, for the error message."""
        shape = tuple(found.shape) if isinstance(found, Tensor) else ()
        if shape == answers:
            return "give the hop of each answer: Drawn(hop=…)"
        if len(shape) == 3 and shape[:2] == answers:
            return f"pass OwnTask(…, hops={shape[2]}), and leave out Drawn(hop=…)"
        return "leave out the mean (reduction='none')"


def _weights(hop: Tensor, hops: int, shape: tuple[int, int]) -> Float[Tensor, "example answer hop"]:
    """Weights of the answers. With them, the mean over examples is, for each hop, the mean over the
    answers of that hop.
    """
    if tuple(hop.shape) != shape or hop.is_floating_point() or int(hop.min()) < 0:
        raise CircuitError(
            f"hop is {hop.dtype} {list(hop.shape)}; expected a whole number from 0 on for each "
            f"answer, {list(shape)}"
        )
    if int(hop.max()) >= hops:
        raise CircuitError(
            f"hop has numbers up to {int(hop.max())}, and the task has {hops} "
            f"hop{'s' * (hops > 1)}: pass OwnTask(…, hops={int(hop.max()) + 1})"
        )
    member = torch.nn.functional.one_hot(hop.long(), hops).float()
    count = member.sum((0, 1))
    if not bool((count > 0).all()):
        raise CircuitError(
            f"hop {int((count == 0).nonzero()[0])} (of 0 … {hops - 1}) has no answer in "
            f"{len(hop)} examples: draw more (`examples`; `discover` first looks at the share "
            "`sketch` of them), or draw every hop more often"
        )
    weights: Tensor = member * len(hop) / count
    return weights


def _positions(at: Sequence[int] | Tensor | None, shape: tuple[int, int], length: int) -> Tensor:
    """The position of every answer."""
    examples, count = shape
    if at is None:
        at = torch.arange(length - count, length)
    try:
        at = torch.as_tensor(at)
    except (TypeError, ValueError, RuntimeError) as error:
        raise CircuitError(
            f"answers_at is {_told(at)}; expected a list or tensor of positions"
        ) from error
    at = at.expand(shape) if at.dim() == 1 and len(at) == count else at
    if tuple(at.shape) != shape or at.is_floating_point() or at.dtype == torch.bool:
        raise CircuitError(
            f"answers_at is {at.dtype} {list(at.shape)}; expected whole numbers [{count}] or "
            f"[{examples}, {count}], as there are {count} targets in each example"
        )
    if not at.numel() or int(at.min()) < 0 or int(at.max()) >= length:
        span = f"positions {int(at.min())} … {int(at.max())}" if at.numel() else "nowhere"
        raise CircuitError(f"answers stand at {span}; expected positions 0 … {length - 1}")
    return at


def _check_first_axis(drawn: Drawn, examples: int) -> None:
    """As many inputs and targets as were asked for."""
    for name, axes in (("inputs", "example, position, …"), ("targets", "example, answer, …")):
        tensor = getattr(drawn, name)
        if not isinstance(tensor, Tensor) or tensor.dim() < 2 or len(tensor) != examples:
            got = list(tensor.shape) if isinstance(tensor, Tensor) else type(tensor).__name__
            raise CircuitError(
                f"{name} are {got}; expected a tensor [{axes}] of {examples} examples"
            )


def _check_kinds(drawn: Drawn) -> None:
    """Raise CircuitError if a field of `drawn` is not of the kind that it takes."""
    by_name = "a dict of tensors by their names"
    for name, fits, expected in (
        ("roles", isinstance(drawn.roles, Tensor) or _are_names(drawn.roles),
         "a list of names, one for each position, or a tensor of numbers in the task's table"),
        ("answers_at", not isinstance(drawn.answers_at, str), "a list or tensor of positions"),
        ("hop", drawn.hop is None or isinstance(drawn.hop, Tensor), "a tensor [example, answer]"),
        ("relations", _are_named(drawn.relations), by_name),
        ("conditions", _are_named(drawn.conditions), by_name),
    ):  # fmt: skip
        if not fits:
            got = getattr(drawn, name)
            raise CircuitError(f"Drawn's {name} is {_told(got)}; expected {expected}")


def _are_named(given: object) -> bool:
    return isinstance(given, Mapping) and _are_names([*given])


def _are_names(given: object) -> bool:
    if not isinstance(given, Sequence) or isinstance(given, str):
        return False
    return all(isinstance(name, str) for name in given)


def _first_line(error: Exception) -> str:
    """The first line of an error's message, at most 80 characters."""
    return str(error).partition("\n")[0][:80]


def _told(given: object) -> str:
    """The first line of an object's repr, at most 60 characters."""
    return repr(given).partition("\n")[0][:60]


def _spread(name: str, holds: Tensor, shape: tuple[int, int]) -> Tensor:
    """A condition [example, position]; one given by example holds at all of its positions."""
    if isinstance(holds, Tensor) and tuple(holds.shape) == shape[:1]:
        holds = holds[:, None].expand(shape)
    check_places(f"the condition {name!r}", holds, shape, (0, 2))
    return holds.bool()
