"""Two runs side by side, held against each of them alone."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import hopscope
from hopscope.circuits.saved import checkpoint_digest, circuit_file
from hopscope.configs import Experiment, Model, NgramExperiment, Retrieval, Training
from hopscope.errors import ConfigError, RunDamaged, RunMissing
from hopscope.milestones import learned, learned_below
from hopscope.plots.piece import pieces_of
from hopscope.runs import train
from hopscope.store import Store
from hopscope.store.gallery import find
from hopscope.study import compare
from hopscope.training import Run

TINY = Experiment(
    task=Retrieval(hops=1, chains=2),
    model=Model(layers=2, heads=1, d_model=8),
    training=Training(
        steps=12, batch=4, examples=16, checkpoint_every=6, validation_examples=4,
        validate_every=3, precision="float32",
    ),
)  # fmt: skip
FLEET = TINY.model_copy(update={"seeds": (1, 2), "task": Retrieval(hops=2, chains=4)})


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("compared"))
    train(TINY, store)
    train(FLEET, store)
    return store


def test_settings_and_losses_are_those_of_each_run(trained: Store) -> None:
    found = compare(TINY.run_name(), FLEET.run_name(), trained)
    assert found.names == (TINY.run_name(), FLEET.run_name())
    assert found.settings == {"task.hops": (1, 2), "task.chains": (2, 4), "seeds": ([0], [1, 2])}
    data = found.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert list(found.losses) == ["hop 1", "hop 2"]
    for side, recipe in enumerate((TINY, FLEET)):
        run = Run(trained.find(recipe.run_name()))
        (steps, losses), (checked, checks) = run.losses("train"), run.losses("validation")
        for hop in range(losses.shape[2]):
            ended = found.losses[f"hop {hop + 1}"][side]
            assert ended.train == pytest.approx(losses[:, :, hop].mean())
            assert ended.validation == pytest.approx(run.final_losses()[:, hop].mean())
            level = learned_below(recipe.task.chances())
            expected = learned(steps, losses[:, :, hop], checked, checks[:, :, hop], level)
            assert list(ended.learned) == expected
            assert len(expected) == len(recipe.seeds)
    assert found.losses["hop 2"][0] is None


def test_the_frame_has_a_row_for_each_hop_of_each_run(trained: Store) -> None:
    pytest.importorskip("pandas")
    found = compare(TINY.run_name(), FLEET.run_name(), trained)
    one, fleet = found.courses
    courses = replace(one, learned=[[None]]), replace(fleet, learned=[[30, None], [10, 20]])
    rows = replace(found, courses=courses).frame()
    assert rows.columns.tolist() == ["hop", "run", "train", "validation", "first_learned",
                                     "last_learned", "never_learned"]  # fmt: skip
    assert rows.fillna(-1).drop(columns=["train", "validation"]).values.tolist() == [
        ["hop 1", one.name, -1, -1, 1],
        ["hop 1", fleet.name, 10, 30, 0],
        ["hop 2", fleet.name, 20, 20, 1],
    ]
    begun = tuple(replace(course, hops=()) for course in found.courses)
    with pytest.raises(ConfigError, match="neither .* nor .* has losses yet"):
        replace(found, courses=begun).frame()
    ended = found.losses["hop 2"][1]
    assert (rows.train[2], rows.validation[2]) == (ended.train, ended.validation)


def test_a_run_that_has_only_begun_says_so_and_has_no_circuit(store: Store) -> None:
    found = compare("gallery/demo", store.create(TINY), store)
    assert found.circuits is None
    assert found.losses["hop 1"][1] is None
    begun, uncircuited = found.remarks
    assert begun == f"{TINY.run_name()} is at step 0 of 12"  # what it has not learned, it may yet
    assert "has no checkpoint" in uncircuited


def test_the_text_says_what_a_loss_is_the_mean_of(trained: Store) -> None:
    one, several = TINY.run_name(), FLEET.run_name()
    for pair, models in (((one, several), True), ((one, "gallery/demo"), False)):
        (line,) = pieces_of(compare(*pair, trained))[1].lines
        assert line.startswith("Losses are means over the last 100 steps")
        assert line.endswith("and over the models of a run.") == models


def test_circuits_have_steps_and_components_in_common() -> None:
    found = compare("gallery/demo", "gallery/planted")
    steps = {str(step): step for step in found.circuits.steps}
    assert steps["value 0 → query"].common
    assert steps["key 0 → value 0"].common
    assert not steps["value 2 → value 1"].common
    assert steps["value 2 → value 1"].second == ((1, 0),)
    demo, planted = (hopscope.load(f"gallery/{name}").circuit for name in ("demo", "planted"))
    by_steps = {(s.destination, s.source) for s in found.circuits.steps if s.first}
    assert by_steps == {(path.destination, path.source) for path in demo.paths}
    assert len(found.circuits.common) + len(found.circuits.first) == len(demo.components)
    assert len(found.circuits.common) + len(found.circuits.second) == len(planted.components)
    assert repr(found.circuits).startswith("Circuits(3 of ")
    assert "in the first alone" in found.circuits._repr_html_()


def test_a_copy_has_everything_in_common(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.copy(find("demo"), "mine")
    found = compare("gallery/demo", "mine", store)
    assert found.settings == {}
    assert (found.circuits.first, found.circuits.second) == ((), ())
    assert all(step.first == step.second for step in found.circuits.steps)
    assert all(one == other for one, other in found.losses.values())
    assert found.remarks == ()


def test_the_circuit_of_a_fleet_is_that_of_its_first_model(trained: Store, store: Store) -> None:
    fleet = store.copy(trained.find(FLEET.run_name()), FLEET.run_name())
    for seed, known in ((2, False), (1, True)):
        own = {"model": checkpoint_digest(fleet, FLEET.steps, seed)}
        circuit = hopscope.load("gallery/demo").circuit.model_copy(update=own)
        with fleet.locked():
            fleet.commit({circuit_file(fleet, seed): json.dumps(circuit.to_dict()).encode()})
        found = compare("gallery/demo", fleet.name, store)
        assert (found.circuits is not None) is known
        assert any("has no circuit yet" in line for line in found.remarks) is not known


def test_what_cannot_be_compared_is_one_line(trained: Store, store: Store) -> None:
    name = TINY.run_name()
    (trained.root / "link").symlink_to(trained.root / name)
    damaged = store.copy(trained.find(name), "damaged")
    (damaged.path / damaged.files("metrics/")[0]).write_bytes(b"")
    kinds = f"{name} is a run of kind facts and gallery/ngram one of kind ngram: only runs of"
    for first, second, error, line in (
        (name, name, ConfigError, "is one run, given twice; expected two"),
        (name, "link", ConfigError, "is one run, given twice; expected two"),
        (name, "gallery/ngram", ConfigError, kinds),
        (name, "x", RunMissing, "no run matches 'x'"),
        ("gallery/demo", damaged, RunDamaged, "is damaged"),
    ):
        with pytest.raises(error, match=line):
            compare(first, second, trained)
    (trained.root / "link").unlink()


def test_the_ngram_experiment_has_losses_and_no_circuit(store: Store) -> None:
    ngram = find("ngram").recipe_as(NgramExperiment)
    other = store.create(ngram.model_copy(update={"seeds": (7,)}))
    found = compare("gallery/ngram", other)
    assert [*found.settings] == ["seeds"]
    assert list(found.losses) == ["loss"]
    first, second = found.losses["loss"]
    assert first.learned == ()
    assert second is None  # nothing of it is computed yet
    assert found.circuits is None
    assert "no circuit" in found.remarks[0]


def test_studies_and_runs_are_compared_as_their_names_are() -> None:
    demo, other = hopscope.load("gallery/demo"), hopscope.load("gallery/transformer-a")
    by_name = compare("gallery/demo", "gallery/transformer-a").to_dict()
    assert compare(demo, other).to_dict() == by_name
    assert compare(demo.run, other.run.folder).to_dict() == by_name
