"""The kernels for a GPU, held to plain torch: interpreted on a CPU, compiled where there is one."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from backends import hold, numbers, pair, results
from torch import Tensor
from torch.nn import functional

from hopscope.configs import Experiment, Model, Retrieval, Training
from hopscope.models import native
from hopscope.tasks import total
from hopscope.training.trainer import Trainer

pytest.importorskip("triton", reason="Triton is there for Linux alone")
from hopscope.models import cuda_ops
from hopscope.models.cuda_ops import CudaOps

GPU = torch.cuda.is_available()
"""Without one, Triton interprets its kernels (`conftest.py` says so before anybody imports it)."""
DEVICE = "cuda" if GPU else "cpu"
pytestmark = [pytest.mark.cuda] if GPU else []


@pytest.fixture(autouse=True, scope="module")
def _on_the_device() -> Iterator[None]:
    """Tensors are made where the kernels run."""
    torch.manual_seed(0)
    with torch.device(DEVICE):
        yield


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each program has several tiles of what is small here. And Triton's interpreter holds bf16 as
    bits, and multiplies these as if they were integers.
    """
    monkeypatch.setattr(cuda_ops, "PROGRAMS", 2)
    if GPU:
        return
    from triton.runtime.interpreter import InterpreterBuilder, TensorHandle, tl

    def wide(x: Any) -> Any:
        if x.dtype.scalar != tl.bfloat16:
            return x
        return TensorHandle((x.data.astype(np.uint32) << 16).view(np.float32), tl.float32)

    usual = InterpreterBuilder.create_dot
    monkeypatch.setattr(
        InterpreterBuilder, "create_dot",
        lambda self, a, b, *others: usual(self, wide(a), wide(b), *others),
    )  # fmt: skip


FLEETS = pytest.mark.parametrize("fleet", [(), (3,)], ids=["one", "fleet"])


def same_as_torch(
    ours: Callable[..., Tensor], truth: Callable[..., Tensor], *inputs: Tensor
) -> None:
    """Value and gradients are those of torch, in float32 and in bf16; the truth is float64."""
    exact = [x.detach().double().requires_grad_() for x in inputs]
    true = truth(*exact)
    slope = numbers(*true.shape).detach()
    true.backward(slope.double())
    for dtype, allowed in ((torch.float32, 2e-5), (torch.bfloat16, 4 * 2**-8)):
        near = [x.detach().to(dtype).requires_grad_() for x in inputs]
        value = ours(*near)
        value.backward(slope.to(dtype))
        pairs = zip([value, *(x.grad for x in near)], [true, *(x.grad for x in exact)], strict=True)
        for mine, theirs in pairs:
            assert mine is not None
            assert theirs is not None
            assert mine.dtype == dtype
            assert (mine - theirs).abs().max() < allowed * theirs.abs().max()


def attended(packed: Tensor, query: Tensor | None, heads: int, causal: bool) -> Tensor:
    """Attention written out."""
    width = packed.shape[-1] // 3 if query is None else query.shape[-1]
    *first, key, value = packed.split(width, -1)
    queries = first[0] if query is None else query
    q, k, v = (x.unflatten(-1, (heads, -1)).transpose(-3, -2) for x in (queries, key, value))
    scores = q @ k.mT * (width // heads) ** -0.5
    if causal:
        seq, read = scores.shape[-1], scores.shape[-2]
        later = torch.ones(seq, seq, dtype=torch.bool).triu(1)[-read:]
        scores = scores.masked_fill(later, -torch.inf)
    return (scores.softmax(-1) @ v).transpose(-3, -2).flatten(-2)


@FLEETS
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(
    ("read", "seq", "heads", "width"),
    [(7, 7, 2, 16), (3, 10, 2, 16), (20, 20, 1, 32), (5, 5, 3, 48), (1, 61, 1, 16)],
)
def test_attention_is_that_of_torch(
    fleet: tuple[int, ...], causal: bool, read: int, seq: int, heads: int, width: int
) -> None:
    assert seq <= cuda_ops.longest_for(width)
    packed = numbers(*fleet, 2, seq, (3 if read == seq else 2) * heads * width)
    query = [] if read == seq else [numbers(*fleet, 2, read, heads * width)]
    same_as_torch(
        lambda packed, query=None: cuda_ops.attend(packed, query, heads, causal),
        lambda packed, query=None: attended(packed, query, heads, causal),
        packed,
        *query,
    )


def test_kernels_start_on_the_device_of_their_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[str, Tensor | None]] = []
    current: Tensor | None = None

    @contextmanager
    def device_of(x: Tensor) -> Iterator[None]:
        nonlocal current
        current = x
        yield
        current = None

    def kernel(name: str) -> Any:
        return defaultdict(lambda: lambda *given, **sizes: started.append((name, current)))

    names = {
        "attend_forward", "attend_backward", "gelu_backward", "norm_forward", "norm_backward",
        "sum_tiles", "sum_programs",
    }  # fmt: skip
    monkeypatch.setattr(torch.cuda, "device_of", device_of)
    for name in names:
        monkeypatch.setattr(cuda_ops, name, kernel(name))
    x, gain, square = numbers(2, 5, 32), numbers(32).requires_grad_(), numbers(32, 32)
    y, _ = cuda_ops.norm(x, gain, gain)
    z = cuda_ops.attend(torch.cat([y, y, y], -1), None, 2, True)
    cuda_ops.up_and_down(z, square, gain, square, gain).sum().backward()
    assert {name for name, _ in started} == names
    assert all(device is not None for _, device in started)


def test_attention_is_taken_where_a_multiprocessor_has_room() -> None:
    widths = (16, 48, 64, 128, 256, 1024)
    assert [cuda_ops.longest_for(width) for width in widths] == [64, 64, 64, 32, 16, 0]


@FLEETS
@pytest.mark.parametrize(("rows", "width"), [(9, 48), (40, 128)])
def test_norms_are_those_of_torch(fleet: tuple[int, ...], rows: int, width: int) -> None:
    def truth(x: Tensor, gain: Tensor, shift: Tensor) -> Tensor:
        gain, shift = (each[:, None, None] if fleet else each for each in (gain, shift))
        y = functional.layer_norm(x, (width,), eps=1e-5) * gain + shift
        return torch.stack([y, 2 * x])  # x passes beside the norm

    def ours(x: Tensor, gain: Tensor, shift: Tensor) -> Tensor:
        y, same = cuda_ops.norm(x, gain, shift)
        return torch.stack([y, 2 * same])

    inputs = numbers(*fleet, 5, rows, width), *(numbers(*fleet, width) for _ in range(2))
    same_as_torch(ours, truth, *inputs)


@FLEETS
@pytest.mark.parametrize("norm", ["layer", "none"])
@pytest.mark.parametrize(("kind", "read"), [("attention", 12), ("attention", 5), ("mlp", 12)])
def test_a_block_is_that_of_torch(
    fleet: tuple[int, ...], norm: str, kind: str, read: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast, exact = pair("torch", Model(layers=1, heads=2, d_model=32, norm=norm), fleet)
    fast.kernels, fast.longest, fast.mlp_in_kernels = CudaOps(), 16, True
    hold(fast, exact, kind, numbers(*fleet, 3, 12, 32), read)
    monkeypatch.setattr(CudaOps, kind, None)
    with pytest.raises(TypeError):  # torch did not compute it
        results(fast, kind, numbers(*fleet, 3, 12, 32), read, numbers(*fleet, 3, 12, 32))


@pytest.mark.cuda
@pytest.mark.parametrize("seeds", [(0,), (0, 1, 2)])
def test_gradients_of_a_step_are_as_exact_as_those_of_torch(seeds: tuple[int, ...]) -> None:
    experiment = Experiment(
        task=Retrieval(hops=3),
        model=Model(layers=3, heads=4, d_model=64, init="fan-in"),
        training=Training(batch=64, examples=256, validation_examples=8),
        seeds=seeds,
    )

    def gradients(precision: str) -> Tensor:
        trainer = Trainer(experiment, torch.device(DEVICE), precision)
        trainer.weights.refresh()
        total(trainer._losses(trainer._batch(0))).sum().backward()
        trainer.weights.collect()
        grad = trainer.weights.master.grad
        assert grad is not None
        return grad.double()

    exact, ours = gradients("float32"), gradients("bf16")
    with native.using("torch"):
        theirs = gradients("bf16")
    assert not torch.equal(ours, theirs)
    assert (ours - exact).norm() < 1.2 * (theirs - exact).norm()
