"""Exports, read back by the tools they are for where those are installed."""

import warnings

import pytest
import torch

from hopscope.circuits import Ablation, Ablator, Mechanism, discover, exam_of, subject_of
from hopscope.circuits.export import (
    circuitsvis,
    edges,
    transformer_lens_config,
    transformer_lens_weights,
)
from hopscope.circuits.mechanism import UNIFORM
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


def lens(model: Transformer) -> object:
    """A TransformerLens model of the same shape, empty."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("transformer_lens")
        from transformer_lens.config import TransformerBridgeConfig
        from transformer_lens.model_bridge.sources.native import boot

    config = TransformerBridgeConfig(
        **transformer_lens_config(model), architecture="TransformerLensNative"
    )
    return boot(config)


@pytest.mark.slow
@pytest.mark.parametrize("names", ["native", "legacy"])
def test_transformer_lens_computes_the_same(tokens: Transformer, names: str) -> None:
    bridge = lens(tokens)
    weights = transformer_lens_weights(tokens, native=names == "native")
    if names == "legacy":
        from transformer_lens.utilities.tl_checkpoint_conversion import convert_tl_checkpoint

        weights = convert_tl_checkpoint(weights, bridge.cfg)  # type: ignore[attr-defined]
    bridge.load_state_dict(weights)  # type: ignore[attr-defined]
    inputs = exam_of(TASK, 4).inputs
    with torch.no_grad():
        assert torch.allclose(bridge(inputs), tokens(inputs), atol=1e-4)  # type: ignore[operator]


def test_transformer_lens_models_are_subjects(tokens: Transformer) -> None:
    bridge = lens(tokens)
    bridge.load_state_dict(transformer_lens_weights(tokens))  # type: ignore[attr-defined]
    exam = exam_of(TASK, 4)
    assert subject_of(bridge).causal == tokens.config.causal  # type: ignore[arg-type]
    several = [Ablation(), Ablation.of({(0, 1): Mechanism(rest=UNIFORM)})]
    ours = Ablator(subject_of(tokens), exam).losses(several)
    theirs = Ablator(subject_of(bridge), exam).losses(several)  # type: ignore[arg-type]
    assert torch.allclose(ours, theirs, atol=1e-4)


def test_vector_models_export_their_blocks(random_model: Transformer) -> None:
    bridge = lens(random_model)
    weights = transformer_lens_weights(random_model)
    assert "embed.weight" not in weights
    bridge.load_state_dict(weights, strict=False)  # type: ignore[attr-defined]
    inputs = torch.randn(3, random_model.interface.length, random_model.interface.inputs)
    native = bridge.original_model  # type: ignore[attr-defined]
    with torch.no_grad():
        found = native(inputs_embeds=random_model.input(inputs))
        expected = random_model(inputs, read=random_model.interface.length)
    assert torch.allclose(found, expected, atol=1e-4)


def test_a_fleet_is_not_exported(random_model: Transformer) -> None:
    fleet = Transformer(random_model.config, random_model.interface, models=(0, 1))
    with pytest.raises(CircuitError, match="a fleet was to be exported"):
        transformer_lens_weights(fleet)


def test_edges_join_the_heads_of_the_circuit(two_hops: Planted) -> None:
    model = planted(two_hops.task, heads=2)
    circuit = discover(model.model, model.task, examples=16)
    found = edges(circuit, model.model)
    inside = {name for name, node in found["nodes"].items() if node["in_graph"]}
    assert inside == {"input", "logits", "a0.h0", "a1.h0", "a2.h0"}
    joined = {name for name, edge in found["edges"].items() if edge["in_graph"]}
    assert {"input->a0.h0<q>", "a0.h0->a1.h0<k>", "a1.h0->a2.h0<q>", "a2.h0->logits"} <= joined
    assert not any("h1" in name for name in joined)
    assert found["edges"]["a1.h0->a2.h0<v>"]["score"] > 0
    assert "a1.h0->a0.h0<q>" not in found["edges"]


def test_mlps_are_nodes_between_the_layers(random_model: Transformer, two_hops: Planted) -> None:
    circuit = discover(random_model, two_hops.task, examples=4, force=True)
    found = edges(circuit, random_model)
    assert {"a0.h0->m0", "m0->a1.h0<q>", "m2->logits"} <= found["edges"].keys()
    assert "m1->a1.h0<q>" not in found["edges"]


def test_an_example_for_circuitsvis(two_hops: Planted) -> None:
    exam = exam_of(two_hops.task, 3)
    shown = circuitsvis(subject_of(two_hops.model), exam, 2)
    expected = two_hops.model.attention(exam.inputs[2:3])[:, 0]
    assert torch.allclose(torch.tensor(shown["attention"]), expected, atol=1e-6)
    assert shown["tokens"][-1].startswith("query (")
    with pytest.raises(CircuitError, match="example is 3; the exam has examples 0 … 2"):
        circuitsvis(subject_of(two_hops.model), exam, 3)
