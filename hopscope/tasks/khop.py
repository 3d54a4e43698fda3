"""k-hop induction over tokens (Sanford et al. 2024): every position asks for k hops."""

import torch
from jaxtyping import Int
from torch import Tensor

from hopscope.configs import Interface, KHop
from hopscope.facts import Role
from hopscope.tasks import counter
from hopscope.tasks.batch import Batch, Roles

NOWHERE = -1


class KHopSampler:
    """Draws sequences of uniform tokens, with the k answers of every position.

    Roles are those of the question that the last position (`query`) asks: `key d` is the earlier
    occurrence that hop d finds, `value d` the token after it; where several apply, the query,
    then the lowest hop wins. All other positions are `other`.
    """

    ragged = False

    def __init__(self, task: KHop, device: torch.device) -> None:
        self.task = task
        self.device = device
        hops = range(task.hops)
        of_hops = [role for hop in hops for role in (Role("key", hop), Role("value", hop))]
        self.roles = (*of_hops, Role("query"), Role("other"))

    def interface(self) -> Interface:
        task = self.task
        return Interface(
            tokens=True,
            inputs=task.alphabet,
            length=task.length,
            read=task.length,
            outputs=self.asked * (task.alphabet + 1),
        )

    @property
    def asked(self) -> int:
        return self.task.hops if self.task.curriculum else 1

    def batch(self, key: Int[Tensor, "rows"]) -> Batch:
        """One example per key."""
        tokens = counter.integers(key, self.task.length, self.task.alphabet)
        reached = landings(tokens, self.task.hops)
        answers = _answers(tokens, reached, none=self.task.alphabet)
        return Batch(tokens, answers[..., -self.asked :], self._roles(reached[:, -1]))

    def _roles(self, reached: Int[Tensor, "rows hop"]) -> Roles:
        rows = len(reached)
        query, other = len(self.roles) - 2, len(self.roles) - 1
        # One column more than positions: hops that lead nowhere write there.
        role = torch.full((rows, self.task.length + 1), other, device=self.device)
        for hop in reversed(range(self.task.hops)):
            value = reached[:, hop, None]
            missing = value == NOWHERE
            role.scatter_(1, value.masked_fill(missing, self.task.length), 2 * hop + 1)
            role.scatter_(1, (value - 1).masked_fill(missing, self.task.length), 2 * hop)
        role = role[:, :-1].to(torch.int16)
        role[:, -1] = query
        return Roles(role, torch.zeros_like(role))


def landings(tokens: Int[Tensor, "rows seq"], hops: int) -> Int[Tensor, "rows seq hop"]:
    """Where 1, 2, … hops from every position land, NOWHERE once a hop finds nothing."""
    place = torch.arange(tokens.shape[1], device=tokens.device)
    same = tokens[:, :, None] == tokens[:, None, :]
    earlier = same & (place[None, :] < place[:, None])
    found = torch.where(earlier, place, NOWHERE - 1).amax(-1)
    first = (found + 1).clamp_min(NOWHERE)
    reached = [first]
    for _ in range(hops - 1):
        here = reached[-1]
        onward = first.gather(1, here.clamp_min(0))
        reached.append(onward.masked_fill(here == NOWHERE, NOWHERE))
    return torch.stack(reached, dim=-1)


def _answers(tokens: Tensor, reached: Tensor, none: int) -> Int[Tensor, "rows seq hop"]:
    flat = reached.flatten(1)
    found = tokens.gather(1, flat.clamp_min(0)).masked_fill(flat == NOWHERE, none)
    return found.view_as(reached)
