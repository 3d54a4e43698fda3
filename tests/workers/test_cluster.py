"""Ray's pool: what it refuses, what it leaves, and how a job arrives on another machine."""

import json
import os
import socket
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from hopscope import __version__
from hopscope.configs import Experiment
from hopscope.errors import ConfigError, StoreUnwritable
from hopscope.runs import Stop
from hopscope.store import Store
from hopscope.store.lock import LOCK, Holder, locked
from hopscope.workers import Job, arrival, session
from hopscope.workers.arrival import Mark, arrived, log_of
from hopscope.workers.cluster import Cluster
from hopscope.workers.job import Report
from hopscope.workers.session import connected
from hopscope.workers.shipped import shipped


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
            next(pool.reports([job], Stop()))


def test_what_makes_no_sense_is_refused(job: Job) -> None:
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
        ("cuda:1", 1, "each worker is given a GPU of its own"),
    ):
        with pytest.raises(ConfigError, match=problem):
            next(Cluster(gpus=gpus).reports([job.model_copy(update={"device": device})], Stop()))
    for address, problem in (
        ("127.0.0.1:1", "nobody answers at '127.0.0.1:1' .*; expected HOST:PORT of a Ray"),
        ("127.0.0.1:ray", "nobody answers at '127.0.0.1:ray'"),
        ("ray://127.0.0.1:1", "the address is 'ray://127.0.0.1:1'; expected HOST:PORT or auto"),
    ):
        with pytest.raises(ConfigError, match=problem):
            connected(address).__enter__()


def test_without_ray_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"need the library ray .*: pip install 'hopscope\[clus"):
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
        assert (pool._fitting({"CPU": cpus, "GPU": gpus}), pool.share) == (jobs, share), pool


def test_only_folders_that_dead_processes_left_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "LONGEST", 1_000)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    theirs = ("hopscope-20261122", "hopscope-99999999-results", "hopscope-ray-20261122")
    for name in (*theirs, "hopscope-ray-dead", "hopscope-ray-elsewhere"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "precious").write_text("numbers")
    (tmp_path / "hopscope-ray-notes.txt").write_text("words")
    own = session._folder()
    with locked(own, "a Ray"):
        for name, host in (("dead", socket.gethostname()), ("elsewhere", "b")):
            mark = Holder(host, 1, "x").written()
            (tmp_path / f"hopscope-ray-{name}" / LOCK).write_bytes(mark)
        again = session._folder()
        there = {path.name for path in tmp_path.iterdir()}
        notes = {"hopscope-ray-notes.txt", "hopscope-ray-elsewhere"}
        assert there == {*theirs, *notes, own.name, again.name}


def test_a_job_arrives_is_done_and_reported_as_text(
    store: Store, tiny: Experiment, job: Job
) -> None:
    mark = Mark.of(store)
    answer = json.loads(arrived(job.canonical_json(), mark.canonical_json()))
    (report,) = [Report(**fields) for fields in answer["reports"]]
    assert (report.name, report.state, answer["refused"]) == (tiny.run_name(), "complete", "")
    assert store.has_complete(tiny)
    assert Mark.of(store) == mark  # runs may come and go
    assert not log_of(job).exists()  # nothing was printed


def test_what_is_printed_there_is_kept(
    store: Store, job: Job, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def done(_: Job) -> list[Report]:
        os.write(1, b"by C\n")
        subprocess.run([sys.executable, "-c", "print('by another')"], check=True)
        warnings.warn("of torch", UserWarning, stacklevel=1)
        return []

    monkeypatch.setattr(arrival, "done", done)
    with warnings.catch_warnings(action="ignore"):
        arrived(job.canonical_json(), Mark.of(store).canonical_json())
    assert sorted(log_of(job).read_text().split("\n")) == ["", "by C", "by another"]
    print("afterwards")
    assert capfd.readouterr() == ("afterwards\n", "")


def test_a_store_that_takes_nothing_is_one_line(store: Store) -> None:
    with pytest.raises(StoreUnwritable, match="cannot write /sys/hopscope: "):
        Mark.of(Store(Path("/sys/hopscope")))  # where not even root can make a folder
    store.root.write_text("")
    with pytest.raises(StoreUnwritable, match="cannot write .*runs: a file is in the way"):
        Mark.of(store)


def test_a_machine_that_cannot_do_a_job_says_why(
    store: Store, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.setenv(name, "of before")
    text, mark = job.canonical_json(), Mark.of(store)

    def refused(gpus: bool, version: str = __version__) -> str:
        answer = json.loads(shipped(gpus=gpus)(text, mark.canonical_json(), version))
        assert answer["refused"].startswith("node ")
        return str(answer["refused"])

    words = f" has hopscope {__version__}, this is 0.0.7: install the same one on every node"
    assert refused(True, "0.0.7").endswith(words)
    assert os.environ["OMP_NUM_THREADS"] == "3"
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "of before"  # as Ray has given them
    moved = store.root.rename(store.root.with_name("elsewhere"))
    assert f"does not see the store {mark.path}: put it on a file system" in refused(False)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""
    Mark.of(Store(mark.path))  # a folder of the same name, with a word of its own
    assert "does not see the store" in refused(False)
    assert sorted(each.name for each in moved.iterdir()) == [".lock", ".store"]


def test_what_is_shipped_needs_nothing_but_python(job: Job, tmp_path: Path) -> None:
    """As Ray does: the code travels, not its name."""
    cloudpickle = pytest.importorskip("ray.cloudpickle")
    (tmp_path / "code").write_bytes(cloudpickle.dumps(shipped(gpus=False)))
    (tmp_path / "job").write_text(job.canonical_json())
    code = (
        "import pathlib, pickle, sys; sys.modules['hopscope'] = None;"
        "f = pickle.loads(pathlib.Path('code').read_bytes());"
        "print(f(pathlib.Path('job').read_text(), '', ''))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert " has no hopscope (" in json.loads(done.stdout)["refused"]
