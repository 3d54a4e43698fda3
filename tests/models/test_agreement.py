from typing import Any

import pytest
from backends import BACKENDS
from torch import Tensor

from hopscope.models import native
from hopscope.models.agreement import agreements
from hopscope.models.fused_blocks import FusedBlocks


def test_the_kernels_of_this_machine_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    found = agreements()
    assert [each.backend for each in found] == BACKENDS
    for each in found:
        assert 0 < each.error < each.allowed < 0.05
        assert each.agrees
    monkeypatch.setattr(native, "possible", lambda: ("torch",))
    assert agreements() == []


@pytest.mark.cuda
def test_the_kernels_of_a_gpu_agree() -> None:
    gpu = agreements()[-1]
    assert gpu.backend == "triton"
    assert 0 < gpu.error < gpu.allowed < 0.05


@pytest.mark.skipif(not BACKENDS, reason="there are no kernels here")
@pytest.mark.parametrize("factor", [1.05, float("nan")])
def test_a_kernel_that_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    usual = FusedBlocks.attention

    def attention(*arguments: Any) -> Tensor:
        return usual(*arguments) * factor

    monkeypatch.setattr(FusedBlocks, "attention", attention)
    assert not any(each.agrees for each in agreements())
