"""What a machine says that cannot do a job, and what it does before it begins one."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hopscope import __version__
from hopscope.configs import Experiment
from hopscope.store import Store
from hopscope.workers.arrival import Mark
from hopscope.workers.job import Job
from hopscope.workers.shipped import Carried, shipped


@pytest.fixture
def job(store: Store) -> str:
    return Job.of((Experiment(),), store, "cpu", 3).canonical_json()


@pytest.fixture
def carried(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Carried]:
    """The function, in an environment that is put back."""
    for name in ("OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.setenv(name, "of before")
    return shipped


def test_another_version_is_refused(
    carried: Callable[..., Carried], job: str, store: Store
) -> None:
    answer = json.loads(carried(gpus=True)(job, Mark.of(store).canonical_json(), "0.0.7"))
    words = f" has hopscope {__version__}, this is 0.0.7: install the same one on every node"
    assert answer["refused"].startswith("node ")
    assert answer["refused"].endswith(words)
    assert os.environ["OMP_NUM_THREADS"] == "3"
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "of before"  # as Ray has given them


def test_a_job_that_asks_for_no_gpu_sees_none(
    carried: Callable[..., Carried], job: str, store: Store
) -> None:
    carried(gpus=False)(job, Mark.of(store).canonical_json(), "0.0.7")
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""


def test_a_machine_without_the_store_is_refused(
    carried: Callable[..., Carried], job: str, store: Store
) -> None:
    mark = Mark.of(store)
    moved = store.root.rename(store.root.with_name("elsewhere"))
    answer = json.loads(carried(gpus=False)(job, mark.canonical_json(), __version__))
    assert f"does not see the store {mark.path}: put it on a file system" in answer["refused"]
    Mark.of(Store(mark.path))  # a folder of the same name, with a lock of its own
    answer = json.loads(carried(gpus=False)(job, mark.canonical_json(), __version__))
    assert "does not see the store" in answer["refused"]
    assert sorted(each.name for each in moved.iterdir()) == [".lock"]


def test_it_needs_nothing_but_python(job: str, store: Store, tmp_path: Path) -> None:
    """As Ray does: the code travels, not its name."""
    cloudpickle = pytest.importorskip("ray.cloudpickle")
    (tmp_path / "code").write_bytes(cloudpickle.dumps(shipped(gpus=False)))
    (tmp_path / "job").write_text(job)
    code = (
        "import pathlib, pickle, sys; sys.modules['hopscope'] = None;"
        "f = pickle.loads(pathlib.Path('code').read_bytes());"
        "print(f(pathlib.Path('job').read_text(), '', ''))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert " has no hopscope (" in json.loads(done.stdout)["refused"]
