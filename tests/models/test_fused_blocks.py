"""The sublayers in C, on every backend that this processor can take, held to float64 in torch."""

from threading import Thread

import pytest
import torch
from backends import hold, model_and_batch, numbers, off, on_every_backend, pair, results
from hypothesis import given, settings
from hypothesis import strategies as st

from hopscope.configs import Experiment, Interface, Model
from hopscope.models import Transformer, native
from hopscope.models.fused_blocks import FusedBlocks
from hopscope.models.transformer import Block
from hopscope.training.trainer import Trainer

SHAPES = st.sampled_from([(4, 64), (2, 64), (1, 64), (4, 192), (2, 128), (1, 128), (3, 192)])
"""Heads and width: heads of 16, 32, 64, 48 and 128 numbers."""
WIDE = Model(layers=1, heads=2, d_model=128)


@on_every_backend
@settings(max_examples=60, deadline=None)
@given(SHAPES, st.integers(1, 128), st.booleans(), st.sampled_from([(), (2,)]), st.data())
def test_attention(
    backend: str, shape: tuple[int, int], seq: int, causal: bool, fleet: tuple[int, ...],
    data: st.DataObject,
) -> None:  # fmt: skip
    torch.manual_seed(seq)
    read = seq if data.draw(st.booleans()) else data.draw(st.integers(1, seq))
    config = Model(layers=1, heads=shape[0], d_model=shape[1], causal=causal)
    x = numbers(*fleet, data.draw(st.integers(1, 3)), seq, shape[1])
    hold(*pair(backend, config, fleet), "attention", x, read)


@on_every_backend
@settings(max_examples=30, deadline=None)
@given(SHAPES, st.integers(1, 140), st.sampled_from([(), (3,)]), st.integers(1, 9))
def test_an_mlp(
    backend: str, shape: tuple[int, int], seq: int, fleet: tuple[int, ...], batch: int
) -> None:
    torch.manual_seed(seq)
    config = Model(layers=1, heads=shape[0], d_model=shape[1])
    hold(*pair(backend, config, fleet), "mlp", numbers(*fleet, batch, seq, shape[1]), seq)


@on_every_backend
def test_attention_bears_large_scores(backend: str) -> None:
    torch.manual_seed(0)
    fast, exact = pair(backend, WIDE, gain=8)
    x = numbers(2, 20, 128)
    assert off(fast.attention_sublayer(x, 20), exact.attention_sublayer(x.double(), 20)) < 4


@on_every_backend
@pytest.mark.parametrize(("kind", "read"), [("attention", 30), ("attention", 4), ("mlp", 30)])
def test_bits_depend_on_nothing_but_the_numbers(backend: str, kind: str, read: int) -> None:
    """Not on threads, nor on who calls, on how tensors lie in memory, or on the default dtype.

    torch's own products in bf16 take tiles of other sizes on a processor with AMX.
    """
    torch.manual_seed(2)
    fast, _ = pair(backend, WIDE)
    views = numbers(30, 61, 256).transpose(0, 1)[..., 128:], numbers(128).expand(61, 30, 128)
    left, right = numbers(40, 72), numbers(72, 24)
    found, product = [results(fast, kind, views[0], read, views[1])], left @ right
    threads, dtype = torch.get_num_threads(), torch.get_default_dtype()
    try:
        for count, default in ((1, torch.float64), (2, torch.bfloat16), (3, torch.float32)):
            torch.set_num_threads(count)
            torch.set_default_dtype(default)
            found.append(results(fast, kind, views[0], read, views[1]))
            assert torch.equal(product, left @ right)
    finally:
        torch.set_num_threads(threads)
        torch.set_default_dtype(dtype)
    copies = [x.contiguous() for x in views]
    thread = Thread(target=lambda: found.append(results(fast, kind, copies[0], read, copies[1])))
    thread.start()
    thread.join()
    for parameter in fast.parameters():
        parameter.data = torch.stack([parameter.data, parameter.data], -1)[..., 0]
    found.append(results(fast, kind, views[0], read, views[1]))
    assert len(found) == 6
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


@on_every_backend
def test_outputs_can_be_changed_in_place_and_no_examples_are_no_error(backend: str) -> None:
    for batch in (2, 0):
        model, examples = model_and_batch(backend)
        y = model(examples.inputs[:batch])
        y += 1
        y.square().sum().backward()
        gradient = model.get_parameter("blocks.0.attention.query.weight").grad
        assert gradient.any() == (batch > 0)


@on_every_backend
def test_kernels_are_chosen_by_shape_dtype_and_device(backend: str) -> None:
    def chosen(block: Block) -> tuple[bool, bool]:
        return block.longest > 0, block.mlp_in_kernels

    with native.using(backend):
        block = Block((), WIDE)
        assert chosen(block) == (False, False)
        assert chosen(block.bfloat16()) == (True, True)
        assert block.kernels == FusedBlocks(tiles=backend == "amx")
        assert chosen(block.float()) == chosen(block.double()) == (False, False)
        assert chosen(block.to(torch.device("meta"), torch.bfloat16)) == (False, False)
        for config, expected in (
            ({"heads": 16}, (False, True)), ({"d_model": 96}, (False, False)),
            ({"heads": 1, "d_model": 192}, (False, True)), ({"norm": "none"}, (False, False)),
            ({"mlp": False}, (True, False)), ({"mlp_ratio": 1}, (True, True)),
        ):  # fmt: skip
            other = WIDE.model_copy(update=config)
            assert chosen(Block((), other).bfloat16()) == expected, config
        for precision in ("float32", "bf16"):  # a training takes them as well
            trainer = Trainer(Experiment(model=WIDE), torch.device("cpu"), precision)
            taken = {chosen(block) for block in trainer.model.blocks}  # type: ignore[arg-type]
            assert taken == {(precision == "bf16",) * 2}
    with native.using("torch"):
        assert chosen(Block((), WIDE).bfloat16()) == (False, False)
        assert chosen(model_and_batch(backend)[0].blocks[0]) == (True, True)  # type: ignore[arg-type]


@on_every_backend
def test_inputs_that_kernels_cannot_take_are_left_to_torch(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    fast, exact = pair(backend, WIDE)
    monkeypatch.setattr(native, "compute", lambda task, way, **tensors: calls.append(way))
    x = numbers(1, 129, 128)
    assert off(fast.attention_sublayer(x, 129), exact.attention_sublayer(x.double(), 129)) < 8
    assert not fast._kernels_take(numbers(2, 1, 8, 128))
    assert not fast._kernels_take(numbers(1, 8, 64))
    assert not fast._kernels_take(torch.ones(1, 8, 128))
    assert calls == []
    fast.attention_sublayer(numbers(1, 128, 128), 4)
    assert calls == [""]


@pytest.mark.parametrize("backend", native.possible())
def test_a_sequence_shorter_than_what_is_read_is_read_as_a_whole(backend: str) -> None:
    shape = Interface(tokens=True, inputs=8, length=32, read=32, outputs=9)
    config = Model(layers=2, heads=2, d_model=128, init="fan-in")
    with native.using(backend):
        model = Transformer.seeded(config, shape, 0).bfloat16()
    tokens = torch.randint(0, 8, (64, 5), generator=torch.Generator().manual_seed(3))
    found = model(tokens)
    assert torch.equal(found, model(tokens, read=5))
    found.sum().backward()
    for parameter in model.parameters():
        assert parameter.grad.isfinite().all()
    assert off(found, model.double()(tokens)) < 8
