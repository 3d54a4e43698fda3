import pytest
import torch

from hopscope.configs import Training
from hopscope.training.precision import device_of, precision_of


@pytest.mark.parametrize(("native", "expected"), [(True, "bf16"), (False, "float32")])
def test_auto_is_bf16_only_where_it_is_native(
    monkeypatch: pytest.MonkeyPatch, native: bool, expected: str
) -> None:
    cpu = torch.device("cpu")
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: native)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    assert precision_of(Training(), cpu) == expected
    assert precision_of(Training(precision="float32"), cpu) == "float32"
    assert precision_of(Training(precision="bf16"), cpu) == "bf16"


@pytest.mark.parametrize(("native", "expected"), [(True, "bf16"), (False, "float32")])
def test_nor_is_it_emulated_on_a_gpu(
    monkeypatch: pytest.MonkeyPatch, native: bool, expected: str
) -> None:
    def supported(including_emulation: bool = True) -> bool:
        return native or including_emulation

    monkeypatch.setattr(torch.cuda, "is_bf16_supported", supported)
    assert precision_of(Training(), torch.device("cuda")) == expected


def test_auto_device_is_there() -> None:
    expected = "cuda" if torch.cuda.is_available() else "cpu"
    assert device_of("auto").type == expected
