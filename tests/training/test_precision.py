import re

import pytest
import torch

from hopscope.configs import Training
from hopscope.errors import ConfigError
from hopscope.training.device import device_of, precision_of


@pytest.mark.parametrize(("native", "expected"), [(True, "bf16"), (False, "float32")])
def test_auto_is_bf16_only_where_it_is_native(
    monkeypatch: pytest.MonkeyPatch, native: bool, expected: str
) -> None:
    cpu, second = torch.device("cpu"), torch.device("cuda:1")

    def capability(device: torch.device) -> tuple[int, int]:
        return (8, 0) if native and device == second else (7, 5)

    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: native)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    monkeypatch.setattr(torch.cuda, "get_device_capability", capability)
    for device in (cpu, second):
        assert precision_of(Training(), device) == expected
        for asked in ("float32", "bf16"):
            assert precision_of(Training(precision=asked), device) == asked


def gpus(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)


def test_any_gpu_that_is_there_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus(monkeypatch, 2)
    for name in ("cpu", "cuda", "cuda:0", "cuda:1"):
        assert device_of(name) == torch.device(name)
    assert device_of("auto") == torch.device("cuda")
    gpus(monkeypatch, 0)
    assert device_of("auto") == torch.device("cpu")


@pytest.mark.parametrize(
    ("name", "count", "text"),
    [
        ("cuda", 0, "device is 'cuda', but torch sees no GPU: use --device cpu"),
        ("cuda:7", 2, "but torch sees cuda:0, cuda:1: use one of these, or --device cpu"),
        ("cuda:128", 1, "'cuda:128', but torch sees cuda:0: use"),
        ("gpu9", 1, "device is 'gpu9'; expected auto, cpu, cuda or cuda:N"),
        ("cpu:0", 1, "expected auto, cpu, cuda or cuda:N"),
        ("cuda:", 1, "expected auto, cpu, cuda or cuda:N"),
    ],
)
def test_a_device_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, count: int, text: str
) -> None:
    gpus(monkeypatch, count)
    with pytest.raises(ConfigError, match=re.escape(text)):
        device_of(name)
