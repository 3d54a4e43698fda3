"""Ray's pool, on two machines that are processes of this one; what every pool keeps to is in
`test_contract.py`.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hopscope.configs import Experiment, Model, Retrieval, Training
from hopscope.errors import ConfigError
from hopscope.runs import Stop, train
from hopscope.store import Store
from hopscope.store.lease import LEASE, leased
from hopscope.workers import Job, carry_out, session
from hopscope.workers.cluster import Cluster

TRAINING = Training(
    steps=6, batch=4, examples=16, checkpoint_every=4, validation_examples=4, precision="float32"
)
RECIPES = [
    Experiment(
        task=Retrieval(hops=1, chains=2),
        model=Model(layers=1, heads=1, d_model=8),
        training=TRAINING,
        seeds=(seed,),
    )
    for seed in range(2)
]


def weights(store: Store) -> list[bytes]:
    folders = [store.find(recipe.run_name()) for recipe in RECIPES]
    return [folder.read(name) for folder in folders for name in folder.files("checkpoints/")]


@pytest.mark.slow
def test_runs_on_two_machines_are_those_of_one(mini: Any, store: Store, tmp_path: Any) -> None:
    pool = Cluster(mini.address, gpus=0.25, cpus=0.5, pack=1)
    # A machine that another test killed is on Ray's list, beside the one in its place, until Ray
    # has noticed.
    until = time.monotonic() + 60
    while pool.slots != 4 and time.monotonic() < until:
        time.sleep(0.5)
    assert pool.slots == 4
    outcome = carry_out(RECIPES, store, device="cpu", workers=pool)
    assert outcome.troubles == ()
    assert [folder.name for folder in outcome.folders] == [each.run_name() for each in RECIPES]
    serial = Store(tmp_path / "serial")
    for recipe in RECIPES:
        train(recipe, serial, "cpu", threads=1)
    assert weights(store) == weights(serial)


@pytest.mark.slow
def test_what_no_machine_has_is_refused(mini: Any, store: Store) -> None:
    job = Job.of((RECIPES[0],), store, "cpu", 1)
    for pool, asked in (
        (Cluster(mini.address, gpus=5), "1 CPUs and 5"),
        (Cluster(mini.address, cpus=2), "2 CPUs and 0"),
    ):
        with pytest.raises(
            ConfigError, match=f"{asked} GPUs, and no machine has that: .* has 1 CPUs and 4"
        ):
            next(pool.reports([job], Stop()))


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"gpus": 1.5}, "gpus is 1.5; expected 0 to 1, or a whole number"),
        ({"gpus": -1}, "gpus is -1"),
        ({"cpus": 0}, "cpus is 0; expected a number above 0"),
        ({"pack": 0}, "pack is 0; expected auto, or a number of models from 1 on"),
        ({"threads": 0}, "threads is 0; expected 1 to 1,024"),
        ({"threads": 2}, "threads is 2, but each job asks for 1 processors: ask for more"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, int | float], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        Cluster(**wrong)  # type: ignore[arg-type]


def test_a_job_has_the_threads_that_it_asks_for() -> None:
    assert Cluster(cpus=0.5).share == 1
    assert Cluster(cpus=4).share == 4
    assert Cluster(cpus=4, threads=2).share == 2


@pytest.mark.parametrize(
    ("resources", "pool", "slots"),
    [
        ({"CPU": 8.0}, Cluster(cpus=2), 4),
        ({"CPU": 8.0}, Cluster(cpus=2, gpus=0.5), 0),
        ({"CPU": 8.0, "GPU": 1.0}, Cluster(gpus=0.3), 3),
        ({"CPU": 8.0, "GPU": 2.0}, Cluster(gpus=0.6), 2),  # no job has parts of two
        ({"CPU": 8.0, "GPU": 5.0}, Cluster(gpus=2), 2),
        ({"CPU": 1.0, "GPU": 4.0}, Cluster(gpus=0.25), 1),
    ],
)
def test_slots_are_what_a_machine_has_room_for(
    resources: dict[str, int | float], pool: Cluster, slots: int
) -> None:
    assert pool._fitting(resources) == slots


def test_a_gpu_is_asked_for_by_its_number(store: Store) -> None:
    job = Job.of((RECIPES[0],), store, "cuda", 1)
    with pytest.raises(ConfigError, match="device is 'cuda', but gpus of each job is 0"):
        next(Cluster().reports([job], Stop()))
    job = job.model_copy(update={"device": "cuda:1"})
    with pytest.raises(ConfigError, match="each worker is given a GPU of its own"):
        next(Cluster(gpus=1).reports([job], Stop()))


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("127.0.0.1:1", "nobody answers at '127.0.0.1:1' .*; expected HOST:PORT of a Ray"),
        ("127.0.0.1:ray", "nobody answers at '127.0.0.1:ray'"),
        ("ray://127.0.0.1:1", "the address is 'ray://127.0.0.1:1'; expected HOST:PORT or auto"),
    ],
)
def test_an_address_at_which_nobody_listens_is_one_line(address: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        _ = Cluster(address).slots


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
    with leased(own, "a Ray"):
        mark = json.loads((own / LEASE).read_text())
        for name, more in (("dead", {"born": "1"}), ("elsewhere", {"born": "1", "machine": "b"})):
            (tmp_path / f"hopscope-ray-{name}" / LEASE).write_text(json.dumps(mark | more))
        again = session._folder()
        there = {path.name for path in tmp_path.iterdir()}
        notes = {"hopscope-ray-notes.txt", "hopscope-ray-elsewhere"}
        assert there == {*theirs, *notes, own.name, again.name}


def test_where_machines_cannot_be_told_apart_folders_wait_for_their_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "LONGEST", 1_000)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("hopscope.store.lease._machine", lambda: "")  # as on macOS
    left = {name: tmp_path / f"hopscope-ray-{name}" for name in ("old", "new")}
    for name, seconds in (("old", 9_000), ("new", 0)):
        left[name].mkdir()
        (left[name] / LEASE).write_text(json.dumps({"pid": 1, "machine": "", "seconds": 60}))
        dated = time.time() - seconds
        os.utime(left[name] / LEASE, (dated, dated))
    session._folder()
    assert (left["old"].exists(), left["new"].exists()) == (False, True)


def test_without_ray_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"need the library ray .*: pip install 'hopscope\[clus"):
        _ = Cluster("auto").slots
