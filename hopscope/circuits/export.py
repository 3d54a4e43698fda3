"""Circuits, attention and weights in the formats of other tools.

* edges: the JSON that EAP-IG and the MIB benchmark read (nodes, edges, scores)
* CircuitsVis: tokens and attention of one example, ready for its attention views
* TransformerLens: weights under its legacy names and under those of its native models
"""

import math
from typing import Any

import torch
from einops import rearrange
from torch import Tensor

from hopscope.circuits.circuit import Circuit, Part
from hopscope.circuits.maps import patterns
from hopscope.circuits.probe import Probe
from hopscope.circuits.subject import Subject, Whole
from hopscope.errors import CircuitError
from hopscope.models import Transformer

INPUT, LOGITS = "input", "logits"
PARTS_OF_A_HEAD = ("q", "k", "v")


def edges(circuit: Circuit, model: Transformer) -> dict[str, Any]:
    """The circuit as edges between components, scored by what removing their ends costs.

    A node is in the circuit if its head has a part in it; input, output and MLPs, which
    discovery leaves alone, always are. These formats name no roles, so an edge says less than
    a path.
    """
    config, scores = model.config, _head_scores(circuit)
    layers = range(config.layers)
    heads = [f"a{layer}.h{head}" for layer in layers for head in range(config.heads)]
    mlps = [f"m{layer}" for layer in layers] if config.mlp else []
    inside = {INPUT, LOGITS, *mlps, *scores}
    found: dict[str, dict[str, float | bool]] = {}
    for target in (*heads, *mlps, LOGITS):
        for source in (INPUT, *heads, *mlps):
            if _place(source) >= _place(target):
                continue
            score = min(scores.get(source, math.inf), scores.get(target, math.inf))
            present = {source, target} <= inside
            value = score if present and math.isfinite(score) else 0.0
            ends = [f"{target}<{part}>" for part in PARTS_OF_A_HEAD] if ".h" in target else [target]
            found |= {f"{source}->{end}": {"score": value, "in_graph": present} for end in ends}
    shape = {"n_layers": config.layers, "n_heads": config.heads, "d_model": config.d_model}
    nodes = (INPUT, *heads, *mlps, LOGITS)
    return {
        "cfg": {**shape, "parallel_attn_mlp": False},
        "nodes": {name: {"in_graph": name in inside} for name in nodes},
        "edges": found,
    }


def _head_scores(circuit: Circuit) -> dict[str, float]:
    base = circuit.losses.mean("ideal")
    scores: dict[str, float] = {}
    for part in circuit.parts:
        name = f"a{part.layer}.h{part.head}"
        scores[name] = max(scores.get(name, 0.0), _worth(part, base))
    return scores


def _worth(part: Part, base: float) -> float:
    return max(0.0, max(part.cost.mean, part.alone_cost.mean) - base)


def _place(node: str) -> float:
    """Where in the model a component stands: attention before the MLP of its layer."""
    if node in (INPUT, LOGITS):
        return -1 if node == INPUT else math.inf
    return 2 * int(node[1:].split(".", maxsplit=1)[0]) + (node[0] == "m")


def circuitsvis(subject: Subject | Whole, probe: Probe, example: int = 0) -> dict[str, Any]:
    """Tokens (named by their roles) and attention [layer, head, query, key] of one example."""
    if not 0 <= example < len(probe):
        raise CircuitError(f"example is {example}; the probe has examples 0 … {len(probe) - 1}")
    row = slice(example, example + 1)
    found = torch.stack([p[0] for p in patterns(subject, probe.inputs[row])])
    roles, chains = probe.roles.role[example].tolist(), probe.roles.chain[example].tolist()
    names = [f"{probe.table[r]} ({chr(97 + c)})" for r, c in zip(roles, chains, strict=True)]
    return {"tokens": names, "attention": found.float().tolist()}


def transformer_lens_weights(model: Transformer, native: bool = True) -> dict[str, Tensor]:
    """Weights for TransformerLens: native names (4 and later) or the legacy ones.

    Vector tasks have no vocabulary: feed `model.input(vectors)` as embeddings; the token table is
    left out. Native models have no bias in the head; it is folded into the last norm's shift.
    """
    if model.fleet:
        raise CircuitError("a fleet was to be exported; export its members: model.member(i)")
    weights = _native(model)
    return weights if native else _legacy(model, weights)


def transformer_lens_config(model: Transformer) -> dict[str, Any]:
    """The settings with which TransformerLens builds a model of this shape."""
    config, interface = model.config, model.interface
    return {
        "n_layers": config.layers,
        "n_heads": config.heads,
        "d_model": config.d_model,
        "d_head": config.head_width,
        "d_mlp": config.mlp_width if config.mlp else None,
        "attn_only": not config.mlp,
        "act_fn": "gelu",
        "n_ctx": interface.length,
        "d_vocab": interface.inputs if interface.tokens else 1,
        "d_vocab_out": interface.outputs,
        "normalization_type": "LN" if config.norm == "layer" else None,
    }


def _native(model: Transformer) -> dict[str, Tensor]:
    own = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    config = model.config
    found = {"pos.weight": own.get("input.position", _no_positions(model))}
    if model.interface.tokens:
        found["tok_embed.weight"] = own["input.token"]
    for layer in range(config.layers):
        found |= _native_layer(own, layer, config.mlp, config.norm == "layer")
    head, bias = own["head.weight"], own["head.bias"]
    if config.norm == "layer":
        found["ln_out.weight"] = own["norm.weight"]
        found["ln_out.bias"] = own["norm.bias"] + _folded(head, bias)
    elif bias.any():
        raise CircuitError("without a norm there is nowhere to fold the head's bias into")
    found["head.weight"] = head
    return found


def _native_layer(own: dict[str, Tensor], layer: int, mlp: bool, norm: bool) -> dict[str, Tensor]:
    ours, theirs = f"blocks.{layer}", f"layers.{layer}"
    names = {"attention.query": "attn.q", "attention.value": "attn.v", "attention.out": "attn.o"}
    names |= {"attention_norm": "ln1"} if norm else {}
    names |= {"mlp.up": "mlp.fc_in", "mlp.down": "mlp.fc_out"} if mlp else {}
    names |= {"mlp_norm": "ln2"} if mlp and norm else {}
    found = {
        f"{theirs}.{new}.{kind}": own[f"{ours}.{old}.{kind}"]
        for old, new in names.items()
        for kind in ("weight", "bias")
    }
    key = own[f"{ours}.attention.key.weight"]
    found[f"{theirs}.attn.k.weight"] = key
    found[f"{theirs}.attn.k.bias"] = key.new_zeros(len(key))
    return found


def _no_positions(model: Transformer) -> Tensor:
    """Vector tasks carry their positions in the input."""
    weight = model.head.weight
    return weight.new_zeros(model.interface.length, model.config.d_model)


def _folded(head: Tensor, bias: Tensor) -> Tensor:
    """A shift before the head that adds its bias after it."""
    shift = torch.linalg.lstsq(head.double(), bias.double()[:, None]).solution[:, 0]
    if not torch.allclose(head.double() @ shift, bias.double(), atol=1e-6):
        raise CircuitError("the head's bias cannot be folded: it has more outputs than d_model")
    folded: Tensor = shift.to(bias.dtype)
    return folded


def _legacy(model: Transformer, native: dict[str, Tensor]) -> dict[str, Tensor]:
    heads = model.config.heads
    found = {"pos_embed.W_pos": native["pos.weight"], "unembed.W_U": native["head.weight"].T}
    found["unembed.b_U"] = model.head.weight.new_zeros(model.interface.outputs)
    if "tok_embed.weight" in native:
        found["embed.W_E"] = native["tok_embed.weight"]
    for new, old in (("ln_final.w", "ln_out.weight"), ("ln_final.b", "ln_out.bias")):
        if old in native:
            found[new] = native[old]
    for layer in range(model.config.layers):
        ours, theirs = f"layers.{layer}", f"blocks.{layer}"
        for name in ("q", "k", "v"):
            weight, bias = native[f"{ours}.attn.{name}.weight"], native[f"{ours}.attn.{name}.bias"]
            found[f"{theirs}.attn.W_{name.upper()}"] = rearrange(
                weight, "(head d_head) d_model -> head d_model d_head", head=heads
            )
            found[f"{theirs}.attn.b_{name.upper()}"] = rearrange(
                bias, "(head d_head) -> head d_head", head=heads
            )
        found[f"{theirs}.attn.W_O"] = rearrange(
            native[f"{ours}.attn.o.weight"],
            "d_model (head d_head) -> head d_head d_model",
            head=heads,
        )
        found[f"{theirs}.attn.b_O"] = native[f"{ours}.attn.o.bias"]
        found |= _legacy_rest(native, ours, theirs)
    return found


def _legacy_rest(native: dict[str, Tensor], ours: str, theirs: str) -> dict[str, Tensor]:
    """Norms and MLP of a layer, where it has them."""
    names = {
        "ln1.weight": "ln1.w", "ln1.bias": "ln1.b", "ln2.weight": "ln2.w", "ln2.bias": "ln2.b",
        "mlp.fc_in.weight": "mlp.W_in", "mlp.fc_in.bias": "mlp.b_in",
        "mlp.fc_out.weight": "mlp.W_out", "mlp.fc_out.bias": "mlp.b_out",
    }  # fmt: skip
    found = {}
    for old, new in names.items():
        if f"{ours}.{old}" in native:
            tensor = native[f"{ours}.{old}"]
            found[f"{theirs}.{new}"] = tensor.T if new.endswith(("W_in", "W_out")) else tensor
    return found
