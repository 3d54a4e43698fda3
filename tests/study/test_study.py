"""What is kept with a model of a run, from Python."""

from inspect import unwrap
from pathlib import Path

import numpy as np
import pytest

import hopscope
from hopscope.circuits import (
    Ablation,
    Ablator,
    CallbackModel,
    Circuit,
    Examples,
    Pattern,
    attention_maps,
    discover,
    examples_of,
)
from hopscope.circuits.pattern import MEAN
from hopscope.circuits.tracking import model_of
from hopscope.configs import Experiment, Model, NgramExperiment, Retrieval, Training
from hopscope.errors import CircuitError, ConfigError, RunReadOnly
from hopscope.models import Transformer
from hopscope.models.planted import Planted
from hopscope.runs import train
from hopscope.store import Store
from hopscope.study import Study, load, open_run

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
    expected = attention_maps(model.model, model.task, 8)
    assert np.array_equal(model.attention(8).own, expected.own)
    story = model.emergence(4)
    assert set(story.paths) == set(model.circuit.tracked)
    assert list(story.steps) == model.run.checkpoints
    with pytest.raises(RunReadOnly, match="--no-keep --save FILE writes it to a file"):
        model.discover()


def test_what_cannot_be_patched_is_refused_before_the_search(two_hops: Planted) -> None:
    def draw(*_: int) -> Examples:
        raise AssertionError("a search has begun")

    study = Study(two_hops.model, draw)
    for analysis in (study.patch, study.baselines):
        with pytest.raises(CircuitError, match="draws no minimal pairs"):
            analysis()
    callback = CallbackModel(lambda inputs, _: inputs, two_hops.model, (3, 3))
    with pytest.raises(CircuitError, match="cannot replace head outputs"):
        Study(callback, two_hops.task).patch()


def test_any_model_and_task_are_studied_alike(two_hops: Planted) -> None:
    study = Study(two_hops.model, two_hops.task)
    found = study.discover(examples=16)
    assert found == discover(two_hops.model, two_hops.task, examples=16)
    assert study.circuit is found
    assert study.patch(examples=8).account is not None
    assert study.circuit.account is not None
    examples = examples_of(two_hops.task, 12)
    ablator = Ablator(two_hops.model, examples)
    one = study.ablate("1.0", "2.0=mean", examples=12)
    wanted = ablator.losses(
        [Ablation(), Ablation.of({(1, 0): Pattern(), (2, 0): Pattern(rest=MEAN)})]
    ).mean(1)
    assert one.model == pytest.approx(wanted[0].tolist())
    assert one.rows[0].losses == pytest.approx(wanted[1].tolist())
    assert one.rows[0].rise.mean == pytest.approx(float((wanted[1] - wanted[0]).mean()))
    assert len(study.ablate(examples=4).rows) == 3 * 5  # every head, in five ways
    with pytest.raises(CircuitError, match="an interval needs at least 2"):
        study.ablate("1.0", examples=1)
    assert study.compare(study).first == ()
    found = study.circuit
    with pytest.raises(CircuitError, match="circuit was found in another model"):
        study.view(load("gallery/demo").circuit)
    assert study.circuit is found
    with pytest.raises(CircuitError, match="has one checkpoint"):
        study.emergence()


def test_checkpoints_from_elsewhere_are_a_series(two_hops: Planted) -> None:
    """Given as models, or as what loads one."""
    early = Transformer(two_hops.model.config, two_hops.model.interface)
    study = Study.series({20: lambda: two_hops.model, 3: early}, two_hops.task)
    assert study.model is two_hops.model
    study.discover(examples=16)
    story = study.emergence(8)
    assert list(story.steps) == [3, 20]
    assert all(step is not None for _, step in story.order)
    series = unwrap(Study.series.__func__)  # type: ignore[attr-defined]
    for models, line in (
        ({}, "a series got no checkpoint"),
        ([early], "a series got a list; expected {step: model, …}"),
        ({3: "early.pt"}, "at step 3 is a str; expected a model"),
        *(({step: early}, "expected a whole number") for step in ("20", -3, 2.5)),
    ):
        with pytest.raises(CircuitError, match=line):
            series(Study, models, two_hops.task)


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
    with pytest.raises(CircuitError, match="the history belongs to a fleet: hopscope.load"):
        model_of(open_run(name, fleet), 10, None)  # as for a Study of a member with this history
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
    with pytest.raises(
        CircuitError, match=r"has no circuit yet: `hopscope circuit \S+ --store \S+ --seed 5`"
    ):
        _ = model.circuit
    out = str(tmp_path / "beside.json")
    beside = model.discover(out=out, examples=8, force=True)
    assert not model.has_circuit
    assert Circuit.load(out) == beside
    kept = model.discover(examples=8, force=True)
    assert kept == beside
    again = load("retrieval", seed=5, store=fleet)
    assert again.circuit == kept
    assert not load("retrieval", seed=3, store=fleet).has_circuit


def test_a_run_of_another_kind_is_opened(store: Store) -> None:
    ngram = NgramExperiment.model_validate({"descent": DESCENT})
    run = train(ngram, store)
    assert open_run("ngram", store=store).folder.path == run.folder.path
    with pytest.raises(ConfigError, match="a run of kind ngram, which has no model to study"):
        load("ngram", store=store)


def test_what_is_not_there_or_was_not_asked_for_rightly_is_one_line(fleet: Store) -> None:
    study = load("gallery/demo")
    for ask, error, line in (
        (lambda: unwrap(Store.find)(Store(), study), ConfigError, "by text, as 'gallery/demo'"),
        (lambda: study.view(save=""), ConfigError, "save is empty; expected FILE.html"),
        (lambda: load("gallery/demo", step=100).circuit, CircuitError, "demo --step 100` finds it"),
    ):
        with pytest.raises(error, match=line):
            ask()
