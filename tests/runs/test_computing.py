import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import pytest
import torch
from stopping import Stops, changed, content

from hopscope.configs import Experiment, Model
from hopscope.errors import ConfigError, Interrupted, RunWarning
from hopscope.models import native
from hopscope.runs.computing import note_computing, processor, using_threads
from hopscope.store import RunFolder, Store
from hopscope.training import train


def stopped(store: Store, tiny: Experiment, threads: int | None = None) -> RunFolder:
    with pytest.raises(Interrupted):
        train(tiny, store, watcher=Stops(7), threads=threads)
    return store.create(tiny)


def test_threads_are_set_within_the_block_alone() -> None:
    before = torch.get_num_threads()
    with using_threads(before + 1):
        assert torch.get_num_threads() == before + 1
        with using_threads(None):
            assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


def test_threads_that_make_no_sense_leave_no_run(store: Store, tiny: Experiment) -> None:
    for count in (0, -1, 100_000):
        with pytest.raises(ConfigError, match=f"threads is {count}; expected 1 to 1,024"):
            train(tiny, store, threads=count)
        assert store.names() == []


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is there for Linux alone")
def test_what_a_gpu_computed_is_noted_under_its_name(
    store: Store, tiny: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(native.VARIABLE, raising=False)
    monkeypatch.setattr(native, "why_no_triton", lambda device: "")
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"GPU at {device}")
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    folder = store.create(tiny)
    assert note_computing(folder, torch.device("cuda:1")) == ""
    (stretch,) = folder.manifest.computed
    assert (stretch.kernels, stretch.processor) == (f"triton {version('triton')}", "GPU at cuda:1")
    assert stretch.torch == f"{torch.__version__}, CUDA 13.0"


def test_a_run_goes_on_with_its_threads_and_notes_how_it_was_computed(
    tmp_path: Path, tiny: Experiment
) -> None:
    threads = 2
    whole = train(tiny, tmp_path / "whole", threads=threads)
    stopped(Store(tmp_path / "cut"), tiny, threads)
    with using_threads(threads + 1):  # something else in this process wanted more
        resumed = train(tiny, tmp_path / "cut")
        assert torch.get_num_threads() == threads + 1
    assert content(resumed.folder) == content(whole.folder)
    (stretch,) = resumed.folder.manifest.computed
    assert (stretch.first, stretch.threads, stretch.torch) == (0, threads, torch.__version__)
    assert stretch.processor == processor() != ""


def test_what_changes_the_bits_is_said_and_noted(store: Store, tiny: Experiment) -> None:
    stopped(store, tiny, 1)
    line = r"goes on from step 7 with threads 2 \(before: 1\): the last bits .* will differ"
    with pytest.warns(RunWarning, match=line):
        run = train(tiny, store, threads=2)
    noted = [(each.first, each.threads) for each in run.folder.manifest.computed]
    assert noted == [(0, 1), (7, 2)]


BUSY = "while True: pass"


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_load_changes_no_bit(
    tmp_path: Path, tiny: Experiment, threads: int, precision: Literal["float32", "bf16"]
) -> None:
    """With shapes large enough that threads share the sums."""
    larger = changed(tiny, batch=64, precision=precision, steps=8)
    larger = larger.replace(model=Model(layers=2, heads=2, d_model=128))
    whole = train(larger, tmp_path / "whole", threads=threads)
    others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(2)]
    try:
        stopped(Store(tmp_path / "cut"), larger, threads)
        resumed = train(larger, tmp_path / "cut")
    finally:
        for other in others:
            other.kill()
            other.wait()
    assert content(resumed.folder) == content(whole.folder)
