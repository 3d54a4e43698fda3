"""Circuits, attention and weights in the formats of other tools.

* edges: the JSON that EAP-IG and the MIB benchmark read (nodes, edges, scores)
* CircuitsVis: tokens and attention of one example, ready for its attention views
* TransformerLens: weights under its legacy names and under those of its native models
"""

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from einops import rearrange
from torch import Tensor

from hopscope.circuits.adapters import CallbackModel
from hopscope.circuits.attention import patterns
from hopscope.circuits.circuit import Circuit
from hopscope.circuits.engine import Adapter, weights_digest
from hopscope.circuits.examples import Examples, examples_of
from hopscope.circuits.pattern import Source
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.models import Transformer

INPUT, LOGITS = "input", "logits"
PARTS_OF_A_HEAD = ("q", "k", "v")
LETTERS = 26
"""This many chains are named by a letter, further chains by their number."""


def edges(circuit: Circuit, model: Transformer) -> dict[str, Any]:
    """The circuit as edges between components, each scored by what is lost without its ends.

    An edge is in the graph if a head of the circuit writes at a role where a later row of the
    circuit makes its queries (the row's destination), or its keys or values (the row's source). A
    component that only routes later heads has no edge to values or to the output. MLPs and the
    input, which discovery does not ablate, write at every position. If the circuit does not
    determine which role a row reads, or what its attention depends on (as for attention by
    position), an uncertain edge is omitted: it is listed neither as present nor as absent.
    """
    circuit.check_model(weights_digest(model))
    config, scores = model.config, _head_scores(circuit)
    layers = range(config.layers)
    heads = [f"a{layer}.h{head}" for layer in layers for head in range(config.heads)]
    mlps = [f"m{layer}" for layer in layers] if config.mlp else []
    flow = _flow(circuit, mlps)
    found: dict[str, dict[str, float | bool]] = {}
    for target in (*heads, *mlps, LOGITS):
        for source in (INPUT, *heads, *mlps):
            if _place(source) >= _place(target):
                continue
            score = min(scores.get(source, math.inf), scores.get(target, math.inf))
            for end in PARTS_OF_A_HEAD if ".h" in target else ("",):
                present = flow.takes(source, target, end)
                if present is not None:
                    name = f"{source}->{target}" + f"<{end}>" * bool(end)
                    value = score if present and math.isfinite(score) else 0.0
                    found[name] = {"score": value, "in_graph": present}
    shape = {"n_layers": config.layers, "n_heads": config.heads, "d_model": config.d_model}
    nodes = (INPUT, *heads, *mlps, LOGITS)
    inside = {INPUT, LOGITS, *mlps, *scores}
    return {
        "cfg": {**shape, "parallel_attn_mlp": False},
        "nodes": {name: {"in_graph": name in inside} for name in nodes},
        "edges": found,
    }


RoleSet = frozenset[Role | None]
"""Some roles; None stands for a role that the circuit does not name."""


@dataclass(frozen=True)
class _Flow:
    """The roles at which the components of a circuit write, and those at which they read."""

    every: RoleSet
    writes: defaultdict[str, RoleSet]
    """For each component, the roles at which it adds to the stream."""
    carries: defaultdict[str, RoleSet]
    """The same, without components that only route later heads."""
    reads: defaultdict[tuple[str, str], RoleSet]
    """For each component and input (q, k or v of a head; "" for others), the roles it reads."""

    def takes(self, source: str, target: str, end: str) -> bool | None:
        """True if the target reads what the source writes; None if the circuit does not determine
        that.
        """
        moved = self.carries if end == "v" or target == LOGITS else self.writes
        there, wanted = moved[source], self.reads[target, end]
        if not there or not wanted:
            return False
        if there & wanted or there >= self.every:
            return True
        return None if None in wanted else False


def _flow(circuit: Circuit, mlps: Sequence[str]) -> _Flow:
    every = frozenset(circuit.roles)
    writes = defaultdict[str, RoleSet](frozenset, dict.fromkeys((INPUT, *mlps), every))
    carries = writes.copy()
    reads = defaultdict[tuple[str, str], RoleSet](frozenset, {(name, ""): every for name in mlps})
    reads[LOGITS, ""] = _answers(circuit)
    for component in circuit.components:
        for (layer, head), role in component.rows:
            name = f"a{layer}.h{head}"
            writes[name] |= {role}
            if component.kind != "routes":
                carries[name] |= {role}
            for source in component.sources:
                for end, its in zip(PARTS_OF_A_HEAD, _ends(role, source, every), strict=True):
                    reads[name, end] |= its
    return _Flow(every, writes, carries, reads)


def _ends(destination: Role, source: Source, every: RoleSet) -> tuple[RoleSet, RoleSet, RoleSet]:
    """The roles at which a row's queries, keys and values are made."""
    unknown: RoleSet = frozenset([None])
    here: RoleSet = frozenset([destination])
    if source.where in ("own", "all", "others"):
        there: RoleSet = frozenset([source.role])
        return here, there, there
    if source.where == "uniform":  # it depends on no query and no key
        return frozenset(), frozenset(), every
    if source.where == "itself":
        return unknown, unknown, here
    return (here if source.relation else unknown), unknown, unknown


def _answers(circuit: Circuit) -> RoleSet:
    """The roles at which answers are read."""
    if circuit.task is None:
        return frozenset([None])
    examples = examples_of(circuit.task, 1)
    last = examples.roles.role[0, -examples.read_of(circuit.task.interface().read) :].tolist()
    return frozenset(examples.table[number] for number in last)


def _head_scores(circuit: Circuit) -> dict[str, float]:
    """The share of the gap that is lost without each head, with prescribed or computed attention,
    whichever is larger.
    """
    scores = defaultdict[str, float](float)
    for component in circuit.components:
        lost = [0.0, *(each.mean for each in (component.lost, component.lost_computed) if each)]
        for layer, head in component.at:
            name = f"a{layer}.h{head}"
            scores[name] = max(scores[name], *lost)
    return scores


def _place(node: str) -> float:
    """The depth of a component in the model; a layer's attention comes before its MLP."""
    if node in (INPUT, LOGITS):
        return -1.0 if node == INPUT else math.inf
    return float(node[1:].split(".", maxsplit=1)[0]) + (0.5 if node[0] == "m" else 0.0)


def circuitsvis(
    adapter: Adapter | CallbackModel, examples: Examples, example: int = 0
) -> dict[str, Any]:
    """Tokens and attention [layer, head, query, key] of one example. A token is named by its role,
    its chain (if there are several) and its number (if inputs are tokens): `query (a) = 3`.
    """
    if not 0 <= example < len(examples):
        raise CircuitError(f"example is {example}; expected 0 … {len(examples) - 1}")
    row = slice(example, example + 1)
    found = torch.stack([p[0] for p in patterns(adapter, examples.on(adapter.device).inputs[row])])
    roles, chains = examples.roles.role[example].tolist(), examples.roles.chain[example].tolist()
    names = [str(examples.table[role]) for role in roles]
    if int(examples.roles.chain.max()) > 0:
        letters = [chr(97 + chain) if chain < LETTERS else str(chain) for chain in chains]
        names = [f"{name} ({letter})" for name, letter in zip(names, letters, strict=True)]
    inputs = examples.inputs[example]
    if inputs.dim() == 1 and not inputs.is_floating_point():
        names = [f"{name} = {token}" for name, token in zip(names, inputs.tolist(), strict=True)]
    return {"tokens": names, "attention": found.float().tolist()}


def transformer_lens_weights(model: Transformer, native: bool = True) -> dict[str, Tensor]:
    """Weights for TransformerLens, with native names (version 4 and later) or the legacy ones.

    Vector tasks have no vocabulary, so there is no token table: pass `model.input(vectors)` as
    embeddings.
    """
    if model.fleet:
        raise CircuitError("cannot export a fleet; export single members: model.member(i)")
    weights = _native(model)
    if native:
        return weights
    return dict(_legacy_weight(name, its, model.config.heads) for name, its in weights.items())


NATIVE = (
    ("input.token", "embed.weight"), ("input.position", "pos_embed.weight"),
    ("attention_norm.", "ln1."), ("mlp_norm.", "ln2."), (r"^norm\.", "ln_final."),
    ("attention.query", "attn.q"), ("attention.key", "attn.k"), ("attention.value", "attn.v"),
    ("attention.out", "attn.o"), ("mlp.up", "mlp.in"), ("mlp.down", "mlp.out"),
    (r"^head\.", "unembed."),
)  # fmt: skip
"""Patterns in our names of weights, each with its replacement in TransformerLens's names."""

PER_HEAD = {
    "weight": "(head d_head) d_model -> head d_model d_head",
    "bias": "(head d_head) -> head d_head",
}


def _native(model: Transformer) -> dict[str, Tensor]:
    found = {}
    for name, tensor in model.state_dict().items():
        for ours, theirs in NATIVE:
            name = re.sub(ours, theirs, name)  # noqa: PLW2901
        if not name.startswith("input."):
            found[name] = tensor.detach().clone()
    for layer in range(model.config.layers):
        # Our models have no key bias: softmax is invariant to it.
        query = found[f"blocks.{layer}.attn.q.bias"]
        found[f"blocks.{layer}.attn.k.bias"] = torch.zeros_like(query)
    if not model.interface.tokens:
        # Vector tasks carry their positions in the input.
        size = (model.interface.length, model.config.d_model)
        found["pos_embed.weight"] = model.head.weight.new_zeros(size)
    return found


def _legacy_weight(name: str, tensor: Tensor, heads: int) -> tuple[str, Tensor]:
    """A weight's legacy name and shape: with a head axis, for multiplication x @ W."""
    part, _, kind = name.rpartition(".")
    place, _, what = part.rpartition(".")
    letter = {"weight": "W", "bias": "b"}[kind]
    if what in ("q", "k", "v"):
        return f"{place}.{letter}_{what.upper()}", rearrange(tensor, PER_HEAD[kind], head=heads)
    if what == "o":
        split = "d_model (head d_head) -> head d_head d_model"
        shaped = rearrange(tensor, split, head=heads) if kind == "weight" else tensor
        return f"{place}.{letter}_O", shaped
    if what.startswith("ln"):
        return f"{part}.{letter.lower()}", tensor
    if what in ("embed", "pos_embed"):
        return f"{part}.W_{'E' if what == 'embed' else 'pos'}", tensor
    short = "U" if what == "unembed" else what
    shaped = tensor.T if kind == "weight" else tensor
    return f"{part if short == 'U' else place}.{letter}_{short}", shaped
