"""Which path is taken: what the processor can do, what is asked for, what cannot be had."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from hopscope.errors import ConfigError, RunWarning
from hopscope.models import compiled, kernels, operations

CACHES = compiled.loaded, compiled.possible, compiled.usual, compiled.why_no_triton


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Nothing that was found out about this processor holds."""
    monkeypatch.delenv(compiled.VARIABLE, raising=False)
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
    monkeypatch.setattr(compiled, "loaded", lambda: library if compiler else None)
    monkeypatch.setattr(compiled, "find_spec", lambda _: library if compiler else None)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: tiles)
    for each in (compiled.possible, compiled.usual):
        each.cache_clear()


@pytest.mark.parametrize(
    ("tiles", "permitted", "compiler", "possible", "none_better"),
    [
        (False, True, True, ("avx512", "torch"), "the processor has no AMX"),
        (True, True, True, ("amx", "avx512", "torch"), None),
        (True, False, True, ("avx512", "torch"), "the system does not permit the tiles"),
        (True, True, False, ("torch",), "were not compiled: install gcc 11 or later"),
    ],
    ids=["AMD", "Intel", "not permitted", "no compiler"],
)
def test_the_best_path_is_taken_unless_the_environment_names_one(
    elsewhere: pytest.MonkeyPatch, tiles: bool, permitted: bool, compiler: bool,
    possible: tuple[str, ...], none_better: str | None,
) -> None:  # fmt: skip
    processor(elsewhere, tiles, permitted, compiler)
    assert compiled.possible() == possible
    assert compiled.path() == possible[0]
    said = compiled.why_none_better()
    assert said == "" if none_better is None else none_better in said
    for path in ("amx", "avx512", "torch"):
        elsewhere.setenv(compiled.VARIABLE, path)
        compiled.usual.cache_clear()
        if path in possible:
            assert compiled.path() == path
            forced = f"HOPSCOPE_KERNELS forces it; {possible[0]} is possible here"
            assert (forced in compiled.why_none_better()) == (path != possible[0])
        else:
            with pytest.raises(ConfigError, match=f"HOPSCOPE_KERNELS: '{path}' cannot be taken"):
                compiled.path()
            with pytest.raises(ConfigError, match=f"'{path}' cannot"), compiled.using(path):
                pass


def test_a_path_is_taken_inside_and_not_outside() -> None:
    before = compiled.path()
    with compiled.using("torch"):
        with compiled.using(before):
            assert compiled.path() == before
        assert compiled.path() == "torch"
    assert compiled.path() == before


@pytest.mark.skipif(compiled.possible() == ("torch",), reason="there are no kernels here")
def test_each_path_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether tiles are asked for, and whether anything of ours is called."""
    calls = []
    monkeypatch.setattr(operations, "run", lambda _, task: calls.append(bool(task.tiles)))
    x, weight, bias = (torch.ones(s, dtype=torch.bfloat16) for s in ((1, 2, 64), (64, 64), (64,)))
    for path in compiled.possible():
        with compiled.using(path):
            if kernels.suit_affine(x, weight, bias):
                kernels.affine(x, weight, bias)
    assert calls == [path == "amx" for path in compiled.possible() if path != "torch"]


def test_an_unknown_path_is_refused(elsewhere: pytest.MonkeyPatch) -> None:
    processor(elsewhere, tiles=False)
    elsewhere.setenv(compiled.VARIABLE, "fast")
    with pytest.raises(ConfigError, match=r"got 'fast', .* \(possible here: avx512, torch\)"):
        compiled.path()


def test_without_vectors_or_a_library_there_is_torch(
    elsewhere: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "_kernels.so"
    broken.write_bytes(b"not a library")
    elsewhere.setattr(compiled, "find_spec", lambda _: SimpleNamespace(origin=str(broken)))
    elsewhere.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
    with pytest.warns(UserWarning, match="kernels in C cannot be loaded"):
        assert compiled.possible() == ("torch",)
    assert "cannot be loaded: install hopscope again" in compiled.why_none_better()
    elsewhere.delattr(torch.cpu, "_is_avx512_bf16_supported")  # a torch that lost its queries
    compiled.possible.cache_clear()
    assert compiled.possible() == ("torch",)
    assert compiled.why_none_better() == "the processor has no AVX-512 BF16"


@pytest.mark.skipif(
    shutil.which("cc") is None or not torch.cpu._is_avx512_bf16_supported(),
    reason="no C compiler, or a processor without AVX-512 BF16",
)
def test_an_installation_has_them() -> None:
    assert "avx512" in compiled.possible()


def test_a_gpu_takes_triton_unless_torch_is_named(elsewhere: pytest.MonkeyPatch) -> None:
    gpu = torch.device("cuda")
    elsewhere.setattr(compiled, "triton_runs", lambda device: True)
    processor(elsewhere, tiles=False)
    assert (compiled.path_on(gpu), compiled.path_on(torch.device("cpu"))) == ("triton", "avx512")
    with compiled.using("torch"):
        assert compiled.path_on(gpu) == "torch"
    assert compiled.path_on(torch.device("meta")) == "torch"
    processor(elsewhere, tiles=False, compiler=False)
    assert (compiled.path_on(gpu), compiled.path()) == ("triton", "torch")
    elsewhere.setenv(compiled.VARIABLE, "torch")
    compiled.usual.cache_clear()
    assert compiled.path_on(gpu) == "torch"


def test_triton_runs_on_a_gpu_that_multiplies_bf16(elsewhere: pytest.MonkeyPatch) -> None:
    gpu = torch.device("cuda:1")
    for there, capability, triton, runs in (
        (True, (9, 0), True, True), (True, (8, 0), True, True), (True, (7, 5), True, False),
        (True, (9, 0), False, False), (False, (9, 0), True, False),
    ):  # fmt: skip
        asked: list[torch.device] = []
        gpu_with(elsewhere, asked.append, there, capability, triton)
        compiled.why_no_triton.cache_clear()
        assert [compiled.triton_runs(gpu) for _ in range(2)] == [runs, runs], (there, capability)
        assert asked == [gpu] * runs  # and of another GPU it says nothing


def gpu_with(
    monkeypatch: pytest.MonkeyPatch, tried: object, there: bool = True,
    capability: tuple[int, int] = (9, 0), triton: bool = True,
) -> None:  # fmt: skip
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(compiled, "find_spec", lambda _: object() if triton else None)
    monkeypatch.setattr(compiled, "try_triton", tried)


def test_triton_that_cannot_compile_leaves_the_work_to_torch(
    elsewhere: pytest.MonkeyPatch,
) -> None:
    def fails(device: torch.device) -> None:
        raise RuntimeError("Failed to find C compiler. Please specify via CC environment variable")

    gpu_with(elsewhere, fails)
    with pytest.warns(RunWarning, match="Failed to find C compiler.*: install gcc and") as said:
        assert compiled.gpu_path(torch.device("cuda")) == "torch"
    assert compiled.gpu_path(torch.device("cuda")) == "torch"
    (warning,) = said
    assert len(str(warning.message)) <= 200
