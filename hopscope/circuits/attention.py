"""A model's attention: layer by layer for single examples, and averaged between roles.

Chains are shuffled in every example, so attention is averaged over the positions of a role, not
over fixed positions. Role maps give how much of its attention a role pays to each role of its own
chain, to each role in the other chains together, to itself, to the position before, and to where
the relations of a task lead.
"""

from collections.abc import Callable, Iterator

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from hopscope.circuits import budget
from hopscope.circuits.ablation import Ablation, replacement
from hopscope.circuits.adapters import AnyModel, CallbackModel, adapter_of, replaceable
from hopscope.circuits.engine import (
    Adapter,
    Brought,
    Heads,
    Recorded,
    Weights,
    check_finite,
    record,
    streams,
)
from hopscope.circuits.examples import Examples, Questions, examples_of
from hopscope.circuits.maps import RoleMaps
from hopscope.circuits.pattern import Source
from hopscope.circuits.prescriber import prescriber_of
from hopscope.circuits.progress import counted

EXAMPLES = 256
"""Examples over which a role map is averaged."""


def chunks(adapter: Adapter | CallbackModel, examples: Examples) -> list[slice]:
    """Slices of the examples that fit in memory."""
    width = 0
    if not isinstance(adapter, CallbackModel):
        width = adapter.embed(examples.inputs[:1].to(adapter.device)).shape[-1]
    size = budget.at_once(adapter.device, adapter.heads, examples.length, width)
    return [slice(start, start + size) for start in range(0, len(examples), size)]


def patterns(
    adapter: Adapter | CallbackModel, inputs: Tensor
) -> Iterator[Float[Tensor, "batch head seq seq"]]:
    """Every layer's attention, one layer after the other."""
    yield from (weights for weights, _ in with_values(adapter, inputs))


def with_values(
    adapter: Adapter | CallbackModel, inputs: Tensor
) -> Iterator[tuple[Weights, Brought | None]]:
    """Every layer's attention and values (None for a CallbackModel)."""
    inputs = inputs.to(adapter.device)
    if isinstance(adapter, CallbackModel):
        adapter.check(inputs)
        yield from ((weights, None) for weights in adapter.attention(inputs))
        return
    seen: list[tuple[Weights, Brought]] = []

    def attend(_: int, heads: Heads) -> Brought:
        weights = heads.weights()
        seen.append((weights, heads.values))
        return weights @ heads.values

    with torch.no_grad():
        for _ in streams(adapter, adapter.embed(inputs), attend):
            yield seen.pop()


@torch.no_grad()
def role_maps(adapter: Adapter | CallbackModel, examples: Examples) -> RoleMaps:
    """Attention between roles, averaged over the examples (computed a few at a time)."""
    examples = examples.on(adapter.device)
    sums: list[Tensor] = []
    for chunk in counted("attention", chunks(adapter, examples)):
        some = _sums(adapter, examples, chunk)
        sums = [all_ + more for all_, more in zip(sums, some, strict=True)] if sums else some
    own, others, itself, previous, along, count, behind, led = (part.cpu() for part in sums)
    follows = examples.follows()
    names = [str(Source("relation", None, name, times)) for name, times in follows]
    relations = {
        name: (along[..., number] / led[:, number]).numpy() for number, name in enumerate(names)
    }
    return RoleMaps(
        examples.table,
        own=(own / count[:, None]).numpy(),
        others=(others / count[:, None]).numpy(),
        itself=(itself / count).numpy(),
        previous=(previous / behind).numpy(),
        along=relations,
    )


def _sums(adapter: Adapter | CallbackModel, examples: Examples, some: slice) -> list[Tensor]:
    """Sums of attention over some examples, layer by layer. The last three tensors count how often
    each role occurs, how often a position stands before it, and how often each relation leads
    somewhere from each role.
    """
    number, chain = examples.roles.role[some].long(), examples.roles.chain[some]
    member = torch.nn.functional.one_hot(number, len(examples.table)).float()
    same = chain[:, :, None] == chain[:, None, :]
    leads = _leads(examples, some)
    layers = []
    for layer, pattern in enumerate(patterns(adapter, examples.inputs[some])):
        layers.append(_layer_sums(pattern.float(), member, same, leads))
        # A number that is not finite makes its sum so, and sums are few.
        check_finite(layers[-1][0], f"the attention of layer {layer}")
    led = torch.einsum("mbq,bqr->rm", leads.any(-1).float(), member)
    sums = (torch.stack(part) for part in zip(*layers, strict=True))
    return [*sums, member.sum((0, 1)), member[:, 1:].sum((0, 1)), led]


def _leads(examples: Examples, some: slice) -> Bool[Tensor, "relation batch seq seq"]:
    """For every relation, followed once, twice, …: True where it leads from query to key."""
    masks = [examples.masks(name, times, some) for name, times in examples.follows()]
    role = examples.roles.role[some]
    empty = torch.zeros(0, *role.shape, examples.length, dtype=torch.bool, device=role.device)
    return torch.stack(masks) if masks else empty


def _layer_sums(
    pattern: Float[Tensor, "batch head seq seq"],
    member: Float[Tensor, "batch seq role"],
    same: Tensor,
    leads: Bool[Tensor, "relation batch seq seq"],
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Sums over examples and positions, for the heads of one layer."""
    everyone = torch.einsum("bhqk,bqr,bks->hrs", pattern, member, member)
    own = everyone
    if not bool(same.all()):
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
    return role_maps(adapter_of(model), examples_of(task, examples, seed, "attention"))


AS_IT_IS = Ablation()
"""Nothing is changed."""


@torch.no_grad()
def attended(
    model: AnyModel,
    examples: Examples,
    ablation: Ablation = AS_IT_IS,
    ask: Callable[[], None] = lambda: None,
) -> Recorded:
    """The recorded pass over the examples with heads changed. `ask` is called before each layer; an
    exception that it raises ends the pass.
    """
    adapter = replaceable(model)
    examples = examples.on(adapter.device)
    prescriber = prescriber_of(adapter, examples)
    usual = record(adapter, examples.inputs).brought if ablation.carries else []

    def look(layer: int, heads: Heads) -> tuple[Weights, Brought]:
        ask()
        patterns = ablation.patterns(layer)
        weights = prescriber.of(layer).replaced(patterns, heads.weights())
        brought = weights @ heads.values
        for head, pattern in patterns.items():
            for instead in pattern.carried:
                rows = prescriber.carried(pattern, instead, examples.length)
                its = replacement(instead, usual[layer][:, head])
                brought[:, head] = torch.where(rows, its, brought[:, head])
        return weights, brought

    return record(adapter, examples.inputs, look)
