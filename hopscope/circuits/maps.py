"""Attention in role coordinates: [layer, head, query role, key role].

Chains are shuffled in every example, so attention is averaged over what positions stand for: how
much of its attention a role gives to each role of its own chain, of the other chains together,
to itself, and to the position before.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from hopscope.circuits import budget
from hopscope.circuits.adapters import subject_of
from hopscope.circuits.budget import AT_ONCE, FLOAT
from hopscope.circuits.probe import Probe, Questions, probe_of
from hopscope.circuits.subject import Subject, Whole, check_finite
from hopscope.facts import Role

EXAMPLES = 256


@dataclass(frozen=True)
class RoleMaps:
    """Mean attention of every head between roles; NaN where a role never occurs."""

    roles: tuple[Role, ...]
    own: Float[Tensor, "layer head query key"]
    """To positions of the same chain (on the diagonal, to the position itself)."""
    others: Float[Tensor, "layer head query key"]
    """To positions of all other chains together."""
    itself: Float[Tensor, "layer head query"]
    previous: Float[Tensor, "layer head query"]
    """To the position right before, whatever it stands for."""

    def to_dict(self) -> dict[str, object]:
        """Plain data, for JSON."""
        names = ("own", "others", "itself", "previous")
        return {
            "roles": [str(r) for r in self.roles],
            **{n: getattr(self, n).tolist() for n in names},
        }


def patterns(
    subject: Subject | Whole, inputs: Tensor
) -> Iterator[Float[Tensor, "batch head seq seq"]]:
    """Every layer's attention, one layer after the other."""
    if isinstance(subject, Whole):
        yield from _handed_out(subject, inputs)
        return
    x = subject.enter(inputs)
    for layer in range(subject.layers):
        with torch.no_grad():
            pattern = subject.look(layer, x, x.shape[1], range(subject.heads))
            x = subject.write(layer, x, pattern @ subject.values(layer, x))
        yield pattern


@torch.no_grad()
def _handed_out(subject: Whole, inputs: Tensor) -> list[Float[Tensor, "batch head seq seq"]]:
    seen: dict[int, Tensor] = {}

    def note(layer: int, pattern: Tensor) -> Tensor:
        seen[layer] = pattern
        return pattern

    subject.outputs(inputs, note)
    return [seen[layer] for layer in range(subject.layers)]


@torch.no_grad()
def role_maps(subject: Subject | Whole, probe: Probe) -> RoleMaps:
    """Attention averaged in role coordinates over the probe's examples, a few at a time."""
    probe = probe.on(subject.device)
    each = FLOAT * AT_ONCE * subject.heads * probe.length**2
    size = max(1, budget.CALL_BYTES // each)
    sums: list[Tensor] = []
    for start in range(0, len(probe), size):
        some = _sums(subject, probe, slice(start, start + size))
        sums = [all_ + more for all_, more in zip(sums, some, strict=True)] if sums else some
    own, others, itself, previous, count = (part.cpu() for part in sums)
    rows = count[:, None]
    return RoleMaps(probe.table, own / rows, others / rows, itself / count, previous / count)


def _sums(subject: Subject | Whole, probe: Probe, some: slice) -> list[Tensor]:
    """Sums over some examples, layer by layer, and how often each role occurs there."""
    number, chain = probe.roles.role[some].long(), probe.roles.chain[some]
    member = torch.nn.functional.one_hot(number, len(probe.table)).float()
    same = chain[:, :, None] == chain[:, None, :]
    layers = []
    for layer, pattern in enumerate(patterns(subject, probe.inputs[some])):
        check_finite(pattern, f"the attention of layer {layer}")
        layers.append(_layer_means(pattern.float(), member, same))
    return [*(torch.stack(part) for part in zip(*layers, strict=True)), member.sum((0, 1))]


def _layer_means(
    pattern: Float[Tensor, "batch head seq seq"],
    member: Float[Tensor, "batch seq role"],
    same: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sums over examples and positions, for the heads of one layer."""
    everyone = torch.einsum("bhqk,bqr,bks->hrs", pattern, member, member)
    own = torch.einsum("bhqk,bqr,bks->hrs", pattern * same[:, None], member, member)
    itself = torch.einsum("bhqq,bqr->hr", pattern, member)
    back = pattern.diagonal(-1, -2, -1)
    previous = torch.einsum("bhq,bqr->hr", back, member[:, 1:])
    return own, everyone - own, itself, previous


def attention_maps(
    model: Subject | Whole | nn.Module, task: Questions, examples: int = EXAMPLES, seed: int = 0
) -> RoleMaps:
    """The role maps of a model on fresh examples of a task."""
    return role_maps(subject_of(model), probe_of(task, examples, seed))
