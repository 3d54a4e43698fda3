"""In how many of its rows a rule holds in the model itself.

A rule can be enough for the answers though the head does something else, for instance if the head
attends to one of several places that hold the same symbol.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from hopscope.circuits.adapters import CallbackModel
from hopscope.circuits.attention import chunks, patterns
from hopscope.circuits.components import Component, Estimate
from hopscope.circuits.engine import Adapter
from hopscope.circuits.examples import Examples
from hopscope.circuits.prescriber import Prescriber, prescriber_of

EVEN = 1e-4
"""A rule whose row differs from an even row by less says nothing of the row."""


@torch.no_grad()
def with_holds(
    adapter: Adapter | CallbackModel,
    examples: Examples,
    components: Sequence[Component],
    noticed: float,
) -> list[Component]:
    """The components with the share of their rows in which their rule holds: a mean over the rows
    of an example, and over the examples that have some. Tables have no rule.

    A rule holds in a row that has gone at least the share `noticed` of the way from an even row to
    the row of the rule (as overlaps: sums of the smaller of two rows). Rows whose rule is even do
    not count, as those that see one position only.
    """
    examples = examples.on(adapter.device)
    rules = {n: each for n, each in enumerate(components) if each.written == "rule"}
    found: dict[int, list[Tensor]] = {number: [] for number in rules}
    for chunk in chunks(adapter, examples):
        some = examples.part(chunk)
        every = prescriber_of(adapter, some)
        for layer, pattern in enumerate(patterns(adapter, some.inputs)):
            for number, each in rules.items():
                if each.layer == layer:
                    found[number].append(_holds(pattern, every.of(layer), each, noticed))
    shares = {number: torch.cat(parts).double().cpu().numpy() for number, parts in found.items()}
    holds = {number: Estimate.of_shares(its) for number, its in shares.items() if len(its)}
    return [
        each.model_copy(update={"holds": holds.get(number)})
        for number, each in enumerate(components)
    ]


def _holds(
    pattern: Float[Tensor, "batch head seq seq"],
    prescriber: Prescriber,
    component: Component,
    noticed: float,
) -> Float[Tensor, "example"]:
    """The share of rows in which the rule holds, in each example in which it applies to some."""
    size, length = pattern.shape[0], pattern.shape[-1]
    hold, rows = pattern.new_zeros(2, size, dtype=torch.float32)
    for (_, head), role in component.rows:
        spots = prescriber.spots(role, length)
        rule, applies = prescriber.drawn(component.target, spots)
        seen = prescriber.seen[spots.row]
        even = rule.minimum(seen / seen.sum(-1, keepdim=True)).sum(-1)
        applies = applies & (even < 1 - EVEN)
        own = rule.minimum(pattern[spots.example, head, spots.row].float()).sum(-1)
        held = (own >= even + noticed * (1 - even)) & applies
        hold.index_add_(0, spots.example, held.float())
        rows.index_add_(0, spots.example, applies.float())
    shares: Tensor = (hold / rows)[rows > 0]
    return shares
