"""The circuits of the gallery, measured by hooks on the plain model, without the search's code.

Run as a program, it prints for each model what its file says and what is measured here.
"""

import json
from importlib.resources import files
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hopscope
from hopscope.configs.discovery import Discovery
from hopscope.facts import Role
from hopscope.tasks import dataset

NAMES = sorted(
    entry.name
    for entry in (files("hopscope") / "gallery").iterdir()
    if (entry / "circuit.json").is_file()
)


class ByHand:
    """A model of the gallery and the fresh examples on which its circuit was measured."""

    def __init__(self, name: str) -> None:
        run = hopscope.load(f"gallery/{name}")
        self.model = run.model.eval()
        self.circuit = json.loads(
            (files("hopscope") / "gallery" / name / "circuit.json").read_text()
        )
        chosen, task = self.circuit["switches"], run.task
        count = chosen["batches"] * int(chosen["settings"]["examples"] * Discovery.batch_share)
        self.batch = dataset(task, chosen["seed"] + 1, count, "validation")
        self.table, self.hops = task.roles(), task.hops
        self.role, self.chain = self.batch.roles.role, self.batch.roles.chain
        length = self.role.shape[1]
        self.seen = torch.ones(length, length).bool().tril()

    def losses(self, computed: bool, kept: bool = True) -> list[float]:
        """The squared error of each hop if every head does what the circuit says. `computed`: rows
        that do something keep the attention that the head computes; else it is written down. Not
        `kept`: no row does anything.
        """
        hooks = []
        for layer, block in enumerate(self.model.blocks):
            heads = [its["mechanism"] for its in self.circuit["heads"] if its["layer"] == layer]
            if not kept:
                heads = [{**its, "aims": []} for its in heads]
            hooks.append(block.attention.register_forward_hook(self._hook(heads, computed)))
        with torch.no_grad():
            out = self.model(self.batch.inputs)
        for hook in hooks:
            hook.remove()
        wrong = (out.view_as(self.batch.targets) - self.batch.targets).square()
        return wrong.mean((0, 1, 3)).tolist()

    def _hook(self, heads: list[dict[str, Any]], computed: bool) -> Any:
        def replaced(attention: nn.Module, given: tuple[Tensor, int], _: Tensor) -> Tensor:
            x, read = given
            query, key, value = (
                part(x).unflatten(-1, (attention.heads, -1)).transpose(1, 2)
                for part in (attention.query, attention.key, attention.value)
            )
            scores = (query @ key.mT * attention.scale).masked_fill(~self.seen, -torch.inf)
            own = scores.softmax(-1)
            pattern = torch.stack(
                [self._pattern(its, own[:, n], computed) for n, its in enumerate(heads)], 1
            )
            mixed = (pattern @ value).transpose(1, 2).flatten(2)
            return attention.out(mixed)[:, -read:]

        return replaced

    def _pattern(self, mechanism: dict[str, Any], own: Tensor, computed: bool) -> Tensor:
        pattern = self._rows(mechanism["rest"], own)
        for role, aim in mechanism["aims"]:
            mine = self.role == self.table.index(Role(**role))
            pattern = torch.where(
                mine[..., None], own if computed else self._rows(aim, own), pattern
            )
        return pattern

    def _rows(self, aim: dict[str, Any], own: Tensor) -> Tensor:
        """Every row under one aim: the weighted targets, each evenly over what can be seen."""
        examples, length = self.role.shape
        itself = torch.eye(length).expand(examples, -1, -1)
        total = torch.zeros(examples, length, length)
        for target, weight in aim["parts"]:
            if target["where"] == "position":
                return own.mean(0, keepdim=True).expand(examples, -1, -1)
            if target["where"] == "place":
                return self._by_place(Role(**target["role"]), own)
            at = self._target(target, itself) & self.seen
            total += weight * at / at.sum(-1, keepdim=True).clamp_min(1)
        found = total.sum(-1, keepdim=True)
        return torch.where(found > 0, total / found.clamp_min(1e-9), itself)

    def _target(self, target: dict[str, Any], itself: Tensor) -> Tensor:
        where = target["where"]
        if where == "uniform":
            return torch.ones_like(itself).bool()
        if where == "itself":
            return itself.bool()
        if where == "previous":
            return itself.roll(1, 1).bool().tril()
        there = (self.role == self.table.index(Role(**target["role"])))[:, None]
        same = self.chain[:, None] == self.chain[:, :, None]
        return {"own": there & same, "all": there.expand_as(same), "others": there & ~same}[where]

    def _by_place(self, role: Role, own: Tensor) -> Tensor:
        """Rows at one position whose chain has the role at the same place share their mean."""
        there = self.role == self.table.index(role)
        found = own.clone()
        for position in range(own.shape[1]):
            place = (there & (self.chain == self.chain[:, position, None])).byte().argmax(-1)
            for each in place.unique():
                found[place == each, position] = own[place == each, position].mean(0)
        return found


SLOW = "transformer-d-fan-in"


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n == SLOW else n for n in NAMES]
)
def test_a_circuit_of_the_gallery_is_what_its_file_says(name: str) -> None:
    by_hand = ByHand(name)
    said = by_hand.circuit["losses"]
    assert by_hand.losses(computed=False) == pytest.approx(said["ideal"], abs=1e-4)
    assert by_hand.losses(computed=True) == pytest.approx(said["own"], abs=1e-4)
    assert by_hand.losses(computed=False, kept=False) == pytest.approx(said["ablated"], abs=1e-4)


if __name__ == "__main__":
    for name in NAMES:
        by_hand = ByHand(name)
        losses = by_hand.circuit["losses"]
        for state, computed in (("ideal", False), ("own", True)):
            said, found = (sum(its) / len(its) for its in (losses[state], by_hand.losses(computed)))
            print(f"{name:22} {state:6} file {said:.6f}  by hand {found:.6f}")
