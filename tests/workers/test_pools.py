"""What every pool of workers keeps to: the same outcomes in the same order as one by one."""

from collections.abc import Callable
from pathlib import Path

import pytest
from stopping import content

from hopscope.configs import Experiment, LmBench, NgramExperiment, Prompts
from hopscope.errors import ConfigError, LmError, RunDamaged, StoreUnwritable
from hopscope.machine import cores
from hopscope.runs import Stop, train
from hopscope.store import Store
from hopscope.store.manifest import MANIFEST
from hopscope.workers import Here, Job, Processes, carry_out
from hopscope.workers.cluster import Cluster
from hopscope.workers.job import do
from hopscope.workers.pools import Pool

PACK = 2
POOLS: dict[str, Callable[[str], Pool]] = {
    "here": lambda _: Here(1, threads=1),
    "here, packed": lambda _: Here(PACK, threads=1),
    "processes, packed": lambda _: Processes(2, PACK, threads=1),
    "ray, packed": lambda ray: Cluster(ray, gpus=0.25, cpus=0.5, pack=PACK),
}
BENCH = LmBench(model="nobody-7b", prompts=(Prompts(formulation="f1"),))
"""A recipe of a model that nobody has."""
DAMAGED, COMPLETE = 1, 3
"""Which of the five are so before all the others are carried out."""
Recipes = tuple[Experiment, ...]


SLOW = ("processes, packed", "ray, packed")


@pytest.fixture(
    params=["here", "here, packed", *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]
)
def pool(request: pytest.FixtureRequest) -> Pool:
    if "processes" in request.param and cores() < 2:
        pytest.skip("needs two cores")
    address = request.getfixturevalue("ray") if "ray" in request.param else ""
    return POOLS[request.param](address)


@pytest.fixture(scope="session")
def serial(
    tmp_path_factory: pytest.TempPathFactory, five: Recipes, ngram: NgramExperiment
) -> dict[object, Store]:
    """The runs of the others, one after the other in this process: alone, and as fleets."""
    alone, packed = (Store(tmp_path_factory.mktemp("serial")) for _ in range(2))
    left = [each for n, each in enumerate(five) if n not in (DAMAGED, COMPLETE)]
    left.sort(key=lambda each: each.seeds)
    for each in left:
        train(each, alone, "cpu", threads=1)
    for first, last in ((0, 1), (1, 3)):  # the other of the first pack is damaged
        do(Job.of(tuple(left[first:last]), packed, "cpu", 1))
    for store in (alone, packed):
        train(ngram, store, "cpu", threads=1)
    return {1: alone, PACK: packed}


def whole(store: Store, name: str) -> dict[str, object]:
    """All that a run is, but for the clock: its files, and how they were computed."""
    folder = store.find(name)
    return {**content(folder), MANIFEST: folder.manifest.model_dump(exclude={"seconds"})}


def test_the_runs_are_those_of_one_after_the_other(
    pool: Pool, store: Store, serial: dict[object, Store], five: Recipes, ngram: NgramExperiment
) -> None:
    """Of every kind. What fails stops no other, and what is complete is untouched."""
    complete = train(five[COMPLETE], store, "cpu", threads=1).folder
    before = {path: path.stat().st_mtime_ns for path in complete.path.rglob("*")}
    (store.create(five[DAMAGED]).path / MANIFEST).write_text("{}")
    outcome = carry_out((*five, BENCH, ngram), store, device="cpu", workers=pool)
    names = [each.run_name() for each in (*five, ngram)]
    sound = [name for name in names if name != names[DAMAGED]]
    assert [folder.name for folder in outcome.folders] == sound
    damaged, refused = outcome.troubles
    assert (type(damaged), type(refused)) == (RunDamaged, LmError)
    assert names[DAMAGED] in str(damaged)
    assert str(refused).startswith("no model 'nobody-7b': expected one of ")
    assert str(refused).isprintable()
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert sorted(store.names()) == sorted(names)
    expected = serial[pool.pack]
    for name in expected.names():
        assert whole(store, name) == whole(expected, name)
    assert len(expected.names()) == 4


def test_what_a_pool_is_asked_in_vain(store: Store, five: Recipes) -> None:
    pools = {name: POOLS[name]("") for name in POOLS if cores() > 1 or "processes" not in name}
    for name, pool in pools.items():
        with pytest.raises(ConfigError, match="recipes 1 and 6 are the same run, .*: leave"):
            carry_out((*five, five[0]), store, workers=pool)
        if "ray" not in name:  # it asks first: `test_cluster.py`
            outcome = carry_out(five, store, Stop(0.0), device="cpu", workers=pool)
            assert (outcome.folders, outcome.wanted, outcome.troubles) == ((), 5, ())
        assert store.names() == [], name
    # In /sys not even root can make a folder.
    (trouble,) = carry_out(five[:1], Store(Path("/sys/hopscope")), workers=Here()).troubles
    assert isinstance(trouble, StoreUnwritable)
    assert str(trouble).startswith("cannot write /sys/hopscope: ")
    assert "\n" not in str(trouble)
