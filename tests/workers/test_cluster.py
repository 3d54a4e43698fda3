"""Ray as a pool: its settings, and what a machine answers. `test_pools.py` trains with it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hopscope import __version__
from hopscope.configs import Experiment
from hopscope.errors import ConfigError
from hopscope.runs import Stop
from hopscope.store import Store
from hopscope.workers import Job, cluster
from hopscope.workers.cluster import Cluster, connected, node_function, store_word


@pytest.fixture
def job(store: Store, tiny: Experiment) -> Job:
    return Job.of((tiny,), store, "cpu", 3)


@pytest.mark.slow
def test_what_no_machine_has_is_refused(ray: str, job: Job) -> None:
    for pool, asked in (
        (Cluster(ray, gpus=5), "1 CPUs and 5"),
        (Cluster(ray, cpus=2), "2 CPUs and 0"),
    ):
        line = f"{asked} GPUs, and no machine has that: .* has 1 CPUs and 4"
        with pytest.raises(ConfigError, match=line):
            pool.open([job], Stop()).__enter__()


@pytest.mark.slow
def test_a_machine_that_cannot_do_a_job_is_one_line(
    ray: str, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, mark, line in (
        ("store_word", lambda _: "another", "does not see the store"),
        ("__version__", "0.0.7", "this is 0.0.7: install the same version on every node"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(cluster, name, mark)
            refused = pytest.raises(ConfigError, match=f"^node .* {line}")
            with Cluster(ray, cpus=0.5).open([job], Stop()) as workers, refused:
                workers.begin(job).result(60)


def test_what_makes_no_sense_is_refused(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong, problem in (
        ({"gpus": 1.5}, "gpus is 1.5; expected 0 to 1, or a whole number"),
        ({"gpus": -1}, "gpus is -1"),
        ({"cpus": 0}, "cpus is 0; expected a number above 0"),
        ({"pack": 0}, "pack is 0; expected a number of models from 1 on"),
        ({"threads": 0}, "threads is 0; expected 1 to 1,024"),
        ({"threads": 2}, "threads is 2, but each job asks for 1 processors: ask for more"),
    ):
        with pytest.raises(ConfigError, match=problem):
            Cluster(**wrong)  # type: ignore[arg-type]
    for device, gpus, problem in (
        ("cuda", 0, "device is 'cuda', but gpus of each job is 0"),
        ("cuda:1", 1, "each worker is given its own GPU"),
    ):
        with pytest.raises(ConfigError, match=problem):
            Cluster(gpus=gpus).open([job.replace(device=device)], Stop()).__enter__()
    for address, problem in (
        ("127.0.0.1:1", "nothing answers at '127.0.0.1:1' .*; expected HOST:PORT of a Ray"),
        ("127.0.0.1:ray", "nothing answers at '127.0.0.1:ray'"),
        ("ray://127.0.0.1:1", "the address is 'ray://127.0.0.1:1'; expected HOST:PORT or auto"),
    ):
        with pytest.raises(ConfigError, match=problem):
            connected(address).__enter__()
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match="need the library ray .*: python -m pip install 'ray>="):
        connected("auto").__enter__()


def test_a_machine_has_room_for_so_many_jobs() -> None:
    for cpus, gpus, pool, jobs, share in (
        (8, 0, Cluster(cpus=2), 4, 2),
        (8, 0, Cluster(cpus=4, threads=2), 2, 2),
        (8, 1, Cluster(gpus=0.3), 3, 1),
        (8, 2, Cluster(gpus=0.6), 2, 1),  # no job has parts of two
        (8, 5, Cluster(gpus=2), 2, 1),
        (1, 4, Cluster(gpus=0.25), 1, 1),
        (1, 0, Cluster(cpus=0.5), 2, 1),
    ):
        assert (pool._fitting({"CPU": cpus, "GPU": gpus}), pool.job_threads) == (jobs, share), pool


def test_a_machine_that_cannot_do_a_job_says_why(
    store: Store, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.setenv(name, "of before")
    text, mark = job.model_dump_json(), store_word(store.root)
    assert store_word(store.root) == mark  # it stays
    with pytest.raises(
        ImportError, match=f"node .* has hopscope {__version__}, this is 0.0.7: ins"
    ):
        node_function(gpus=True, threads=1)(text, mark, "0.0.7")
    assert os.environ["OMP_NUM_THREADS"] == "3"
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "of before"  # as Ray has given them
    store.root.rename(store.root.with_name("elsewhere"))
    for _ in range(2):  # no folder; then a folder of the same name, with a word of its own
        with pytest.raises(
            ConfigError, match="node .* does not see the store .*: put it on a file"
        ):
            node_function(gpus=False, threads=1)(text, mark, __version__)
        store_word(store.root)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""


@pytest.mark.slow
def test_a_machine_without_hopscope_says_so(ray: str, job: Job, tmp_path: Path) -> None:
    """As Ray does: the code travels, not its name."""
    cloudpickle = pytest.importorskip("ray.cloudpickle")
    (tmp_path / "code").write_bytes(cloudpickle.dumps(node_function(gpus=False, threads=1)))
    (tmp_path / "job").write_text(job.model_dump_json())
    code = (
        "import pathlib, pickle, sys; sys.modules['hopscope'] = None;"
        "f = pickle.loads(pathlib.Path('code').read_bytes());"
        "f(pathlib.Path('job').read_text(), '', '')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert " has no hopscope (" in done.stderr.splitlines()[-1]
