"""Modules in blocks, and torch's encoders, against the same modules run as a whole."""

import inspect
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from hopscope.circuits import (
    Ablation,
    Ablator,
    Blocks,
    Carried,
    Encoder,
    Mechanism,
    Whole,
    aim,
    discover,
    exam_of,
    patterns,
    subject_of,
)
from hopscope.circuits.mechanism import AS_IS, BY_POSITION, ITSELF, PREVIOUS, UNIFORM
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.models.planted import Planted
from tests.conftest import TWO_HOPS

WIDTH, HEADS, LAYERS = 12, 3, 3


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
    return Encoder(
        model.encoder, enter=model.into, leave=model.out, model=model, causal=model.causal
    )


def block_of(model: Stranger) -> Blocks:
    """The same cut into blocks, each written by hand."""

    def block(number: int, x: Tensor, attention: Callable[[Tensor], Tensor]) -> Tensor:
        subject = walked(model)
        pattern = subject.look(number, x, x.shape[1], range(HEADS))
        return subject.write(number, x, attention(pattern) @ subject.values(number, x))

    norm = model.encoder.norm or nn.Identity()
    return Blocks(model.into, block, lambda x: model.out(norm(x)))


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

    shape = (LAYERS, HEADS)
    whole = Whole(forward, model, shape, causal=model.causal)
    expected = Ablator(whole, exam).losses(ABLATIONS)
    cut = Whole.of_blocks(blocks, model, shape, causal=model.causal)
    ablator = Ablator(cut, exam)
    assert torch.allclose(ablator.losses(ABLATIONS), expected, atol=1e-5)
    assert torch.allclose(ablator.losses(ABLATIONS[::-1]), expected.flip(0), atol=1e-5)
    assert torch.allclose(Ablator(walked(model), exam).losses(ABLATIONS), expected, atol=1e-5)
    with torch.no_grad():
        assert torch.allclose(exam.marks(model(exam.inputs)), expected[0], atol=1e-5)


def test_where_an_exam_names_no_positions_all_answers_are_marked(model: Stranger) -> None:
    def losses(outputs: Tensor) -> Tensor:
        return outputs.square().mean((-2, -1))[..., None]

    exam = replace(exam_of(TWO_HOPS, 3), losses=losses, read=None)
    blocks = block_of(model)
    cut = Whole.of_blocks(blocks, model, (LAYERS, HEADS), causal=model.causal)
    found = Ablator(walked(model), exam).losses(ABLATIONS)
    with torch.no_grad():
        assert torch.allclose(found[0], losses(model(exam.inputs)), atol=1e-5)
    assert torch.allclose(found, Ablator(cut, exam).losses(ABLATIONS), atol=1e-5)


def test_blocks_run_from_the_first_in_which_an_ablation_differs(model: Stranger) -> None:
    ran: list[int] = []
    blocks = block_of(model)

    def counted(number: int, x: Tensor, attention: Callable[[Tensor], Tensor]) -> Tensor:
        ran.append(number)
        return blocks.block(number, x, attention)

    cut = Blocks(blocks.enter, counted, blocks.leave)
    whole = Whole.of_blocks(cut, model, (LAYERS, HEADS), causal=model.causal)
    exam = exam_of(TWO_HOPS, 2)
    ablator = Ablator(whole, exam)
    whole.check(exam.inputs)
    ran.clear()
    last = [Ablation.of({(2, head): Mechanism(rest=UNIFORM)}) for head in range(HEADS)]
    ablator.losses(last)
    assert sorted(ran) == [0, 1, 2, 2, 2]


def test_a_walked_encoder_hands_out_what_torch_reports(model: Stranger) -> None:
    subject = walked(model)
    inputs = exam_of(TWO_HOPS, 2).inputs
    found = next(iter(patterns(subject, inputs)))
    layer, x = model.encoder.layers[0], model.into(inputs)
    y = layer.norm1(x) if layer.norm_first else x  # type: ignore[operator]
    mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1]) if model.causal else None
    _, wanted = layer.self_attn(y, y, y, attn_mask=mask, average_attn_weights=False)  # type: ignore[operator]
    assert torch.allclose(found, wanted, atol=1e-5)


def test_streams_are_what_the_blocks_hand_on(model: Stranger) -> None:
    inputs = exam_of(TWO_HOPS, 2).inputs
    cut = Whole.of_blocks(block_of(model), model, (LAYERS, HEADS), causal=model.causal)
    assert cut.streams is not None
    streams = cut.streams(inputs)
    assert len(streams) == LAYERS + 1
    assert torch.equal(streams[0], model.into(inputs))
    seen = walked(model).seen(LAYERS, streams[-1])
    assert torch.allclose(model.out(seen), model(inputs), atol=1e-5)


def test_an_encoder_of_another_kind_is_refused() -> None:
    torch.manual_seed(0)
    model = Stranger(True, True).eval()
    wrong = Encoder(model.encoder, enter=model.into, leave=model.out, model=model, causal=False)
    with pytest.raises(CircuitError, match="for nn.TransformerEncoder is off by .*; use Whole"):
        wrong.enter(exam_of(TWO_HOPS, 4).inputs)
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS)
    with pytest.raises(CircuitError, match="make it with batch_first=True"):
        subject_of(nn.TransformerEncoder(layer, 1, enable_nested_tensor=False))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_an_adapter_is_proved_again_on_longer_examples(dtype: torch.dtype) -> None:
    class Off(Encoder):
        """Wrong by a few per cent, on more than four positions."""

        def values(self, number: int, x: Tensor) -> Tensor:
            return super().values(number, x) * (1.05 if x.shape[1] > 4 else 1)

    torch.manual_seed(0)
    model = Stranger(True, True).to(dtype).eval()
    off = Off(model.encoder, causal=True)
    x = torch.randn(4, 6, WIDTH, dtype=dtype)
    off.enter(x[:, :4])
    with pytest.raises(CircuitError, match="for nn.TransformerEncoder is off by .*; use Whole"):
        off.enter(x)


def test_attention_is_the_same_where_gradients_are_asked_for(model: Stranger) -> None:
    subject = walked(model)
    x = subject.enter(exam_of(TWO_HOPS, 3).inputs)
    with torch.no_grad():
        wanted = subject.look(0, x, 4, range(HEADS))
    found = subject.look(0, x, 4, range(HEADS))
    assert torch.allclose(found, wanted, atol=1e-6)
    assert found.requires_grad


def test_blocks_that_do_not_hand_out_their_attention_once_are_refused(model: Stranger) -> None:
    blocks = block_of(model)

    def twice(number: int, x: Tensor, attention: Callable[[Tensor], Tensor]) -> Tensor:
        return blocks.block(number, x, lambda pattern: attention(attention(pattern)))

    for block, message in (
        (lambda number, x, attention: x, r"handed out by layers \[\], expected 0 … 2"),
        (twice, "layer 0 handed out its attention 2 times"),
    ):
        cut = Blocks(model.into, block, model.out)
        whole = Whole.of_blocks(cut, model, (LAYERS, HEADS), causal=model.causal)
        with pytest.raises(CircuitError, match=message):
            Ablator(whole, exam_of(TWO_HOPS, 2)).losses([Ablation()])
    known = Whole.of_blocks(blocks, model, (LAYERS, HEADS), causal=model.causal)
    with pytest.raises(CircuitError, match="what heads carry cannot be replaced"):
        Ablator(known, exam_of(TWO_HOPS, 2)).losses([Ablation.of({(0, 0): Carried("mean")})])


def test_the_circuit_of_a_model_in_blocks_is_that_of_the_model(two_hops: Planted) -> None:
    own = subject_of(two_hops.model)

    def block(number: int, x: Tensor, attention: Callable[[Tensor], Tensor]) -> Tensor:
        pattern = own.look(number, x, x.shape[1], range(own.heads))  # type: ignore[union-attr]
        return own.write(number, x, attention(pattern) @ own.values(number, x))  # type: ignore[union-attr]

    blocks = Blocks(own.enter, block, own.leave)  # type: ignore[union-attr]
    cut = Whole.of_blocks(blocks, two_hops.model, (own.layers, own.heads))
    find = inspect.unwrap(discover)
    found = find(cut, two_hops.task, examples=16)
    assert found.paths == find(two_hops.model, two_hops.task, examples=16).paths
