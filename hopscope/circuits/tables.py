"""Tables: the mean attention of every head, by position and by token, over separate examples.

A circuit contains the tables that its rows follow. They are estimated once, on the examples of the
search, and not on the examples on which the circuit is measured.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from hopscope.circuits.ablation import Ablation
from hopscope.circuits.adapters import CallbackModel
from hopscope.circuits.attention import chunks, patterns
from hopscope.circuits.budget import FLOAT
from hopscope.circuits.circuit import Circuit
from hopscope.circuits.components import Table
from hopscope.circuits.engine import Adapter
from hopscope.circuits.examples import Examples, Questions, examples_of
from hopscope.circuits.pattern import TABLE_KINDS, Pattern, Source
from hopscope.circuits.prescriber import prescriber_of
from hopscope.circuits.progress import counted

MOST_TOKENS = 1024
"""Tables by token are estimated up to this many different tokens."""
TABLE_DIGITS = 4
"""The number of decimals of a share in a file."""
OTHERS = 256
"""The number of examples for tables that are not part of a circuit."""

Tables = Mapping[Source, Float[Tensor, "destination source"]]


def estimate_tables(adapter: Adapter | CallbackModel, examples: Examples) -> Tables:
    """The mean attention of every head over the examples, by position and (for tokens) by token. It
    is rounded as in a file, so that a circuit that is loaded equals the one that was measured.
    """
    examples = examples.on(adapter.device)
    tokens = _tokens(examples)
    means: dict[Source, Tensor] = {}
    slices = chunks(adapter, examples)
    prescriber = prescriber_of(adapter, examples)
    seeing = [prescriber.of(layer) for layer in range(adapter.layers)]
    if tokens is not None:
        size = int(tokens.max()) + 1
        count = {each: _pair_counts(tokens, slices, size, each.seen) for each in set(seeing)}
    for some in counted("mean attention", slices):
        for layer, attention in enumerate(patterns(adapter, examples.inputs[some])):
            for head in range(adapter.heads):
                at, own = (layer, head), attention[:, head].float()
                sums = {Source("position", head=at): own.sum(0) / len(examples)}
                if tokens is not None:
                    pairs = _pair_sums(own, tokens[some], size)
                    sums[Source("token", head=at)] = pairs / count[seeing[layer]]
                for source, its in sums.items():
                    means[source] = means[source].add_(its) if source in means else its
    for table in means.values():
        table.round_(decimals=TABLE_DIGITS)  # in place: the tables of a large model take gigabytes
    return means


def table_bytes(adapter: Adapter | CallbackModel, examples: Examples) -> int:
    """The bytes of the tables of all heads. A few examples have almost all tokens."""
    tokens = _tokens(examples)
    size = 0 if tokens is None else int(tokens.max()) + 1
    return FLOAT * adapter.layers * adapter.heads * (examples.length**2 + size**2)


def other_tables(adapter: Adapter | CallbackModel, task: Questions, seed: int = 0) -> Tables:
    """Tables for rows that follow a table which no circuit has. They are estimated on OTHERS other
    examples, so that they do not depend on the number of measured examples.
    """
    return estimate_tables(adapter, examples_of(task, OTHERS, seed, "tables"))


def _tokens(examples: Examples) -> Tensor | None:
    """The token at every position; None if inputs are not tokens (numbers from 0 on), or there are
    too many tokens.
    """
    inputs = examples.inputs
    whole = inputs.dim() == 2 and not inputs.is_floating_point() and int(inputs.min()) >= 0
    return inputs.long() if whole and int(inputs.max()) < MOST_TOKENS else None


def _pair_sums(
    numbers: Float[Tensor, "batch seq seq"], tokens: Int[Tensor, "batch seq"], size: int
) -> Float[Tensor, "token token"]:
    """Sums over all pairs of positions, by the tokens at the destination and at the source."""
    pairs = tokens[:, :, None] * size + tokens[:, None, :]
    sums = numbers.new_zeros(size * size).index_add_(0, pairs.flatten(), numbers.flatten())
    return sums.view(size, size)


def _pair_counts(
    tokens: Int[Tensor, "batch seq"], slices: list[slice], size: int, seen: Bool[Tensor, "seq seq"]
) -> Float[Tensor, "token token"]:
    """How many pairs of positions have these tokens, at a destination that sees the source (at
    least 1).
    """
    count = torch.zeros(size, size, device=tokens.device)
    for some in slices:
        count += _pair_sums(seen.float().expand(len(tokens[some]), -1, -1), tokens[some], size)
    return count.clamp_min_(1)


def tables_in(tables: Tables, state: Ablation) -> tuple[Table, ...]:
    """The tables that rows of a state follow, as data."""
    used = [source for row in state.live for source in state.target(row).every]
    found = []
    for source in dict.fromkeys(used):
        if source.head is not None and source.where in ("position", "token"):
            shares = [
                [round(share, TABLE_DIGITS) for share in row] for row in tables[source].tolist()
            ]
            found.append(Table(head=source.head, by=source.where, rows=tuple(map(tuple, shares))))
    return tuple(found)


def tables_of(circuit: Circuit) -> Tables:
    """The tables of a circuit, in the form of `Examples.tables`."""
    return {Source(its.by, head=its.head): torch.tensor(its.rows) for its in circuit.tables}


def with_tables(
    examples: Examples,
    changes: Iterable[Pattern],
    others: Callable[[], Tables],
    circuit: Circuit | None = None,
) -> Examples:
    """The examples with the tables that these changes follow: those of the circuit, and for other
    heads those of `others`, which is called only if needed.
    """
    tables = {} if circuit is None else dict(tables_of(circuit))
    asked = {source for change in changes for source in _followed(change)}
    if not asked:
        return examples
    if not asked <= tables.keys():
        tables = {**others(), **tables}
    return replace(examples, tables=tables)


def _followed(change: Pattern) -> set[Source]:
    """The tables that a change of a head follows."""
    targets = [change.rest, *(target for _, target in change.targets)]
    return {source for its in targets for source in its.every if source.where in TABLE_KINDS}
