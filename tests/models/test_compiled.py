"""Which path is taken: what the processor can do, what is asked for, what cannot be had."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from hopscope.errors import ConfigError, RunWarning
from hopscope.models import compiled, kernels, operations

FRESH = "from hopscope.models import compiled; print(compiled.path())"


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Nothing that was found out about this processor holds."""
    caches = compiled.loaded, compiled.possible, compiled.usual, compiled.why_no_triton
    for each in caches:
        each.cache_clear()
    yield monkeypatch
    for each in caches:
        each.cache_clear()


def processor(
    monkeypatch: pytest.MonkeyPatch, tiles: bool, permitted: bool = True, compiler: bool = True
) -> None:
    """One with AVX-512 BF16."""
    library = SimpleNamespace(hopscope_ask_for_tiles=lambda: int(permitted))
    monkeypatch.setattr(compiled, "loaded", lambda: library if compiler else None)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: tiles)


def test_an_amd_processor_has_no_tiles(elsewhere: pytest.MonkeyPatch) -> None:
    processor(elsewhere, tiles=False)
    assert compiled.possible() == ("avx512", "torch")


def test_an_intel_processor_has_tiles(elsewhere: pytest.MonkeyPatch) -> None:
    processor(elsewhere, tiles=True)
    assert compiled.possible() == ("amx", "avx512", "torch")


def test_tiles_that_are_not_permitted_are_not_used(elsewhere: pytest.MonkeyPatch) -> None:
    processor(elsewhere, tiles=True, permitted=False)
    assert compiled.possible() == ("avx512", "torch")


def test_without_a_compiler_there_is_torch(elsewhere: pytest.MonkeyPatch) -> None:
    elsewhere.setattr(compiled, "find_spec", lambda _: None)
    assert compiled.possible() == ("torch",)


def test_without_avx512_there_is_torch(elsewhere: pytest.MonkeyPatch) -> None:
    elsewhere.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    assert compiled.possible() == ("torch",)


def test_the_best_path_is_usual(elsewhere: pytest.MonkeyPatch) -> None:
    elsewhere.delenv(compiled.VARIABLE, raising=False)
    assert compiled.path() == compiled.possible()[0]


@pytest.mark.parametrize("path", compiled.possible())
def test_the_environment_names_a_path(elsewhere: pytest.MonkeyPatch, path: str) -> None:
    elsewhere.setenv(compiled.VARIABLE, path)
    assert compiled.path() == path


def test_the_environment_of_a_process_names_a_path() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FRESH], env={compiled.VARIABLE: "torch"}, capture_output=True,
        text=True, check=True, cwd=Path(compiled.__file__).parents[2],
    )  # fmt: skip
    assert done.stdout.strip() == "torch"


def test_a_path_is_taken_inside_and_not_outside() -> None:
    before = compiled.path()
    with compiled.using("torch"):
        assert compiled.path() == "torch"
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
    with pytest.raises(ConfigError) as caught:
        compiled.path()
    assert str(caught.value) == (
        "HOPSCOPE_KERNELS: got 'fast', expected amx, avx512 or torch (possible here: avx512, torch)"
    )


@pytest.mark.parametrize(("path", "compiler"), [("amx", True), ("amx", False), ("avx512", False)])
def test_an_impossible_path_is_refused(
    elsewhere: pytest.MonkeyPatch, path: str, compiler: bool
) -> None:
    processor(elsewhere, tiles=False, compiler=compiler)
    elsewhere.setenv(compiled.VARIABLE, path)
    with pytest.raises(ConfigError, match=f"HOPSCOPE_KERNELS: '{path}' cannot be taken here"):
        compiled.path()
    with (
        pytest.raises(ConfigError, match=f"using: '{path}' cannot be taken here"),
        compiled.using(path),
    ):
        pass


def test_a_library_that_cannot_be_loaded_is_left_aside(
    elsewhere: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "_kernels.so"
    broken.write_bytes(b"not a library")
    elsewhere.setattr(compiled, "find_spec", lambda _: SimpleNamespace(origin=str(broken)))
    elsewhere.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
    with pytest.warns(UserWarning, match="kernels in C cannot be loaded"):
        assert compiled.possible() == ("torch",)


@pytest.mark.skipif(
    shutil.which("cc") is None or not torch.cpu._is_avx512_bf16_supported(),
    reason="no C compiler, or a processor without AVX-512 BF16",
)
def test_an_installation_has_them() -> None:
    assert "avx512" in compiled.possible()


def test_why_there_is_nothing_better_than_vectors(elsewhere: pytest.MonkeyPatch) -> None:
    elsewhere.delenv(compiled.VARIABLE, raising=False)
    processor(elsewhere, tiles=False)
    assert compiled.why_none_better() == "the processor has no AMX"
    compiled.possible.cache_clear()
    processor(elsewhere, tiles=True, permitted=False)
    assert "the system does not permit the tiles" in compiled.why_none_better()


def test_why_there_is_nothing_better_than_torch(elsewhere: pytest.MonkeyPatch) -> None:
    elsewhere.delenv(compiled.VARIABLE, raising=False)
    elsewhere.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
    elsewhere.setattr(compiled, "find_spec", lambda _: None)
    assert "were not compiled: install gcc 11 or later" in compiled.why_none_better()
    elsewhere.setattr(compiled, "loaded", lambda: None)
    elsewhere.setattr(compiled, "find_spec", lambda _: SimpleNamespace(origin="/none.so"))
    assert "cannot be loaded: install hopscope again" in compiled.why_none_better()
    elsewhere.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    assert compiled.why_none_better() == "the processor has no AVX-512 BF16"


def test_nothing_is_better_than_tiles(elsewhere: pytest.MonkeyPatch) -> None:
    elsewhere.delenv(compiled.VARIABLE, raising=False)
    processor(elsewhere, tiles=True)
    assert compiled.why_none_better() == ""


def test_a_path_that_is_forced_says_so(elsewhere: pytest.MonkeyPatch) -> None:
    elsewhere.setenv(compiled.VARIABLE, "torch")
    processor(elsewhere, tiles=True)
    told = compiled.why_none_better()
    assert told.startswith("HOPSCOPE_KERNELS forces it; amx is possible here")


def test_a_gpu_takes_triton_unless_torch_is_named(elsewhere: pytest.MonkeyPatch) -> None:
    elsewhere.delenv(compiled.VARIABLE, raising=False)
    gpu = torch.device("cuda")
    elsewhere.setattr(compiled, "triton_runs", lambda device: True)
    processor(elsewhere, tiles=False)
    assert (compiled.path_on(gpu), compiled.path_on(torch.device("cpu"))) == ("triton", "avx512")
    with compiled.using("torch"):
        assert compiled.path_on(gpu) == "torch"
    assert compiled.path_on(torch.device("meta")) == "torch"
    processor(elsewhere, tiles=False, compiler=False)
    for known in (compiled.possible, compiled.usual):
        known.cache_clear()
    assert (compiled.path_on(gpu), compiled.path()) == ("triton", "torch")
    elsewhere.setenv(compiled.VARIABLE, "torch")
    compiled.usual.cache_clear()
    assert compiled.path_on(gpu) == "torch"


@pytest.mark.parametrize(
    ("there", "capability", "triton", "runs"),
    [(True, (9, 0), True, True), (True, (8, 0), True, True), (True, (7, 5), True, False),
     (True, (9, 0), False, False), (False, (9, 0), True, False)],
)  # fmt: skip
def test_triton_runs_on_a_gpu_that_multiplies_bf16(
    elsewhere: pytest.MonkeyPatch,
    there: bool,
    capability: tuple[int, int],
    triton: bool,
    runs: bool,
) -> None:
    elsewhere.setattr(torch.cuda, "is_available", lambda: there)
    asked: list[torch.device] = []
    elsewhere.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    elsewhere.setattr(compiled, "find_spec", lambda _: object() if triton else None)
    elsewhere.setattr(compiled, "try_triton", asked.append)
    gpu = torch.device("cuda:1")
    assert [compiled.triton_runs(gpu) for _ in range(2)] == [runs, runs]
    assert asked == [gpu] * runs  # and of another GPU it says nothing


def test_triton_that_cannot_compile_leaves_the_work_to_torch(
    elsewhere: pytest.MonkeyPatch,
) -> None:
    def fails(device: torch.device) -> None:
        raise RuntimeError("Failed to find C compiler. Please specify via CC environment variable")

    elsewhere.delenv(compiled.VARIABLE, raising=False)
    elsewhere.setattr(torch.cuda, "is_available", lambda: True)
    elsewhere.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    elsewhere.setattr(compiled, "find_spec", lambda _: object())
    elsewhere.setattr(compiled, "try_triton", fails)
    with pytest.warns(RunWarning, match="Failed to find C compiler.*: install gcc and") as said:
        assert compiled.gpu_path(torch.device("cuda")) == "torch"
    assert compiled.gpu_path(torch.device("cuda")) == "torch"
    (warning,) = said
    assert len(str(warning.message)) <= 200


def test_torch_that_has_lost_its_queries_has_no_kernels(elsewhere: pytest.MonkeyPatch) -> None:
    elsewhere.delattr(torch.cpu, "_is_avx512_bf16_supported")
    elsewhere.delattr(torch.cpu, "_is_amx_tile_supported")
    assert compiled.possible() == ("torch",)
