"""Which backend is taken: what the processor can do, what is asked for, what cannot be had."""

import ctypes
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from hopscope.errors import ConfigError, RunWarning
from hopscope.models import native

LIBRARY = native.library
CACHES = LIBRARY, native.possible, native.why_no_triton


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Nothing that was found out about this processor holds."""
    monkeypatch.delenv(native.VARIABLE, raising=False)
    for each in CACHES:
        each.cache_clear()
    yield monkeypatch
    for each in CACHES:
        each.cache_clear()


def processor(
    monkeypatch: pytest.MonkeyPatch, tiles: bool, permitted: bool = True, compiler: bool = True
) -> None:
    """One with AVX-512 BF16."""
    library = SimpleNamespace(hopscope_ask_for_tiles=lambda: int(permitted))
    monkeypatch.setattr(native, "library", (lambda: (library, "")) if compiler else LIBRARY)
    monkeypatch.setattr(native, "find_spec", lambda _: None)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: tiles)
    for each in CACHES[:2]:
        each.cache_clear()


@pytest.mark.parametrize(
    ("tiles", "permitted", "compiler", "possible", "none_better"),
    [
        (False, True, True, ("avx512", "torch"), "the processor has no AMX"),
        (True, True, True, ("amx", "avx512", "torch"), None),
        (True, False, True, ("avx512", "torch"), "the system does not permit AMX"),
        (True, True, False, ("torch",), "were not compiled: install gcc 11 or later"),
    ],
    ids=["AMD", "Intel", "not permitted", "no compiler"],
)
def test_the_best_backend_is_taken_unless_the_environment_names_one(
    elsewhere: pytest.MonkeyPatch, tiles: bool, permitted: bool, compiler: bool,
    possible: tuple[str, ...], none_better: str | None,
) -> None:  # fmt: skip
    processor(elsewhere, tiles, permitted, compiler)
    assert native.possible() == possible
    assert native.backend() == possible[0]
    said = native.why_none_better()
    assert said == "" if none_better is None else none_better in said
    elsewhere.setenv(native.VARIABLE, "fast")
    with pytest.raises(ConfigError, match=f"got 'fast', .*possible here: {', '.join(possible)}"):
        native.backend()
    for backend in ("amx", "avx512", "torch"):
        elsewhere.setenv(native.VARIABLE, backend)
        if backend in possible:
            assert native.backend() == backend
            forced = f"HOPSCOPE_KERNELS forces it; {possible[0]} is possible here"
            assert (forced in native.why_none_better()) == (backend != possible[0])
        else:
            with pytest.raises(
                ConfigError, match=f"HOPSCOPE_KERNELS: '{backend}' is not available here"
            ):
                native.backend()
            with (
                pytest.raises(ConfigError, match=f"'{backend}' is not available"),
                native.using(backend),
            ):
                pass


def test_a_backend_is_taken_inside_and_not_outside() -> None:
    before = native.backend()
    with native.using("torch"):
        with native.using(before):
            assert native.backend() == before
        assert native.backend() == "torch"
    assert native.backend() == before


def test_without_vectors_or_a_library_there_is_torch(
    elsewhere: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "_kernels.so"
    broken.write_bytes(b"not a library")
    elsewhere.setattr(native, "find_spec", lambda _: SimpleNamespace(origin=str(broken)))
    elsewhere.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
    with pytest.warns(RunWarning, match="kernels in C cannot be used"):
        assert native.possible() == ("torch",)
    assert "cannot be used: install hopscope again" in native.why_none_better()
    elsewhere.delattr(torch.cpu, "_is_avx512_bf16_supported")  # a torch that lost its queries
    for each in CACHES[:2]:
        each.cache_clear()
    assert native.possible() == ("torch",)
    assert native.why_none_better() == "the processor has no AVX-512 BF16"


@pytest.mark.skipif(native.library()[0] is None, reason="no kernels in C here")
def test_a_library_with_other_structs_is_not_used(elsewhere: pytest.MonkeyPatch) -> None:
    class Grown(native.MlpSublayer):
        _fields_ = (("more", ctypes.c_void_p),)

    structs = native.STRUCTS
    assert native.library()[0] is not None
    for others in ((*structs[:2], Grown), (*structs, Grown)):
        elsewhere.setattr(native, "STRUCTS", others)
        native.library.cache_clear()
        native.possible.cache_clear()
        with pytest.warns(RunWarning, match="compiled from another version of hopscope; install"):
            assert native.possible() == ("torch",)


@pytest.mark.skipif(
    shutil.which("cc") is None or not torch.cpu._is_avx512_bf16_supported(),
    reason="no C compiler, or a processor without AVX-512 BF16",
)
def test_an_installation_has_them() -> None:
    assert "avx512" in native.possible()


def test_a_gpu_takes_triton_unless_torch_is_named(elsewhere: pytest.MonkeyPatch) -> None:
    gpu = torch.device("cuda")
    elsewhere.setattr(native, "why_no_triton", lambda device: "")
    processor(elsewhere, tiles=False)
    assert (native.backend_on(gpu), native.backend_on(torch.device("cpu"))) == ("triton", "avx512")
    with native.using("torch"):
        assert native.backend_on(gpu) == "torch"
    assert native.backend_on(torch.device("meta")) == "torch"
    processor(elsewhere, tiles=False, compiler=False)
    assert (native.backend_on(gpu), native.backend()) == ("triton", "torch")
    elsewhere.setenv(native.VARIABLE, "torch")
    assert native.backend_on(gpu) == "torch"


def test_triton_runs_on_a_gpu_that_multiplies_bf16(elsewhere: pytest.MonkeyPatch) -> None:
    for there, capability, triton, runs in (
        (True, (8, 0), True, True), (True, (7, 5), True, False), (True, (9, 0), False, False),
        (False, (9, 0), True, False),
    ):  # fmt: skip
        asked: list[torch.device] = []
        gpu_with(elsewhere, asked.append, there, capability, triton)
        native.why_no_triton.cache_clear()
        why = [native.why_no_triton(torch.device("cuda:1")) for _ in range(2)]
        assert [not each for each in why] == [runs, runs], (there, capability)
        assert asked == [torch.device("cuda:1")] * runs  # once, and on this GPU


def gpu_with(
    monkeypatch: pytest.MonkeyPatch, tried: object, there: bool = True,
    capability: tuple[int, int] = (9, 0), triton: bool = True,
) -> None:  # fmt: skip
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(native, "find_spec", lambda _: object() if triton else None)
    monkeypatch.setattr(native, "try_triton", tried)


def test_triton_that_cannot_compile_leaves_the_work_to_torch(
    elsewhere: pytest.MonkeyPatch,
) -> None:
    def fails(device: torch.device) -> None:
        raise RuntimeError("Failed to find C compiler. Please specify via CC environment variable")

    gpu_with(elsewhere, fails)
    with pytest.warns(RunWarning, match="Failed to find C compiler.*: install gcc and") as said:
        assert native.gpu_backend(torch.device("cuda")) == "torch"
    assert native.gpu_backend(torch.device("cuda")) == "torch"
    (warning,) = said
    assert len(str(warning.message)) <= 200
