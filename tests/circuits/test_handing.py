"""Whole modules that hand out something else than their attention, or do not take it back."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from hopscope.circuits import Ablation, Ablator, Exam, Whole, exam_of, subject_of
from hopscope.errors import CircuitError
from hopscope.models import Transformer
from tests.conftest import TWO_HOPS

Edit = Callable[[int, Tensor], Tensor]
SHAPE = (3, 2)


def examined(
    model: Transformer, exam: Exam, edited: Callable[[Edit], Edit], **more: bool
) -> Tensor:
    """The losses of a module that makes something of the edit that it is given."""

    def forward(inputs: Tensor, attention: Edit) -> Tensor:
        every = model(inputs, attention=edited(attention), read=inputs.shape[1])
        return every[:, -model.interface.read :]

    return Ablator(Whole(forward, model, SHAPE, **more), exam).losses([Ablation()])


def everywhere(
    model: Transformer, edited: Callable[[Edit], Edit]
) -> Callable[[Tensor, Edit], Tensor]:
    """The same as a function that answers at all positions."""

    def forward(inputs: Tensor, attention: Edit) -> Tensor:
        out: Tensor = model(inputs, attention=edited(attention), read=inputs.shape[1])
        return out

    return forward


def kept(parts: tuple[int | slice, ...], layer: int) -> Callable[[Edit], Edit]:
    """An edit that leaves parts of a layer's attention as they were."""

    def edited(attention: Edit) -> Edit:
        def edit(number: int, pattern: Tensor) -> Tensor:
            found = attention(number, pattern).clone()
            if number == layer:
                found[parts] = pattern[parts]
            return found

        return edit

    return edited


@pytest.fixture
def exam() -> Exam:
    return exam_of(TWO_HOPS, 3)


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_a_layer_that_goes_on_with_its_own_attention_is_named(
    random_model: Transformer, exam: Exam, layer: int
) -> None:
    def deaf(attention: Edit) -> Edit:
        def edit(number: int, pattern: Tensor) -> Tensor:
            found = attention(number, pattern)
            return pattern if number == layer else found

        return edit

    with pytest.raises(CircuitError, match=f"layer {layer} does not go on with what `attention`"):
        examined(random_model, exam, deaf)


@pytest.mark.parametrize("layer", [0, 2])
@pytest.mark.parametrize(
    ("parts", "named"),
    [
        ((slice(None), 1), "head 1"),
        ((slice(None), slice(None), slice(3)), "its row 1"),
        ((slice(None), slice(None), -1), "its last row"),
    ],
)
def test_a_head_or_row_that_goes_on_with_its_own_attention_is_named(
    random_model: Transformer, exam: Exam, layer: int, parts: tuple[int | slice, ...], named: str
) -> None:
    """What is left would be another model's circuit, of which nothing looks wrong."""
    whole = Whole(everywhere(random_model, kept(parts, layer)), random_model, SHAPE)
    with pytest.raises(
        CircuitError, match=f"layer {layer} .* all that `attention` .*: {named} can"
    ):
        Ablator(whole, exam).losses([Ablation()])


def test_the_first_row_has_no_choice_and_need_not_be_taken_back(
    random_model: Transformer, exam: Exam
) -> None:
    forward = everywhere(random_model, kept((slice(None), slice(None), 0), 1))
    losses = Ablator(Whole(forward, random_model, SHAPE), exam).losses([Ablation()])
    walked = Ablator(subject_of(random_model), exam).losses([Ablation()])
    assert torch.allclose(losses, walked, atol=1e-5)


def test_a_module_with_dropout_is_refused_in_training_and_taken_behind_it(
    random_model: Transformer, exam: Exam
) -> None:
    """Dropout comes after attention was handed out and taken back: its patterns look right."""
    drop = torch.nn.Dropout(0.1)

    def edited(attention: Edit) -> Edit:
        return lambda number, pattern: drop(attention(number, pattern))

    with pytest.raises(CircuitError, match=r"different outputs.*call `module\.eval\(\)` first"):
        examined(random_model, exam, edited)
    drop.eval()
    assert bool(examined(random_model, exam, edited).isfinite().all())


def test_a_layer_that_is_handed_out_twice_is_named(random_model: Transformer, exam: Exam) -> None:
    def edited(attention: Edit) -> Edit:
        return lambda number, pattern: attention(min(number, 1), pattern)

    with pytest.raises(CircuitError, match=r"layers \[0, 1\], expected 0 … 2; is that the"):
        examined(random_model, exam, edited)

    with pytest.raises(CircuitError, match="layer 1 handed out its attention 2 times, expected"):
        Ablator(Whole(everywhere(random_model, edited), random_model, (2, 2)), exam).losses(
            [Ablation()]
        )


def test_another_number_of_heads_is_no_matter_of_kernels(
    random_model: Transformer, exam: Exam
) -> None:
    whole = Whole(everywhere(random_model, lambda attention: attention), random_model, (3, 4))
    with pytest.raises(
        CircuitError, match=r"expected \(2, 4, .*query, key\): is that the module's"
    ):
        Ablator(whole, exam).losses([Ablation()])


@pytest.mark.parametrize("silent", [False, True])
def test_heads_that_carry_nothing_are_no_mistake(
    random_model: Transformer, exam: Exam, silent: bool
) -> None:
    with torch.no_grad():
        for name, weight in random_model.named_parameters():
            if "blocks.1." in name and ".attention." in name:
                weight.zero_()
    if not silent:
        losses = examined(random_model, exam, lambda attention: attention)
        walked = Ablator(subject_of(random_model), exam).losses([Ablation()])
        assert torch.allclose(losses, walked, atol=1e-5)
        return
    with pytest.raises(CircuitError, match="layer 1 does not go on"):
        examined(
            random_model,
            exam,
            lambda attention: (
                lambda n, own: attention(n, own).detach() if n == 1 else attention(n, own)
            ),
        )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda p: p.log().clamp(-9), "rows with -9 in them, and sums up to .*after its softmax"),
        (lambda p: 2 * p, "rows with 0 in them, and sums up to 2; "),
        (lambda p: p.transpose(-1, -2) / p.shape[-1], "attends to later positions .*causal=False"),
        (lambda p: (100 * p).long(), "handed out torch.int64, expected shares of attention"),
    ],
)
def test_what_is_no_attention_is_refused(
    random_model: Transformer, exam: Exam, wrong: Callable[[Tensor], Tensor], message: str
) -> None:
    def edited(attention: Edit) -> Edit:
        return lambda number, pattern: attention(number, wrong(pattern))

    with pytest.raises(CircuitError, match=message):
        examined(random_model, exam, edited)


def test_a_module_said_to_see_everything_may_attend_to_later_positions(
    random_model: Transformer, exam: Exam
) -> None:
    def edited(attention: Edit) -> Edit:
        return lambda n, p: attention(n, p.transpose(-1, -2) / p.shape[-1])

    losses = examined(random_model, exam, edited, causal=False)
    assert bool(losses.isfinite().all())


@pytest.mark.parametrize("shape", [(0, 1), (-2, 1), (2, 0)])
def test_a_shape_of_nothing_is_refused(random_model: Transformer, shape: tuple[int, int]) -> None:
    with pytest.raises(CircuitError, match="expected at least one of each"):
        Whole(lambda inputs, _: inputs, random_model, shape)


def test_more_layers_than_said_are_no_matter_of_kernels(
    random_model: Transformer, exam: Exam
) -> None:
    whole = Whole(everywhere(random_model, lambda attention: attention), random_model, (2, 2))
    with pytest.raises(CircuitError, match=r"by layers \[0, 1, 2\], expected 0 … 1; is that the"):
        Ablator(whole, exam).losses([Ablation()])
