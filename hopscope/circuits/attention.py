"""A model's attention: layer by layer as it is, and averaged in role coordinates.

Chains are shuffled in every example, so attention is averaged over what positions stand for: how
much of its attention a role gives to each role of its own chain, of the other chains together,
to itself, to the position before, and to where the relations of a task lead.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from hopscope.circuits import budget
from hopscope.circuits.adapters import AnyModel, CallbackModel, adapter_of
from hopscope.circuits.engine import Adapter, Brought, Heads, check_finite, streams
from hopscope.circuits.exam import Exam, Questions, exam_of
from hopscope.circuits.maps import RoleMaps
from hopscope.circuits.pattern import Source

EXAMPLES = 256
"""Examples over which a role map is averaged."""


def patterns(
    adapter: Adapter | CallbackModel, inputs: Tensor
) -> Iterator[Float[Tensor, "batch head seq seq"]]:
    """Every layer's attention, one layer after the other."""
    if isinstance(adapter, CallbackModel):
        yield from adapter.attention(inputs)
        return
    seen: list[Tensor] = []

    def attend(_: int, heads: Heads) -> Brought:
        seen.append(heads.weights())
        return seen[-1] @ heads.values

    with torch.no_grad():
        for _ in streams(adapter, adapter.embed(inputs), attend):
            yield seen.pop()


@torch.no_grad()
def role_maps(adapter: Adapter | CallbackModel, exam: Exam) -> RoleMaps:
    """Attention averaged in role coordinates over the exam's examples, a few at a time."""
    exam = exam.on(adapter.device)
    sums: list[Tensor] = []
    for chunk in budget.chunks(adapter.device, adapter.heads, len(exam), exam.length):
        some = _sums(adapter, exam, chunk)
        sums = [all_ + more for all_, more in zip(sums, some, strict=True)] if sums else some
    own, others, itself, previous, along, count, led = (part.cpu() for part in sums)
    relations = {
        name: (along[..., number] / led[:, number]).numpy()
        for number, name in enumerate(_relations(exam))
    }
    return RoleMaps(
        exam.table,
        own=(own / count[:, None]).numpy(),
        others=(others / count[:, None]).numpy(),
        itself=(itself / count).numpy(),
        previous=(previous / count).numpy(),
        along=relations,
    )


def _relations(exam: Exam) -> list[str]:
    return [str(Source("relation", None, name, times)) for name, times in exam.follows()]


def _sums(adapter: Adapter | CallbackModel, exam: Exam, some: slice) -> list[Tensor]:
    """Sums over some examples, layer by layer, and how often each role occurs there, and each
    relation leads somewhere from it.
    """
    number, chain = exam.roles.role[some].long(), exam.roles.chain[some]
    member = torch.nn.functional.one_hot(number, len(exam.table)).float()
    same = chain[:, :, None] == chain[:, None, :]
    leads = _leads(exam, some)
    layers = []
    for layer, pattern in enumerate(patterns(adapter, exam.inputs[some])):
        check_finite(pattern, f"the attention of layer {layer}")
        layers.append(_layer_sums(pattern.float(), member, same, leads))
    led = torch.einsum("mbq,bqr->rm", leads.any(-1).float(), member)
    return [*(torch.stack(part) for part in zip(*layers, strict=True)), member.sum((0, 1)), led]


def _leads(exam: Exam, some: slice) -> Bool[Tensor, "relation batch seq seq"]:
    """For every relation, followed once, twice, …, from which positions it leads to which."""
    shape = (len(exam.roles.role[some]), exam.length)
    example, row = (part.flatten() for part in torch.ones(shape).nonzero().unbind(1))
    example = example.to(exam.roles.role.device) + (some.start or 0)
    row = row.to(example.device)
    masks = [exam.sources(name, times, example, row) for name, times in exam.follows()]
    empty = torch.zeros(0, *shape, exam.length, dtype=torch.bool, device=example.device)
    return torch.stack([mask.view(*shape, -1) for mask in masks]) if masks else empty


def _layer_sums(
    pattern: Float[Tensor, "batch head seq seq"],
    member: Float[Tensor, "batch seq role"],
    same: Tensor,
    leads: Bool[Tensor, "relation batch seq seq"],
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Sums over examples and positions, for the heads of one layer."""
    everyone = torch.einsum("bhqk,bqr,bks->hrs", pattern, member, member)
    own = torch.einsum("bhqk,bqr,bks->hrs", pattern * same[:, None], member, member)
    itself = torch.einsum("bhqq,bqr->hr", pattern, member)
    back = pattern.diagonal(-1, -2, -1)
    previous = torch.einsum("bhq,bqr->hr", back, member[:, 1:])
    along = pattern.new_zeros(*itself.shape, len(leads))
    for number, mask in enumerate(leads):
        along[..., number] = torch.einsum("bhqk,bqk,bqr->hr", pattern, mask.float(), member)
    return own, everyone - own, itself, previous, along


def attention_maps(
    model: AnyModel, task: Questions, examples: int = EXAMPLES, seed: int = 0
) -> RoleMaps:
    """The role maps of a model on fresh examples of a task."""
    return role_maps(adapter_of(model), exam_of(task, examples, seed))
