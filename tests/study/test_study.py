"""What is kept with a model of a run, from Python."""

from inspect import unwrap
from pathlib import Path

import numpy as np
import pytest

import hopscope
from hopscope.circuits import Circuit, attention_maps
from hopscope.configs import Experiment, Model, NgramExperiment, Retrieval, Training
from hopscope.errors import CircuitError, ConfigError, RunReadOnly
from hopscope.runs import train
from hopscope.store import Store
from hopscope.study import Study, load

TRAINING = Training(
    steps=20, batch=4, examples=16, checkpoint_every=10, checkpoint_at=(18, 19),
    validation_examples=4, validate_every=1, precision="float32",
)  # fmt: skip
FLEET = Experiment(
    task=Retrieval(hops=1, chains=2),
    model=Model(layers=2, heads=1, d_model=8),
    training=TRAINING,
    seeds=(3, 5),
)
DESCENT = {"chains": 60, "validation_chains": 20, "records": 4, "epochs": (4, 4, 4)}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("study"))
    train(FLEET, store)
    return store


def test_a_gallery_model_has_its_circuit_maps_and_story() -> None:
    model = hopscope.load("gallery/demo")
    assert isinstance(model, Study)
    assert model.has_circuit
    assert model.circuit.paths
    maps = model.maps(8)
    expected = attention_maps(model.model, model.task, 8)
    assert np.array_equal(np.asarray(maps.own), np.asarray(expected.own))
    story = model.emergence(4)
    assert set(story.paths) == set(model.circuit.paths)
    assert list(story.steps) == model.run.checkpoints
    with pytest.raises(RunReadOnly, match="--out FILE keeps the circuit in a file"):
        model.discover()


def test_members_of_separate_runs_are_those_of_the_other_seeds(tmp_path: Path) -> None:
    seeds = [FLEET.model_copy(update={"seeds": (seed,)}) for seed in (5, 3)]
    other = FLEET.model_copy(update={"seeds": (4,), "model": Model(layers=1, heads=1, d_model=8)})
    for recipe in (*seeds, other):
        train(recipe, tmp_path)
    found = load(seeds[0].run_name(), store=tmp_path, step=10).members()
    assert [(each.seed, each.step) for each in found] == [(3, 10), (5, 10)]
    assert found[1].run.name == seeds[0].run_name()


def test_members_and_steps_of_a_fleet(fleet: Store) -> None:
    name = FLEET.run_name()
    first, second = load("retrieval", store=fleet).members()
    assert (first.seed, second.seed) == (3, 5)
    assert (first.name, second.name) == (f"{name}-seed-3", f"{name}-seed-5")
    early = load("retrieval", seed=5, step=10, store=fleet)
    assert early.name == f"{name}-seed-5-step-10"
    assert early.circuit_file == "circuit-seed-5-step-10.json"
    own, other = (dict(each.model.named_parameters()) for each in (second, early))
    assert any(bool((own[key] != other[key]).any()) for key in own)


def test_the_best_step_has_the_lowest_late_loss(fleet: Store) -> None:
    for model in load("retrieval", store=fleet).members():
        calm = model.best_late_checkpoint()
        late = {step: load("retrieval", model.seed, step, fleet) for step in (18, 19, 20)}
        losses = {step: each.validation_loss() for step, each in late.items()}
        assert calm.step == min(losses, key=losses.__getitem__)
        assert calm.seed == model.seed


def test_a_circuit_is_found_kept_and_read_again(fleet: Store, tmp_path: Path) -> None:
    model = load("retrieval", seed=5, store=fleet)
    assert not model.has_circuit
    assert model.heads_of_circuit() == set()
    with pytest.raises(CircuitError, match=r"has no circuit yet: `hopscope discover \S+ --seed 5`"):
        _ = model.circuit
    beside = model.discover(out=tmp_path / "beside.json", examples=8, force=True)
    assert not model.has_circuit
    assert Circuit.from_json((tmp_path / "beside.json").read_bytes()) == beside
    kept = model.discover(examples=8, force=True)
    assert kept == beside
    again = load("retrieval", seed=5, store=fleet)
    assert again.circuit == kept
    assert again.heads_of_circuit() == {head for each in kept.components for head in each.at}
    assert not load("retrieval", seed=3, store=fleet).has_circuit


def test_a_run_of_another_kind_is_the_run(store: Store) -> None:
    ngram = NgramExperiment.model_validate({"descent": DESCENT})
    run = train(ngram, store)
    assert load("ngram", store=store).folder.path == run.folder.path
    with pytest.raises(ConfigError, match="a run of kind ngram, which has no model to choose"):
        load("ngram", seed=0, store=store)


def test_what_is_not_there_or_was_not_asked_for_rightly_is_one_line(
    fleet: Store, tmp_path: Path
) -> None:
    study = load("gallery/demo")
    for ask, error, line in (
        (
            lambda: load("retrieval", 4, store=fleet),
            ConfigError,
            "seed is 4; .* has the seeds 3, 5",
        ),
        (
            lambda: load("retrieval", step=12, store=fleet),
            ConfigError,
            "step is 12; .* has no checkpoint there, the nearest is 10",
        ),
        (
            lambda: unwrap(Store.find)(Store(), study),
            ConfigError,
            "by text, as 'gallery/demo'; got",
        ),
        (
            lambda: unwrap(Study._member)(study, "0"),
            ConfigError,
            "seed is '0'; gallery/demo has the seeds 0",
        ),
        (
            lambda: unwrap(Study._step)(study, 100.0),
            ConfigError,
            r"step is 100\.0; expected a whole num",
        ),
        (lambda: load("gallery/demo", step=100).circuit, CircuitError, "demo --step 100` finds it"),
        (lambda: study.circuit.save(tmp_path / "c.svg"), CircuitError, "circuit is saved as JSON"),
        (
            lambda: study.circuit.pattern(7, 3),
            CircuitError,
            r"no head 7\.3 in this circuit: its last is 2\.3",
        ),
    ):
        with pytest.raises(error, match=line):
            ask()
    assert not list(tmp_path.iterdir())


def test_a_circuit_is_kept_in_a_file_named_by_text(tmp_path: Path) -> None:
    out = str(tmp_path / "circuit.json")
    found = load("gallery/demo").discover(out=out, examples=16)
    assert Circuit.load(out) == found
