"""What every pool of workers keeps to: the same outcomes in the same order as one by one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hopscope.configs import (
    Experiment,
    LlmBench,
    MarkovExperiment,
    Model,
    Prompts,
    Recipe,
    Retrieval,
    Training,
)
from hopscope.errors import ConfigError, ModelUnavailable, RunDamaged, StoreUnwritable
from hopscope.machine import cores
from hopscope.runs import Stop, train
from hopscope.store import Store
from hopscope.store.manifest import MANIFEST
from hopscope.workers import Here, Job, Pool, Processes, carry_out, done
from hopscope.workers.cluster import Cluster

PACK = 2
POOLS: dict[str, Callable[[], Pool]] = {
    "here": lambda: Here(threads=1),
    "here, packed": lambda: Here(PACK, threads=1),
    "processes, packed": lambda: Processes(2, PACK, threads=1),
}
RAY = "two machines of a Ray, packed"
TRAINING = Training(
    steps=6, batch=4, examples=16, checkpoint_every=4, validation_examples=4, precision="float32"
)


def recipe(seed: int) -> Experiment:
    return Experiment(
        task=Retrieval(hops=1, chains=2),
        model=Model(layers=1, heads=1, d_model=8),
        training=TRAINING,
        seeds=(seed,),
    )


RECIPES: tuple[Recipe, ...] = tuple(map(recipe, (2, 0, 1, 4, 3)))
NAMES = [each.run_name() for each in RECIPES]
DESCENT = {"chains": 60, "validation_chains": 20, "records": 4, "epochs": (4, 4, 4)}
NGRAM = MarkovExperiment.model_validate({"descent": DESCENT})
BENCH = LlmBench(model="nobody-7b", prompts=(Prompts(formulation="f1"),))
"""Recipes of other kinds: one that is carried out, and one of a model that nobody has."""
DAMAGED, COMPLETE = 1, 3
"""Which of them are so before all the others are carried out."""


@pytest.fixture(params=[*POOLS, pytest.param(RAY, marks=pytest.mark.slow)])
def pool(request: pytest.FixtureRequest) -> Pool:
    if request.param == RAY:
        return Cluster(request.getfixturevalue("mini").address, cpus=0.5, pack=PACK)
    if "processes" in request.param and cores() < 2:
        pytest.skip("needs two cores")
    return POOLS[request.param]()


@pytest.fixture(scope="session")
def serial(tmp_path_factory: pytest.TempPathFactory) -> dict[object, Store]:
    """The runs of the others, one after the other in this process: alone, and as fleets."""
    alone, packed = (Store(tmp_path_factory.mktemp("serial")) for _ in range(2))
    left = [each for n, each in enumerate(RECIPES) if n not in (DAMAGED, COMPLETE)]
    for each in left:
        train(each, alone, "cpu", threads=1)
    for first, last in ((0, 1), (1, 3)):  # pieces of nearly one size
        done(Job.of(tuple(left[first:last]), packed, "cpu", 1))
    for store in (alone, packed):
        train(NGRAM, store, "cpu", threads=1)
    return {1: alone, PACK: packed}


def content(store: Store, name: str) -> dict[str, object]:
    """All that a run is, but for the clock: its files, and how they were computed."""
    folder = store.find(name)
    files = {file: folder.read(file) for file in folder.manifest.files}
    return {**files, MANIFEST: folder.manifest.model_dump(exclude={"seconds"})}


def test_the_runs_are_those_of_one_after_the_other(
    pool: Pool, store: Store, serial: dict[object, Store]
) -> None:
    """Of every kind. What fails stops no other, and what is complete is untouched."""
    complete = train(RECIPES[COMPLETE], store, "cpu", threads=1).folder
    before = {path: path.stat().st_mtime_ns for path in complete.path.rglob("*")}
    (store.create(RECIPES[DAMAGED]).path / MANIFEST).write_text("{}")
    outcome = carry_out((*RECIPES, BENCH, NGRAM), store, device="cpu", workers=pool)
    whole = [name for name in (*NAMES, NGRAM.run_name()) if name != NAMES[DAMAGED]]
    assert [folder.name for folder in outcome.folders] == whole
    damaged, refused = outcome.troubles
    assert (type(damaged), type(refused)) == (RunDamaged, ModelUnavailable)
    assert NAMES[DAMAGED] in str(damaged)
    assert str(refused).startswith("no model 'nobody-7b'")
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert sorted(store.names()) == sorted((*NAMES, NGRAM.run_name()))
    expected = serial[pool.pack]
    for name in expected.names():
        assert content(store, name) == content(expected, name)
    assert len(expected.names()) == 4


def test_one_run_twice_is_a_mistake(pool: Pool, store: Store) -> None:
    with pytest.raises(ConfigError, match=f"recipes 1 and 6 are the same run, {NAMES[0]}: leave"):
        carry_out((*RECIPES, RECIPES[0]), store, workers=pool)
    assert store.names() == []


def test_without_time_nothing_is_begun(pool: Pool, store: Store) -> None:
    outcome = carry_out(RECIPES, store, Stop(0.0), device="cpu", workers=pool)
    assert (outcome.folders, outcome.wanted, outcome.troubles) == ((), 5, ())
    assert store.names() == []


@pytest.mark.parametrize("name", POOLS)
def test_a_store_that_takes_nothing_is_one_line(name: str) -> None:
    """In /sys not even root can make a folder. Ray's pool asks first: `test_arrival.py`."""
    store = Store(Path("/sys/hopscope"))
    if "processes" in name and cores() < 2:
        pytest.skip("needs two cores")
    (trouble,) = carry_out(RECIPES[:1], store, device="cpu", workers=POOLS[name]()).troubles
    assert isinstance(trouble, StoreUnwritable)
    assert str(trouble).startswith("cannot write /sys/hopscope: ")
    assert "\n" not in str(trouble)
