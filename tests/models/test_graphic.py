"""The kernels for a GPU, held to plain torch: interpreted on a CPU, compiled where there is one."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from hopscope import models
from hopscope.configs import Experiment, Model, Retrieval, Training
from hopscope.models import compiled, graphic
from hopscope.tasks import total
from hopscope.training.learner import Learner

pytest.importorskip("triton", reason="Triton is there for Linux alone")
GPU = torch.cuda.is_available()
"""Without one, Triton interprets its kernels (`conftest.py` says so before anybody imports it)."""
DEVICE = "cuda" if GPU else "cpu"
pytestmark = [pytest.mark.cuda] if GPU else []


@pytest.fixture(autouse=True, scope="module")
def _on_the_device() -> Iterator[None]:
    """Tensors are made where the kernels run."""
    with torch.device(DEVICE):
        yield


FLEETS = pytest.mark.parametrize("fleet", [(), (3,)], ids=["one", "fleet"])


def numbers(*shape: int) -> Tensor:
    """Different ones for each place, with a gradient."""
    generator = torch.Generator().manual_seed(sum(shape))
    drawn = torch.randn(shape, generator=generator, device="cpu")
    return drawn.to(torch.get_default_device()).requires_grad_()


def same(ours: Tensor | None, theirs: Tensor) -> None:
    """Equal but for the order in which numbers were added."""
    assert ours is not None
    torch.testing.assert_close(ours, theirs.detach(), atol=1e-4, rtol=1e-4)


def attended(
    joined: Tensor, query: Tensor | None, heads: int, causal: bool
) -> tuple[Tensor, Tensor]:
    """Attention written out, and the log-sums of its softmax."""
    width = joined.shape[-1] // 3 if query is None else query.shape[-1]
    *first, key, value = joined.split(width, -1)
    asked = first[0] if query is None else query
    q, k, v = (x.unflatten(-1, (heads, -1)).transpose(-3, -2) for x in (asked, key, value))
    scores = q @ k.mT * (width // heads) ** -0.5
    if causal:
        seq, read = scores.shape[-1], scores.shape[-2]
        later = torch.ones(seq, seq, dtype=torch.bool).triu(1)[-read:]
        scores = scores.masked_fill(later, -torch.inf)
    brought = (scores.softmax(-1) @ v).transpose(-3, -2).flatten(-2)
    return brought, scores.logsumexp(-1)


@FLEETS
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(
    ("read", "seq", "heads", "width"),
    [(7, 7, 2, 16), (3, 10, 2, 16), (20, 20, 1, 32), (5, 5, 3, 48), (1, 61, 1, 16)],
)
def test_attention_is_that_of_torch(
    fleet: tuple[int, ...], causal: bool, read: int, seq: int, heads: int, width: int
) -> None:
    assert graphic.fits(seq, width)
    joined = numbers(*fleet, 2, seq, (3 if read == seq else 2) * heads * width)
    query = None if read == seq else numbers(*fleet, 2, read, heads * width)
    truth, sums = attended(joined, query, heads, causal)
    slope = numbers(*truth.shape).detach()
    asked = [joined, *([] if query is None else [query])]
    gradients = torch.autograd.grad(truth, asked, slope)
    given = joined.detach(), None if query is None else query.detach()
    out, logsum = graphic.attend(*given, heads, causal)
    same(out, truth)
    same(logsum, sums)
    ours = graphic.attend_back(*given, logsum, causal, slope)
    for mine, theirs in zip(ours, gradients, strict=query is not None):
        same(mine, theirs)


def test_kernels_start_on_the_device_of_their_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[str, Tensor | None]] = []
    current: Tensor | None = None

    @contextmanager
    def device_of(x: Tensor) -> Iterator[None]:
        nonlocal current
        current = x
        yield
        current = None

    class Kernels:
        def __getattr__(self, name: str) -> Any:
            return defaultdict(lambda: lambda *given, **sizes: started.append((name, current)))

    monkeypatch.setattr(torch.cuda, "device_of", device_of)
    monkeypatch.setattr(models, "triton_kernels", Kernels(), raising=False)
    x, gain = numbers(2, 5, 32).detach(), numbers(32).detach()
    _, statistics = graphic.norm(x, gain, gain, 1e-5)
    graphic.norm_back(x, gain, statistics, x)
    joined, square = numbers(2, 5, 96).detach(), numbers(32, 32).detach()
    _, logsum = graphic.attend(joined, None, 2, causal=True)
    graphic.attend_back(joined, None, logsum, True, x)
    graphic.mlp_back(x, x, square, square, x)
    assert {name for name, _ in started} == {
        "attend", "attend_back", "gelu_back", "norm", "norm_back", "sum_rows", "total",
    }  # fmt: skip
    assert all(device is not None for _, device in started)


def test_attention_is_taken_where_a_multiprocessor_has_room() -> None:
    fit = [(44, 16), (28, 128), (64, 64), (64, 128), (128, 16)]
    assert [graphic.fits(*sizes) for sizes in fit] == [True, True, True, False, False]


@FLEETS
@pytest.mark.parametrize(("rows", "width"), [(9, 48), (300, 128)])
def test_norms_are_those_of_torch(fleet: tuple[int, ...], rows: int, width: int) -> None:
    x, gain, shift = numbers(*fleet, 5, rows, width), *(numbers(*fleet, width) for _ in range(2))
    gains, shifts = (each[:, None, None] if fleet else each for each in (gain, shift))
    truth = functional.layer_norm(x, (width,), eps=1e-5) * gains + shifts
    slope = numbers(*truth.shape).detach()
    y, statistics = graphic.norm(x.detach(), gain.detach(), shift.detach(), 1e-5)
    same(y, truth)
    ours = graphic.norm_back(x.detach(), gain.detach(), statistics, slope)
    for mine, theirs in zip(ours, torch.autograd.grad(truth, [x, gain, shift], slope), strict=True):
        same(mine / rows, theirs / rows)


def mapped(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """W x + b, of a fleet or of one."""
    weights = weight[:, None] if weight.ndim > 2 else weight
    return x @ weights.mT + (bias[:, None, None] if bias.ndim > 1 else bias)


@FLEETS
def test_affine_maps_and_mlps_are_those_of_torch(fleet: tuple[int, ...]) -> None:
    x = numbers(*fleet, 5, 9, 48)
    up, up_bias = numbers(*fleet, 160, 48), numbers(*fleet, 160)
    down, down_bias = numbers(*fleet, 48, 160), numbers(*fleet, 48)
    weights = [up, up_bias, down, down_bias]
    hidden = mapped(x, up, up_bias)
    truth = mapped(functional.gelu(hidden), down, down_bias)
    slope, at = numbers(*truth.shape).detach(), numbers(*hidden.shape).detach()
    given, plain = x.detach(), [each.detach() for each in weights]

    same(graphic.affine(given, *plain[:2]), hidden)
    back = graphic.affine_back(given, plain[0], at)
    its = torch.autograd.grad(hidden, [x, up, up_bias], at, retain_graph=True)
    for mine, theirs in zip(back, its, strict=True):
        same(mine / 50, theirs / 50)

    y, kept = graphic.mlp(given, (plain[0], plain[1]), (plain[2], plain[3]))
    same(y / 50, truth / 50)
    of_up, of_down = graphic.mlp_back(given, kept, plain[0], plain[2], slope)
    its = torch.autograd.grad(truth, [x, *weights], slope)
    for mine, theirs in zip([*of_up, *of_down], its, strict=True):
        same(mine / 100, theirs / 100)


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
        learner = Learner(experiment, torch.device(DEVICE), precision)
        learner.weights.refresh()
        total(learner._losses(learner._batch(0))).sum().backward()
        learner.weights.collect()
        grad = learner.weights.master.grad
        assert grad is not None
        return grad.double()

    exact, ours = gradients("float32"), gradients("bf16")
    with compiled.using("torch"):
        theirs = gradients("bf16")
    assert not torch.equal(ours, theirs)
    assert (ours - exact).norm() < 1.2 * (theirs - exact).norm()
