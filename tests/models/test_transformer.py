"""The transformer against one written position by position in NumPy."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from hopscope.configs import Interface, Model
from hopscope.errors import ModelError
from hopscope.models import Transformer

VECTORS = Interface(tokens=False, inputs=6, length=7, read=3, outputs=5)
TOKENS = Interface(tokens=True, inputs=6, length=7, read=7, outputs=5)

models = st.builds(
    Model,
    layers=st.integers(1, 3),
    heads=st.sampled_from([1, 2, 4]),
    d_model=st.just(8),
    d_head=st.sampled_from([None, 3]),
    mlp=st.booleans(),
    causal=st.booleans(),
    norm=st.sampled_from(["layer", "none"]),
    init=st.just("fan-in"),
)


def slow_forward(model: Transformer, inputs: np.ndarray) -> np.ndarray:
    """One sequence, position by position and head by head."""
    w = {name: p.detach().double().numpy() for name, p in model.named_parameters()}
    config = model.config
    if model.interface.tokens:
        stream = [w["input.token"][t] + w["input.position"][p] for p, t in enumerate(inputs)]
    else:
        stream = [w["input.weight"] @ x + w["input.bias"] for x in inputs]
    for layer in range(config.layers):
        at = f"blocks.{layer}."
        normed = [slow_norm(w, f"{at}attention_norm", x) for x in stream]
        stream = [
            x + slow_attention(w, f"{at}attention", config, normed, place)
            for place, x in enumerate(stream)
        ]
        if config.mlp:
            stream = [x + slow_mlp(w, f"{at}mlp", slow_norm(w, f"{at}mlp_norm", x)) for x in stream]
    final = [slow_norm(w, "norm", x) for x in stream]
    return np.stack([w["head.weight"] @ x + w["head.bias"] for x in final])


def slow_norm(w: dict[str, np.ndarray], name: str, x: np.ndarray) -> np.ndarray:
    if f"{name}.weight" not in w:
        return x
    centred = x - x.mean()
    return centred / np.sqrt((centred**2).mean() + 1e-5) * w[f"{name}.weight"] + w[f"{name}.bias"]


def slow_attention(
    w: dict[str, np.ndarray], name: str, config: Model, xs: list[np.ndarray], place: int
) -> np.ndarray:
    width = config.head_width
    seen = range(place + 1) if config.causal else range(len(xs))
    mixed = []
    for head in range(config.heads):
        rows = slice(head * width, (head + 1) * width)
        q = (w[f"{name}.query.weight"] @ xs[place] + w[f"{name}.query.bias"])[rows]
        keys = [(w[f"{name}.key.weight"] @ xs[p])[rows] for p in seen]
        scores = np.exp([q @ k / math.sqrt(width) for k in keys])
        values = [(w[f"{name}.value.weight"] @ xs[p] + w[f"{name}.value.bias"])[rows] for p in seen]
        mixed.append(sum(s / scores.sum() * v for s, v in zip(scores, values, strict=True)))
    return w[f"{name}.out.weight"] @ np.concatenate(mixed) + w[f"{name}.out.bias"]


def slow_mlp(w: dict[str, np.ndarray], name: str, x: np.ndarray) -> np.ndarray:
    hidden = w[f"{name}.up.weight"] @ x + w[f"{name}.up.bias"]
    erf = np.array([math.erf(h / math.sqrt(2)) for h in hidden])
    return w[f"{name}.down.weight"] @ (hidden * (1 + erf) / 2) + w[f"{name}.down.bias"]


def shaken(model: Transformer) -> Transformer:
    """Biases and gains away from their special initial values, so that they count."""
    generator = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.empty(parameter.shape).normal_(generator=generator)
    return model


def some_inputs(interface: Interface, *batch: int) -> Tensor:
    generator = torch.Generator().manual_seed(2)
    shape = (*batch, interface.length)
    if interface.tokens:
        return torch.randint(interface.inputs, shape, generator=generator)
    return torch.empty(*shape, interface.inputs).normal_(generator=generator)


def doubled(
    config: Model, interface: Interface, *batch: int, fleet: tuple[int, ...] = ()
) -> tuple[Transformer, Tensor]:
    """A model and inputs in float64."""
    seeded = Transformer.seeded(config, interface, 0)
    model = shaken(Transformer(config, interface, models=fleet) if fleet else seeded).double()
    inputs = some_inputs(interface, *batch)
    return model, inputs if interface.tokens else inputs.double()


@given(models, st.sampled_from([VECTORS, TOKENS]))
@settings(max_examples=40, deadline=None)
def test_it_computes_what_the_slow_one_computes(config: Model, interface: Interface) -> None:
    model, inputs = doubled(config, interface, 2)
    for row, outputs in enumerate(model(inputs).detach().numpy()):
        expected = slow_forward(model, inputs[row].numpy())[-interface.read :]
        assert np.allclose(outputs, expected, atol=1e-10)


@given(models, st.sampled_from([VECTORS, TOKENS]))
@settings(max_examples=20, deadline=None)
def test_a_fleet_computes_what_its_members_compute(config: Model, interface: Interface) -> None:
    fleet, inputs = doubled(config, interface, 2, 4, fleet=(3, 5))
    for member, outputs in enumerate(fleet(inputs)):
        assert torch.allclose(outputs, fleet.member(member).double()(inputs[member]))


@given(models, st.sampled_from([VECTORS, TOKENS]), st.sampled_from([(), (3, 5)]))
@settings(max_examples=20, deadline=None)
def test_gradients_are_those_of_maps_apart(
    config: Model, interface: Interface, fleet: tuple[int, ...]
) -> None:
    """Training computes queries, keys and values by one map; where attention is looked at, each by
    its own.
    """
    model, inputs = doubled(config, interface, *((2, 3) if fleet else (3,)), fleet=fleet)
    found = []
    for attention in (None, lambda _, pattern: pattern):
        outputs = model(inputs, attention=attention)
        found.append(torch.autograd.grad(outputs.pow(2).sum(), list(model.parameters())))
    for at_once, apart in zip(*found, strict=True):
        assert torch.allclose(at_once, apart, atol=1e-10)


def test_a_member_starts_with_the_weights_of_its_seed() -> None:
    for init in ("gpt2", "torch"):
        config = Model(d_model=8, init=init)
        fleet = Transformer(config, VECTORS, models=(3, 5)).state_dict()
        for member, seed in enumerate((3, 5)):
            for name, weight in Transformer.seeded(config, VECTORS, seed).state_dict().items():
                assert torch.equal(fleet[name][member], weight), name


def test_attention_is_seen_whole_and_what_replaces_it_is_used() -> None:
    model = shaken(Transformer.seeded(Model(layers=2, d_model=8), VECTORS, 0))
    inputs = some_inputs(VECTORS, 5)
    seen = model.attention(inputs)
    assert seen.shape == (2, 5, 4, 7, 7)
    assert torch.allclose(seen.sum(-1), torch.ones(2, 5, 4, 7))
    assert (seen.triu(1) == 0).all()
    layers: list[int] = []

    def same(layer: int, pattern: Tensor) -> Tensor:
        layers.append(layer)
        return seen[layer][..., -pattern.shape[-2] :, :]

    def identity(layer: int, pattern: Tensor) -> Tensor:
        return torch.eye(7)[-pattern.shape[-2] :].expand_as(pattern)

    assert torch.allclose(model(inputs, attention=same), model(inputs), atol=1e-6)
    assert layers == [0, 1]
    # With every position looking at itself alone, one position's output is its own affair.
    changed = inputs.clone()
    changed[:, :4] += 1.0
    assert torch.equal(model(changed, attention=identity), model(inputs, attention=identity))
    assert not torch.allclose(model(changed), model(inputs))


def test_what_cannot_be_asked_of_a_model_is_refused() -> None:
    model, inputs = Transformer.seeded(Model(d_model=8), VECTORS, 0), some_inputs(VECTORS, 2)
    fleet = Transformer(Model(), VECTORS, models=(0, 1))
    for ask, text in (
        (lambda: model(inputs, attention=lambda _, __: None), "layer 0 returned NoneType; expect"),
        (lambda: model(inputs, attention=lambda _, a: a[..., :3]), "returned shape .2, 4, 7, 3., "),
        (lambda: model.member(0), "only a fleet has members"),
        (lambda: fleet.member(2), "member 2 of a fleet of 2"),
    ):
        with pytest.raises(ModelError, match=text):
            ask()


@pytest.mark.parametrize("init", ["gpt2", "fan-in", "torch"])
def test_initial_values_are_those_of_the_table(init: str) -> None:
    wide = Interface(tokens=False, inputs=64, length=4, read=1, outputs=64)
    model = Transformer.seeded(Model(layers=8, d_model=256, init=init), wide, 0)
    for name, inputs, gpt2 in (
        ("input", 64, 1 / 8),
        ("blocks.0.attention.query", 256, 0.02),
        ("blocks.3.attention.out", 256, 0.02 / 4),
        ("blocks.7.mlp.down", 1024, 0.02 / 4),
        ("head", 256, 0.02),
    ):
        weight, bias = (model.get_parameter(f"{name}.{kind}") for kind in ("weight", "bias"))
        bound = inputs**-0.5
        if init == "torch":  # as in torch.nn.Linear
            for ours in (weight, bias):
                assert ours.abs().max() <= bound
                assert ours.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.15), name
        else:
            std = gpt2 if init == "gpt2" else bound
            assert weight.std().item() == pytest.approx(std, rel=0.03), name
            assert not bias.any(), name
    for norm in ("blocks.0.mlp_norm", "norm"):
        assert (model.get_parameter(f"{norm}.weight") == 1).all()
        assert not model.get_parameter(f"{norm}.bias").any()
    if init == "gpt2":
        louder = Transformer.seeded(Model(input_std=0.5), wide, 0).get_parameter("input.weight")
        assert louder.std().item() == pytest.approx(0.5, rel=0.03)
