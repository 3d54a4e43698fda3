"""Exports, read back by the tools they are for where those are installed."""

import warnings
from typing import Any

import pytest
import torch

from hopscope.circuits import (
    Ablation,
    Ablator,
    Circuit,
    Pattern,
    adapter_of,
    discover,
    examples_of,
    table_of,
)
from hopscope.circuits.export import (
    circuitsvis,
    edges,
    transformer_lens_weights,
)
from hopscope.circuits.pattern import UNIFORM
from hopscope.configs import KHop, Model
from hopscope.errors import CircuitError
from hopscope.models import Transformer
from hopscope.models.planted import Planted, planted

TASK = KHop(hops=2, length=9, alphabet=5)


@pytest.fixture(params=[True, False], ids=["causal", "both ways"])
def tokens(request: pytest.FixtureRequest) -> Transformer:
    config = Model(
        layers=2, heads=2, d_model=20, init="fan-in", input_std=1.0, causal=request.param
    )
    model = Transformer.seeded(config, TASK.interface(), 1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(generator=torch.Generator().manual_seed(len(name)))
    return model


def lens(model: Transformer) -> Any:
    """A TransformerLens model of the same shape, empty."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("transformer_lens")
        from transformer_lens.config import TransformerBridgeConfig
        from transformer_lens.model_bridge.sources.native import boot

    its, interface = model.config, model.interface
    config = TransformerBridgeConfig(
        architecture="TransformerLensNative", act_fn="gelu",
        n_layers=its.layers, n_heads=its.heads, d_model=its.d_model, d_head=its.head_width,
        d_mlp=its.mlp_width if its.mlp else None, attn_only=not its.mlp,
        attention_dir="causal" if its.causal else "bidirectional",
        normalization_type="LN" if its.norm == "layer" else None,
        n_ctx=interface.length, d_vocab_out=interface.outputs,
        d_vocab=interface.inputs if interface.tokens else 1,
    )  # fmt: skip
    return boot(config)


def test_transformer_lens_computes_the_same(tokens: Transformer) -> None:
    """By either names of its weights, and through an adapter, too."""
    examples, legacy, native = examples_of(TASK, 4), lens(tokens), lens(tokens)
    from transformer_lens.utilities.tl_checkpoint_conversion import convert_tl_checkpoint

    weights = transformer_lens_weights(tokens, native=False)
    legacy.load_state_dict(convert_tl_checkpoint(weights, legacy.cfg))
    native.load_state_dict(transformer_lens_weights(tokens))
    with torch.no_grad():
        for bridge in (legacy, native):
            assert torch.allclose(bridge(examples.inputs), tokens(examples.inputs), atol=1e-4)
    assert adapter_of(native).causal == tokens.config.causal
    several = [Ablation(), Ablation.of({(0, 1): Pattern(rest=UNIFORM)})]
    ours, theirs = (Ablator(adapter_of(its), examples).losses(several) for its in (tokens, native))
    assert torch.allclose(ours, theirs, atol=1e-4)


def test_vector_models_export_their_blocks(random_model: Transformer) -> None:
    bridge = lens(random_model)
    weights = transformer_lens_weights(random_model)
    assert "embed.weight" not in weights
    bridge.load_state_dict(weights, strict=False)
    inputs = torch.randn(3, random_model.interface.length, random_model.interface.inputs)
    with torch.no_grad():
        found = bridge.original_model(inputs_embeds=random_model.input(inputs))
        expected = random_model(inputs, read=random_model.interface.length)
    assert torch.allclose(found, expected, atol=1e-4)


@pytest.fixture(scope="module")
def wide(two_hops: Planted) -> Planted:
    """A planted model with a second head in every layer, which does nothing."""
    return planted(two_hops.task, heads=2)


@pytest.fixture(scope="module")
def circuit(wide: Planted) -> Circuit:
    return discover(wide.model, wide.task, examples=16)


IN_GRAPH = {
    # 0.0 key 0 → value 0, key 1 → value 1: it routes, and brings no answer
    "input->a0.h0<q>", "input->a0.h0<k>", "input->a0.h0<v>",
    # 1.0 value 0 → query: 0.0 writes there, by which the query finds it
    "input->a1.h0<q>", "input->a1.h0<k>", "input->a1.h0<v>", "a0.h0->a1.h0<k>",
    # 2.0 value 1 → query: the query, at which 1.0 writes, looks for what 0.0 writes there
    "input->a2.h0<q>", "input->a2.h0<k>", "input->a2.h0<v>", "a1.h0->a2.h0<q>", "a0.h0->a2.h0<k>",
    "input->logits", "a1.h0->logits", "a2.h0->logits",
}  # fmt: skip
"""Of 22 edges between these nodes."""


def test_every_edge_of_the_graph_is_one_of_the_circuit(wide: Planted, circuit: Circuit) -> None:
    found = edges(circuit, wide.model)
    inside = {name for name, node in found["nodes"].items() if node["in_graph"]}
    assert inside == {"input", "logits", "a0.h0", "a1.h0", "a2.h0"}
    assert {name for name, edge in found["edges"].items() if edge["in_graph"]} == IN_GRAPH
    assert found["edges"]["a1.h0->a2.h0<q>"]["score"] > 0
    assert found["edges"]["a1.h0->a2.h0<v>"] == {"score": 0.0, "in_graph": False}
    assert "a1.h0->a0.h0<q>" not in found["edges"]


def test_an_edge_of_which_the_circuit_says_nothing_is_left_out(
    wide: Planted, circuit: Circuit
) -> None:
    """1.0 goes by position: whether it finds its sources by what 0.0 writes is not known."""
    table = table_of("position", (1, 0))
    components = tuple(
        its.model_copy(update={"target": table}) if its.layer == 1 else its
        for its in circuit.components
    )
    found = edges(circuit.model_copy(update={"components": components}), wide.model)["edges"]
    assert not {"a0.h0->a1.h0<q>", "a0.h0->a1.h0<k>"} & found.keys()
    joined = {name for name, edge in found.items() if edge["in_graph"]}
    assert joined == IN_GRAPH - {"a0.h0->a1.h0<k>"}


def test_mlps_are_nodes_between_the_layers(random_model: Transformer, two_hops: Planted) -> None:
    circuit = discover(random_model, two_hops.task, examples=4, force=True)
    found = edges(circuit, random_model)
    assert {"a0.h0->m0", "m0->a1.h0<q>", "m2->logits"} <= found["edges"].keys()
    assert "m1->a1.h0<q>" not in found["edges"]


def test_an_example_for_circuitsvis(two_hops: Planted) -> None:
    """Positions have their roles, and tokens their numbers as well."""
    examples = examples_of(two_hops.task, 3)
    shown = circuitsvis(adapter_of(two_hops.model), examples, 2)
    expected = two_hops.model.attention(examples.inputs[2:3])[:, 0]
    assert torch.allclose(torch.tensor(shown["attention"]), expected, atol=1e-6)
    assert shown["tokens"][-1].startswith("query (")
    letters = examples_of(TASK, 2)
    model = Transformer(Model(layers=1, heads=1, d_model=8), TASK.interface())
    names = circuitsvis(adapter_of(model), letters, 1)["tokens"]
    assert [name.rpartition(" = ")[2] for name in names] == list(
        map(str, letters.inputs[1].tolist())
    )
    assert names[-1].startswith("query = ")


def test_what_is_not_exported_is_said(
    random_model: Transformer, two_hops: Planted, circuit: Circuit
) -> None:
    fleet = Transformer(random_model.config, random_model.interface, models=(0, 1))
    with pytest.raises(CircuitError, match="cannot export a fleet"):
        transformer_lens_weights(fleet)
    with pytest.raises(CircuitError, match="this circuit was found in "):
        edges(circuit, random_model)
    with pytest.raises(CircuitError, match="example is 3; expected 0 … 2"):
        circuitsvis(adapter_of(two_hops.model), examples_of(two_hops.task, 3), 3)
