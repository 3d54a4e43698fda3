"""What every pool of workers keeps to: the same outcomes in the same order as one by one."""

from pathlib import Path

import pytest

from hopscope.configs import Experiment, Model, Recipe, Retrieval, Training
from hopscope.errors import ConfigError, RunDamaged
from hopscope.runs import train
from hopscope.store import Store
from hopscope.store.manifest import MANIFEST
from hopscope.workers import Here, Pool, carry_out

POOLS = {"here": Here()}
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


RECIPES: tuple[Recipe, ...] = tuple(map(recipe, (2, 0, 1)))
NAMES = [each.run_name() for each in RECIPES]


@pytest.fixture(params=POOLS)
def pool(request: pytest.FixtureRequest) -> Pool:
    return POOLS[request.param]


@pytest.fixture(scope="session")
def serial(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The runs of all recipes, trained one after the other."""
    store = Store(tmp_path_factory.mktemp("serial"))
    for each in RECIPES:
        train(each, store, "cpu", threads=1)
    return store


def content(store: Store, name: str) -> dict[str, object]:
    """All that a run is, but for the clock: its files, and how they were computed."""
    folder = store.find(name)
    files = {file: folder.read(file) for file in folder.manifest.files}
    return {**files, MANIFEST: folder.manifest.model_dump(exclude={"seconds"})}


def test_the_runs_are_those_of_one_after_the_other(pool: Pool, store: Store, serial: Store) -> None:
    outcome = carry_out(RECIPES, store, device="cpu", threads=1, workers=pool)
    assert outcome.complete
    assert [folder.name for folder in outcome.folders] == NAMES
    assert [content(store, name) for name in NAMES] == [content(serial, name) for name in NAMES]
    assert sorted(store.names()) == sorted(NAMES)


def test_a_damaged_run_stops_no_other_and_what_is_complete_is_untouched(
    pool: Pool, store: Store
) -> None:
    complete = train(RECIPES[2], store, "cpu", threads=1).folder
    (store.create(RECIPES[0]).path / MANIFEST).write_text("{}")
    before = {path: path.stat().st_mtime_ns for path in Path(complete.path).rglob("*")}
    outcome = carry_out(RECIPES, store, device="cpu", threads=1, workers=pool)
    assert [folder.name for folder in outcome.folders] == NAMES[1:]
    (trouble,) = outcome.troubles
    assert isinstance(trouble, RunDamaged)
    assert NAMES[0] in str(trouble)
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_one_run_twice_is_a_mistake(pool: Pool, store: Store) -> None:
    with pytest.raises(ConfigError, match=f"recipes 1 and 3 are the same run, {NAMES[0]}: leave"):
        carry_out((*RECIPES[:2], RECIPES[0]), store, workers=pool)
    assert store.names() == []
