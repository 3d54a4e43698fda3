"""Attention as a mechanism prescribes it, one position at a time: slow, and obvious."""

import torch
from torch import Tensor

from hopscope.circuits import Aim, Carried, Exam, Mechanism, Target, aim
from hopscope.circuits.ablation import Change
from hopscope.circuits.mechanism import BY_POSITION, ITSELF, PREVIOUS, UNIFORM
from hopscope.facts import Role

CHANGES: list[Change] = [
    Mechanism(rest=UNIFORM),
    Mechanism(rest=ITSELF),
    Mechanism(rest=PREVIOUS),
    Mechanism(rest=BY_POSITION),
    Mechanism(((Role("query"), aim("own", Role("value"))),)),
    Carried("mean"),
    Carried("resample"),
]


class Slow:
    """The examples of an exam as plain lists, and what a head attends to in the model."""

    def __init__(self, exam: Exam, own: Tensor, causal: bool) -> None:
        self.exam, self.own, self.causal, self.length = exam, own, causal, exam.length
        self.roles = [[exam.table[n] for n in each] for each in exam.roles.role.tolist()]
        self.chains = exam.roles.chain.tolist()

    def row(self, wanted: Aim, example: int, row: int) -> Tensor:
        """One row: the first of the aims that leads anywhere, or the position itself."""
        target, own = wanted.targets[0], self.own
        if target.where == "model":
            return own[example, row]
        if target.where == "position":
            return own[:, row].mean(0)
        if target.where == "place":
            places = [self.place(target, other, row) for other in range(len(own))]
            alike = [other for other, its in enumerate(places) if its == places[example]]
            return own[alike, row].mean(0)
        for each in wanted.each:
            if each.when and not self.exam.conditions[each.when][example, row]:
                continue
            weights = [0.0] * self.length
            for target, share in each.parts:
                last = row if self.causal else self.length - 1
                seen = [k for k in range(last + 1) if self.hits(target, example, row, k)]
                for key in seen:
                    weights[key] += share / len(seen)
            if sum(weights):
                return torch.tensor(weights) / sum(weights)
        return torch.eye(self.length)[row]

    def place(self, target: Target, example: int, row: int) -> int | None:
        """Where the target's role first stands in the chain of a row."""
        roles, chains = self.roles[example], self.chains[example]
        places = range(self.length)
        own = (k for k in places if roles[k] == target.role and chains[k] == chains[row])
        return next(own, None)

    def hits(self, target: Target, example: int, row: int, key: int) -> bool:
        if target.where == "relation":
            leads = self.exam.relations[target.relation][example]
            return key in followed(leads, row, target.times)
        own = self.chains[example][row] == self.chains[example][key]
        named = self.roles[example][key] == target.role
        return {
            "own": named and own,
            "all": named,
            "others": named and not own,
            "elsewhere": not (named and own),
            "previous": key == row - 1,
            "itself": key == row,
            "uniform": True,
        }[target.where]


def slow_attention(mechanism: Mechanism, exam: Exam, own: Tensor, causal: bool = True) -> Tensor:
    """What one head attends to [batch, seq, seq]; `own` is what it attends to in the model."""
    slow = Slow(exam, own, causal)
    return torch.stack([
        torch.stack([slow.row(mechanism.of(role), n, row) for row, role in enumerate(roles)])
        for n, roles in enumerate(slow.roles)
    ])  # fmt: skip


def followed(leads: Tensor, row: int, times: int) -> set[int]:
    """Where a relation of one example leads from a row: to a position, or to a set of them."""
    here = {row}
    for _ in range(times):
        if leads.ndim == 1:
            here = {int(leads[place]) for place in here} - {-1}
        else:
            here = {key for place in here for key in leads[place].nonzero()[:, 0].tolist()}
    return here
