"""Modules in blocks, and torch's encoders, against the same modules run as a whole."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from hopscope.circuits import (
    Ablation,
    Ablator,
    BlockAdapter,
    CallbackModel,
    Encoder,
    Mechanism,
    adapter_of,
    aim,
    exam_of,
)
from hopscope.circuits.mechanism import AS_IS, BY_POSITION, ITSELF, PREVIOUS, UNIFORM
from hopscope.circuits.probing import mean_loss
from hopscope.errors import CircuitError
from hopscope.facts import Role
from tests.conftest import TWO_HOPS

WIDTH, HEADS, LAYERS = 12, 3, 3
SHAPE = (LAYERS, HEADS)
Edit = Callable[[Tensor], Tensor]


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


def walked(model: Stranger) -> Encoder:
    return EncoderAdapter(
        model.encoder, enter=model.into, leave=model.out, model=model, causal=model.causal
    )


def block_of(model: Stranger) -> BlockAdapter:
    """The same cut into blocks, each written by hand."""

    def block(number: int, x: Tensor, attention: Edit) -> Tensor:
        subject = walked(model)
        pattern = subject.look(number, x, x.shape[1], range(HEADS))
        return subject.write(number, x, attention(pattern) @ subject.values(number, x))

    norm = model.encoder.norm or nn.Identity()
    return BlockAdapter(model.into, block, lambda x: model.out(norm(x)))


@pytest.fixture(params=[(True, True), (False, False), (True, False)])
def model(request: pytest.FixtureRequest) -> Stranger:
    torch.manual_seed(1)
    return Stranger(*request.param).eval()


VALUE = Role("value", 0)
ABLATIONS = [
    Ablation(),
    Ablation.of({(0, 1): Mechanism(rest=UNIFORM)}),
    Ablation.of({(1, 2): Mechanism(((VALUE, aim("own", Role("key", 0))),), ITSELF)}),
    Ablation.of({(1, 2): Mechanism(rest=AS_IS), (2, 0): Mechanism(rest=PREVIOUS)}),
    Ablation.of({(0, 1): Mechanism(rest=UNIFORM), (2, 2): Mechanism(rest=BY_POSITION)}),
]


def test_blocks_and_encoders_are_walked_as_the_whole_is_run(model: Stranger) -> None:
    exam = exam_of(TWO_HOPS, 5)
    blocks = block_of(model)

    def forward(inputs: Tensor, attention: Callable[[int, Tensor], Tensor]) -> Tensor:
        return blocks.forward(LAYERS, inputs, attention)

    def losses(outputs: Tensor) -> Tensor:
        return outputs.square().mean((-2, -1))[..., None]

    cut = CallbackModel.of_blocks(blocks, model, SHAPE, causal=model.causal)
    whole = CallbackModel(forward, model, SHAPE, causal=model.causal)
    # Where an exam names no positions, all answers are marked.
    for marked in (exam, replace(exam, losses=losses, read=None)):
        expected = Ablator(whole, marked).losses(ABLATIONS)
        with torch.no_grad():
            plain = marked.marks(model(exam.inputs))
            loss = mean_loss(walked(model), marked)
        assert torch.allclose(plain, expected[0], atol=1e-5)
        ablator = Ablator(cut, marked)
        assert torch.allclose(ablator.losses(ABLATIONS), expected, atol=1e-5)
        assert torch.allclose(ablator.losses(ABLATIONS[::-1]), expected.flip(0), atol=1e-5)
        assert loss == pytest.approx(float(expected[0].mean()), rel=1e-4)
        its = Ablator(walked(model), marked).losses(ABLATIONS)
        assert torch.allclose(its, expected, atol=1e-5)
    assert all(not torch.allclose(a, b, atol=1e-3) for a, b in pairwise(expected))
    streams = cut.streams(exam.inputs)
    assert len(streams) == LAYERS + 1
    seen = walked(model).seen(LAYERS, streams[-1])
    assert torch.allclose(model.out(seen), model(exam.inputs), atol=1e-5)


def test_blocks_run_from_the_first_in_which_an_ablation_differs(model: Stranger) -> None:
    blocks, ran = block_of(model), list[int]()

    def counted(number: int, x: Tensor, attention: Edit) -> Tensor:
        ran.append(number)
        return blocks.block(number, x, attention)

    cut = BlockAdapter(blocks.enter, counted, blocks.leave)
    ablator = Ablator(
        CallbackModel.of_blocks(cut, model, SHAPE, causal=model.causal), exam_of(TWO_HOPS, 2)
    )
    ablator.losses([Ablation()])  # the module itself is looked through but once
    ran.clear()
    ablator.losses([Ablation.of({(2, n): Mechanism(rest=UNIFORM)}) for n in range(HEADS)])
    assert ran == [2] * HEADS


def test_an_encoder_of_another_kind_is_refused() -> None:
    """Also one that is wrong by a few per cent, and on longer examples alone."""

    class Off(Encoder):
        def values(self, number: int, x: Tensor) -> Tensor:
            return super().values(number, x) * (1.05 if x.shape[1] > 4 else 1)

    torch.manual_seed(0)
    line = "for nn.TransformerEncoder is off by .*; use CallbackModel"
    model = Stranger(True, True).eval()
    wrong = EncoderAdapter(
        model.encoder, enter=model.into, leave=model.out, model=model, causal=False
    )
    with pytest.raises(CircuitError, match=line):
        wrong.enter(exam_of(TWO_HOPS, 4).inputs)
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS)
    with pytest.raises(CircuitError, match="make it with batch_first=True"):
        adapter_of(nn.TransformerEncoder(layer, 1, enable_nested_tensor=False))
    for dtype in (torch.float32, torch.float64):
        off = Off(model.to(dtype).encoder, causal=True)
        x = torch.randn(4, 6, WIDTH, dtype=dtype)
        off.enter(x[:, :4])
        with pytest.raises(CircuitError, match=line):
            off.enter(x)
