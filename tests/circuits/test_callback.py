"""Modules that run as a whole: what they give, and those that hide their attention."""

from collections.abc import Callable

import pytest
import torch
from slow import CHANGES, Edit, Edited, whole
from torch import Tensor

from hopscope import Study
from hopscope.circuits import Ablation, Ablator, CallbackModel, Examples, Pattern, role_maps
from hopscope.circuits.pattern import MEAN
from hopscope.errors import CircuitError
from hopscope.models import Transformer
from tests.conftest import TWO_HOPS

SHAPE = (3, 2)


def keeping(layer: int, *parts: int | slice) -> Edited:
    """An edit that leaves parts of a layer's attention, or all of it, as they were."""

    def edited(attention: Edit) -> Edit:
        def edit(number: int, pattern: Tensor) -> Tensor:
            found = attention(number, pattern).clone()
            if number == layer and not parts:
                return pattern
            if number == layer:
                found[parts] = pattern[parts]
            return found

        return edit

    return edited


def handing(wrong: Callable[[Tensor], Tensor]) -> Edited:
    """An edit that is handed something else than the layer's attention."""
    return lambda attention: lambda number, pattern: attention(number, wrong(pattern))


def test_a_whole_model_gives_what_a_walk_gives(
    random_model: Transformer, examples: Examples
) -> None:
    several = [Ablation.of({(1, 0): change, (2, 1): change}) for change in CHANGES[:4]]
    walked = Ablator(random_model, examples).losses([Ablation(), *several])
    for everywhere in (False, True):
        found = Ablator(whole(random_model, everywhere=everywhere), examples)
        assert torch.allclose(found.losses([Ablation(), *several]), walked, atol=1e-5)
        with pytest.raises(CircuitError, match="a CallbackModel cannot replace head outputs"):
            found.losses([Ablation.of({(0, 0): Pattern(rest=MEAN)})])
    # The first row has no choice, and need not be taken back.
    first = whole(random_model, keeping(1, slice(None), slice(None), 0), everywhere=True)
    assert torch.allclose(Ablator(first, examples).losses([Ablation()])[0], walked[0], atol=1e-5)


def test_every_head_is_ablated_in_the_ways_that_there_are(random_model: Transformer) -> None:
    found = Study(whole(random_model), TWO_HOPS).ablate(examples=4)
    ways = [row.changed for row in found.rows]
    assert ways[:4] == ["0.0=uniform", "0.0=itself", "0.0=previous", "0.1=uniform"]
    assert len(ways) == 3 * 2 * 3


def test_a_layer_head_or_row_that_goes_on_with_its_own_attention_is_named(
    random_model: Transformer, examples: Examples
) -> None:
    """What is left would be another model's circuit, of which nothing looks wrong."""
    every = slice(None)
    for layer in range(3):
        for parts, line in (
            ((), "does not use what `attention`"),
            ((every, 1), "head 1 can"),
            ((every, every, slice(3)), "row 1, row 2 can"),
            ((every, every, -1), rf"row {examples.length - 1} can"),
        ):
            deaf = whole(random_model, keeping(layer, *parts), everywhere=bool(parts))
            with pytest.raises(CircuitError, match=f"layer {layer} .*{line}"):
                Ablator(deaf, examples).losses([Ablation()])
            with pytest.raises(CircuitError, match=f"layer {layer} .*{line}"):
                role_maps(deaf, examples)
    with torch.no_grad():  # heads that bring nothing are no mistake; to ignore them is
        for name, weight in random_model.named_parameters():
            if "blocks.1." in name and ".attention." in name:
                weight.zero_()
    losses = Ablator(whole(random_model), examples).losses([Ablation()])
    assert torch.allclose(losses, Ablator(random_model, examples).losses([Ablation()]), atol=1e-5)
    with pytest.raises(CircuitError, match="layer 1 does not use"):
        Ablator(whole(random_model, keeping(1)), examples).losses([Ablation()])


def test_attention_is_checked_again_on_longer_inputs(
    random_model: Transformer, examples: Examples
) -> None:
    """Heads that go on with their own attention beyond eight positions."""
    far = keeping(0, slice(None), slice(None), slice(8, None))
    deaf = whole(random_model, far, everywhere=True)
    deaf.check(examples.inputs[:, :8])
    with pytest.raises(CircuitError, match="row 8, row 9 can"):
        deaf.check(examples.inputs)


def test_what_is_no_attention_or_has_another_shape_is_refused(
    random_model: Transformer, examples: Examples
) -> None:
    drop = torch.nn.Dropout(0.1)
    later = handing(lambda p: p.transpose(-1, -2) / p.shape[-1])
    for edited, shape, line in (
        (lambda edit: lambda n, p: p, SHAPE, r"layers \[\] passed their attention, expected 0 … 2"),
        (handing(lambda p: None), SHAPE, r"layer 0 passed None"),
        (handing(lambda p: p.log().clamp(-9)), SHAPE, "attention of -9"),
        (handing(lambda p: 2 * p), SHAPE, "sums up to 2"),
        (handing(lambda p: (100 * p).long()), SHAPE, "attention of torch.int64"),
        (later, SHAPE, "attends to later positions"),
        (
            lambda edit: lambda n, p: edit(min(n, 1), p),
            SHAPE,
            r"layers \[0, 1\] passed their attention",
        ),
        (lambda edit: lambda n, p: edit(min(n, 1), p), (2, 2), "its attention 2 times"),
        (handing(lambda p: p), (3, 4), "is that the module's"),
        (
            handing(lambda p: p),
            (2, 2),
            r"layers \[0, 1, 2\] passed their attention, expected 0 … 1",
        ),
        # Dropout comes after attention was handed out and taken back: its patterns look right.
        (lambda edit: lambda n, p: drop(edit(n, p)), SHAPE, "different outputs"),
    ):
        with pytest.raises(CircuitError, match=line):
            Ablator(whole(random_model, edited, shape), examples).losses([Ablation()])
    seeing = Ablator(whole(random_model, later, causal=False), examples)
    assert bool(seeing.losses([Ablation()]).isfinite().all())
    for shape in ((0, 1), (-2, 1), (2, 0)):
        with pytest.raises(CircuitError, match="expected at least one of each"):
            whole(random_model, shape=shape)
    several = CallbackModel(lambda inputs, attention: (inputs,), random_model, (3, 1))
    with pytest.raises(CircuitError, match="returned tuple; expected the outputs as one tensor"):
        several.outputs(examples.inputs, lambda layer, pattern: pattern)
    pooled = CallbackModel(lambda inputs, attention: inputs[:, 0], random_model, (3, 1))
    with pytest.raises(
        CircuitError, match=r"returned \[\d+, \d+\]; expected outputs \[example, pos"
    ):
        pooled.outputs(examples.inputs, lambda layer, pattern: pattern)


def test_the_stream_is_normed_at_each_position_alone(random_model: Transformer) -> None:
    stream = torch.randn(2, 3, 12)
    normed = whole(random_model).normed(stream)
    torch.testing.assert_close(normed.mean(-1), torch.zeros(2, 3))
    torch.testing.assert_close(normed.var(-1, correction=0), torch.ones(2, 3), rtol=1e-4, atol=0)
