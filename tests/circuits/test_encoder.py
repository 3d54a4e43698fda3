"""Modules cut into blocks, and torch's encoders, against the same modules run as a whole."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
import torch
from slow import CHANGES
from torch import Tensor, nn
from torch.nn.functional import dropout, linear, scaled_dot_product_attention

from hopscope.circuits import (
    Ablation,
    Ablator,
    BlockAdapter,
    CallbackModel,
    EncoderAdapter,
    adapter_of,
    examples_of,
)
from hopscope.circuits.attention import attended
from hopscope.circuits.engine import forward
from hopscope.errors import CircuitError
from tests.conftest import TWO_HOPS

WIDTH, HEADS, LAYERS = 12, 3, 3
SHAPE = (LAYERS, HEADS)
Attend = Callable[..., Tensor]


class Stranger(nn.Module):
    """Vectors through torch's encoder."""

    def __init__(self, norm_first: bool, causal: bool) -> None:
        super().__init__()
        shape = TWO_HOPS.interface()
        self.into, self.out = nn.Linear(shape.inputs, WIDTH), nn.Linear(WIDTH, shape.outputs)
        layer = nn.TransformerEncoderLayer(
            WIDTH, HEADS, 2 * WIDTH, 0.0, "gelu", batch_first=True, norm_first=norm_first
        )
        last = nn.LayerNorm(WIDTH) if norm_first else None
        self.encoder = nn.TransformerEncoder(layer, LAYERS, last, enable_nested_tensor=False)
        self.causal = causal
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.add_(0.3 * torch.randn_like(parameter))

    def forward(self, x: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1]) if self.causal else None
        out: Tensor = self.out(self.encoder(self.into(x), mask=mask))
        return out

    def block(self, number: int, x: Tensor, attend: Attend) -> Tensor:
        """A layer, written by hand."""
        its: Any = self.encoder.layers[number]
        seen = its.norm1(x) if its.norm_first else x
        qkv = linear(seen, its.self_attn.in_proj_weight, its.self_attn.in_proj_bias)
        parts = [p.unflatten(-1, (HEADS, -1)).transpose(1, 2) for p in qkv.chunk(3, -1)]
        x = x + its.self_attn.out_proj(attend(*parts).transpose(1, 2).flatten(2))
        if its.norm_first:
            return x + its.linear2(its.activation(its.linear1(its.norm2(x))))  # type: ignore[no-any-return]
        x = its.norm1(x)
        return its.norm2(x + its.linear2(its.activation(its.linear1(x))))  # type: ignore[no-any-return]

    def leave(self, x: Tensor) -> Tensor:
        out: Tensor = self.out(x if self.encoder.norm is None else self.encoder.norm(x))
        return out


def encoder_of(model: Stranger, **more: Any) -> EncoderAdapter:
    given: dict[str, Any] = {"causal": model.causal} | more
    return EncoderAdapter(model.encoder, embed=model.into, unembed=model.out, model=model, **given)


def blocks_of(module: Stranger, **more: Any) -> BlockAdapter:
    given: dict[str, Any] = {"block": module.block, "causal": module.causal, "model": module} | more
    return BlockAdapter(
        module.into,
        given.pop("block"),
        given.pop("unembed", module.leave),
        module,
        given.pop("shape", SHAPE),
        **given,
    )


def callback_of(model: Stranger) -> CallbackModel:
    """The same module, of which only attention is handed out."""

    def whole(inputs: Tensor, attention: Callable[[int, Tensor], Tensor]) -> Tensor:
        x = model.into(inputs)
        for number in range(LAYERS):

            def attend(query: Tensor, key: Tensor, value: Tensor, number: int = number) -> Tensor:
                scores = query @ key.mT / query.shape[-1] ** 0.5
                if model.causal:
                    later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
                    scores = scores.masked_fill(later, -torch.inf)
                return attention(number, scores.softmax(-1)) @ value

            x = model.block(number, x, attend)
        return model.leave(x)

    return CallbackModel(whole, model, SHAPE, causal=model.causal)


@pytest.fixture(params=[(True, True), (False, False), (True, False)])
def model(request: pytest.FixtureRequest) -> Stranger:
    torch.manual_seed(1)
    return Stranger(*request.param).eval()


@torch.no_grad()
def test_every_adapter_of_a_module_gives_the_same_losses(model: Stranger) -> None:
    examples = examples_of(TWO_HOPS, 5)
    ablations = [Ablation(), *(Ablation.of({(0, 1): its, (2, 2): its}) for its in CHANGES)]
    some = [each for each, its in zip(ablations[1:], CHANGES, strict=True) if not its.carried]
    some = [Ablation(), *some]

    def losses(outputs: Tensor) -> Tensor:
        return outputs.square().mean((-2, -1))[..., None]

    # Where examples name no positions, all answers are marked.
    for marked in (examples, replace(examples, losses=losses, read=None)):
        expected = Ablator(callback_of(model), marked).losses(some)
        assert torch.allclose(marked.losses_of(model(examples.inputs)), expected[0], atol=1e-5)
        assert all(not torch.allclose(a, b, atol=1e-3) for a, b in pairwise(expected))
        for adapter in (blocks_of(model), encoder_of(model)):
            ablator = Ablator(adapter, marked)
            assert torch.allclose(ablator.losses(some), expected, atol=1e-5)
            for ablation, found in zip(ablations, ablator.losses(ablations), strict=True):
                end = attended(adapter, marked, ablation).streams[-1]
                assert torch.allclose(found, marked.losses_of(adapter.unembed(end)), atol=1e-5)


@torch.no_grad()
def test_blocks_take_groups_masks_and_scales(model: Stranger) -> None:
    """As scaled_dot_product_attention: shared keys, a mask for each head, a scale, is_causal."""
    x = torch.randn(2, 6, WIDTH)
    allowed = torch.rand(2, HEADS, 6, 6).tril() + torch.eye(6) > 0.4
    added = torch.randn(HEADS, 6, 6).masked_fill(torch.ones(6, 6).triu(1) > 0, -torch.inf)
    for given in (
        {"attn_mask": allowed, "scale": 0.3},
        {"attn_mask": added, "dropout_p": 0.0},
        {"attn_mask": allowed[0, 0], "scale": 2.0},
        {"is_causal": True},
    ):

        def block(_: int, x: Tensor, attend: Attend, given: Any = given) -> Tensor:
            query = x.unflatten(-1, (HEADS, -1)).transpose(1, 2)
            mixed = attend(query, query[:, :1] * 2, query[:, 1:2], **given, enable_gqa=True)
            return x + mixed.transpose(1, 2).flatten(2)

        causal = "is_causal" in given
        cut = BlockAdapter(nn.Identity(), block, nn.Identity(), model, (1, HEADS), causal=causal)
        expected = block(0, x, scaled_dot_product_attention)
        assert torch.allclose(forward(cut, x), expected, atol=1e-5)
        heads = cut.project(0, x)
        assert torch.allclose(heads.weights(2, [2]), heads.weights()[:, [2], -2:], atol=1e-6)
        with torch.enable_grad():
            assert torch.allclose(cut.project(0, x).weights(), heads.weights(), atol=1e-6)


@torch.no_grad()
def test_blocks_that_are_not_what_they_were_said_to_be_are_refused(model: Stranger) -> None:
    inputs = examples_of(TWO_HOPS, 4).inputs

    def mixing(number: int, x: Tensor, attend: Attend) -> Tensor:
        x = model.block(number, x, attend)
        return x + x.mean(1, keepdim=True) if number == 1 else x

    seen = torch.ones(1, 1, inputs.shape[1], inputs.shape[1], dtype=torch.bool).tril()

    def given(**more: Any) -> Callable[[int, Tensor, Attend], Tensor]:
        return lambda n, x, attend: model.block(n, x, partial(attend, **more))

    for more, line in (
        ({"block": lambda n, x, attend: x}, "block 0 did not call `attend`"),
        (
            {"block": lambda n, x, attend: model.block(n, model.block(n, x, attend), attend)},
            "block 0 called `attend` 2 times",
        ),
        ({"block": mixing}, "layer 1 of Stranger .*may not mix positions"),
        (
            {"block": lambda n, x, attend: dropout(model.block(n, x, attend), 0.1)},
            "different outputs",
        ),
        ({"unembed": lambda x: dropout(model.leave(x), 0.1), "model": None}, "different outputs"),
        ({"block": lambda n, x, attend: model.block(n, x, attend)[..., 1:]}, "returned .*, 11"),
        (
            {"block": lambda n, x, attend: (model.block(n, x, attend),)},
            "1 times and returned tuple",
        ),
        ({"block": given(attn_mask=seen.repeat(2, 1, 1, 1))}, "a mask for 2 examples and .* of 8"),
        ({"block": given(attn_mask=seen & (torch.arange(seen.shape[-1]) > 0))}, "a mask hides"),
        ({"block": given(mask=seen)}, "block 0 gave `attend` mask; expected what scaled_dot_prod"),
        ({"block": given(dropout_p=0.1)}, r"gave `attend` dropout_p=0.1; .* \(`module.eval\(\)`\)"),
        ({"block": given(is_causal=True, attn_mask=seen)}, "is_causal=True and a mask: give one"),
        (
            {"block": given(is_causal=True), "causal": False},
            "is_causal=True: pass causal=True, too",
        ),
        ({"shape": (LAYERS, 2)}, "is that the model's shape"),
        ({"shape": (LAYERS + 1, HEADS)}, r"block 3 failed \(index 3 .*: is \(4, 3\) the model's"),
        ({"shape": (LAYERS, 0)}, "expected at least one"),
        ({"model": lambda inputs: 1.01 * model(inputs)}, "the adapter for Stranger is off by"),
    ):
        with pytest.raises(CircuitError, match=line):
            blocks_of(model, **more).embed(inputs)


@torch.no_grad()
def test_outputs_that_a_model_rules_out_are_no_damage(model: Stranger) -> None:
    """Minus infinity is the logit of a class that is never right."""
    inputs = examples_of(TWO_HOPS, 4).inputs

    def without_first(outputs: Tensor) -> Tensor:
        return torch.cat([torch.full_like(outputs[..., :1], -torch.inf), outputs[..., 1:]], -1)

    class Ruling(Stranger):
        def leave(self, x: Tensor) -> Tensor:
            return without_first(super().leave(x))

        def forward(self, x: Tensor) -> Tensor:
            return without_first(super().forward(x))

    ruling = Ruling(model.causal, True).eval()
    callback_of(ruling).check(inputs)
    blocks_of(ruling, model=ruling).embed(inputs)
    for off in (lambda its: 1.01 * ruling(its), lambda its: without_first(ruling(its).flip(-1))):
        with pytest.raises(CircuitError, match="the adapter for Ruling is off by"):
            blocks_of(ruling, model=off).embed(inputs)


@torch.no_grad()
def test_an_encoder_of_another_kind_is_refused() -> None:
    """Also one that is wrong by a few per cent."""

    class Off(EncoderAdapter):
        def added(self, layer: int, brought: Tensor) -> Tensor:
            return 1.05 * super().added(layer, brought)

    torch.manual_seed(0)
    model = Stranger(True, True).eval()
    wrong = encoder_of(model, causal=False), examples_of(TWO_HOPS, 4).inputs
    for adapter, inputs in (wrong, (Off(model.encoder, causal=True), torch.randn(4, 6, WIDTH))):
        with pytest.raises(CircuitError, match="nn.TransformerEncoder is off by .*; use Callback"):
            adapter.embed(inputs)
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS)
    with pytest.raises(CircuitError, match="make it with batch_first=True"):
        adapter_of(nn.TransformerEncoder(layer, 1, enable_nested_tensor=False))


@torch.no_grad()
def test_dropout_around_an_encoder_is_switched_off_or_refused(model: Stranger) -> None:
    """It is switched off in the module that is given, and refused where none is."""
    inputs = examples_of(TWO_HOPS, 4).inputs
    model.into = nn.Sequential(model.into, nn.Dropout(0.2))  # type: ignore[assignment]
    model.train()
    with pytest.raises(CircuitError, match="different outputs.*call `module.eval"):
        EncoderAdapter(model.encoder, embed=model.into, unembed=model.out).embed(inputs)
    assert torch.equal(encoder_of(model).embed(inputs), model.into[0](inputs))  # type: ignore[index]


@torch.no_grad()
def test_what_does_not_fit_an_encoder_is_said(model: Stranger) -> None:
    inputs = examples_of(TWO_HOPS, 4).inputs

    class Pooled(Stranger):
        def forward(self, inputs: Tensor) -> Tensor:
            return super().forward(inputs).mean(1)

    class Pair(Stranger):
        def forward(self, inputs: Tensor) -> Any:
            return super().forward(inputs), None

    parts: dict[str, Any] = {"embed": model.into, "causal": model.causal}
    pooled, pair = (
        kind(model.encoder.layers[0].norm_first, model.causal) for kind in (Pooled, Pair)
    )
    for given, line in (
        ({"model": model, "unembed": lambda x: x[..., :3]}, "does `unembed` do all that the"),
        ({"model": pooled, "unembed": model.out}, r"gives outputs .* the model \[4, "),
        ({"model": pair, "unembed": model.out}, "returned tuple; expected its outputs as one"),
    ):
        with pytest.raises(CircuitError, match=line):
            EncoderAdapter(model.encoder, **parts, **given).embed(inputs)
    few = nn.Embedding(5, WIDTH)
    for adapter in (
        EncoderAdapter(model.encoder, embed=few, causal=model.causal),
        BlockAdapter(few, model.block, model.leave, model, SHAPE, causal=model.causal),
    ):
        with pytest.raises(CircuitError, match=r"no row for some of the .* tokens \(3 … 5\)"):
            adapter.embed(torch.tensor([[3, 5]]))
    empty = nn.TransformerEncoder(model.encoder.layers[0], 0, enable_nested_tensor=False)
    with pytest.raises(CircuitError, match="has no layers"):
        EncoderAdapter(empty)


@torch.no_grad()
def test_in_halves_rounding_is_taken_and_noise_is_refused(model: Stranger) -> None:
    """The noise is up to 9 % of the largest output."""
    inputs = examples_of(TWO_HOPS, 4).inputs
    for precision in (torch.bfloat16, torch.float16):
        half, its = model.to(precision), inputs.to(precision)
        blocks_of(half).embed(its)
        noise = 0.5 * torch.randn(half(its).shape).to(precision)
        with pytest.raises(CircuitError, match="is off by .* of the outputs' distribution"):
            blocks_of(half, model=lambda x, m=half, n=noise: m(x) + n[: len(x)]).embed(its)


@torch.no_grad()
def test_a_model_that_treats_few_examples_otherwise_is_refused(model: Stranger) -> None:
    """As one that hides padding does. The first call has one example, which is like most."""

    def outputs(x: Tensor) -> Tensor:
        rare = (x[:, None] == inputs[9::10]).all(-1).all(-1).any(1)
        return torch.where(rare[:, None, None], 2, 1) * model(x)

    inputs = examples_of(TWO_HOPS, 40).inputs
    adapter = blocks_of(model, model=outputs)
    adapter.embed(inputs[:1])
    adapter.embed(inputs[:9])
    with pytest.raises(CircuitError, match="is off by .* use CallbackModel"):
        adapter.embed(inputs)
