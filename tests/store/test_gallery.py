"""Every model of the gallery is whole, loads, and is as good as its about.json says."""

import shutil
from pathlib import Path

import pytest
import safetensors.torch
import torch

from hopscope.circuits import Circuit, exam_of, subject_of
from hopscope.configs import Experiment, MarkovExperiment, Retrieval
from hopscope.errors import RunDamaged, RunMismatch, RunMissing, RunReadOnly
from hopscope.markov.evaluation import compare, said
from hopscope.markov.learner import drawn
from hopscope.markov.run import MarkovRun
from hopscope.models.planted import planted
from hopscope.papers import preset
from hopscope.store import RunFolder, Store, gallery
from hopscope.training import Run

TRAINED = ["transformer-a", "transformer-b", "transformer-c", "transformer-d-fan-in"]
NAMES = ["demo", "figure-5", "ngram", "planted", "three-heads", *TRAINED]
TRANSFORMERS = ["demo", "figure-5", "planted", "three-heads", *TRAINED]
MOST = 38e6


def entry(name: str) -> RunFolder:
    return Store("nowhere").find(f"gallery/{name}")


def fresh_loss(run: Run) -> float:
    """On examples that neither the build nor discovery looked at."""
    exam = exam_of(run.recipe.task, 2_048, seed=7)
    with torch.no_grad():
        return float(exam.losses(run.model(exam.inputs)).mean())


def test_there_are_nine_small_models_and_nothing_else() -> None:
    assert gallery.names() == NAMES
    assert sorted(path.name for path in gallery.ROOT.iterdir()) == NAMES
    sizes = [path.stat().st_size for path in gallery.ROOT.rglob("*") if path.is_file()]
    assert sum(sizes) < MOST


@pytest.mark.parametrize("name", NAMES)
def test_every_model_is_whole_and_says_where_it_came_from(name: str) -> None:
    folder = entry(name)
    assert folder.verify() == []
    assert folder.name == f"gallery/{name}"
    assert folder.manifest.complete
    assert folder.files("checkpoints/optimiser") == []
    known = gallery.about(folder)
    assert known is not None
    assert known.run == folder.recipe.run_name() == folder.manifest.name
    assert folder.files("checkpoints/")[-1].endswith(f"{known.step:08d}.safetensors")
    assert known.loss == pytest.approx(known.exact_loss, rel=0.01)
    assert folder.manifest.step >= known.step


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_halves_on_disk_are_floats_in_the_model(name: str) -> None:
    folder = entry(name)
    kept = safetensors.torch.load(folder.read(folder.files("checkpoints/")[-1]))
    assert {tensor.dtype for tensor in kept.values()} == {torch.float16}
    model = Run(folder).model
    assert {tensor.dtype for tensor in model.parameters()} == {torch.float32}
    found = Circuit.from_json(folder.read("circuit.json"))
    found.check_model(subject_of(model).digest())


def test_three_heads_found_the_fewest_by_training() -> None:
    known = Run(entry("three-heads"))
    found = Circuit.from_json(entry("three-heads").read("circuit.json"))
    steps = [
        [("value 0", "key 0"), ("value 1", "key 1"), ("value 2", "key 2")],
        [("query", "value 0"), ("value 1", "value 2")],
        [("query", "value 1")],
    ]
    paths: dict[int, list[tuple[str, str]]] = {}
    for path in found.paths:
        paths.setdefault(path.layer, []).append((str(path.reader), str(path.source)))
    assert [sorted(paths[layer]) for layer in sorted(paths)] == steps
    assert all(part.paths for part in found.parts)
    assert fresh_loss(known) < 0.01


@pytest.mark.parametrize("name", ["demo", *TRAINED])
def test_trained_models_are_as_good_as_they_say(name: str) -> None:
    folder = entry(name)
    known = gallery.about(folder)
    assert known is not None
    assert known.trained
    assert fresh_loss(Run(folder)) == pytest.approx(known.loss, rel=0.25)
    assert known.loss < 0.1 * exam_of(Run(folder).recipe.task, 1).guess


def test_the_planted_model_is_exact_and_was_not_trained() -> None:
    folder = entry("planted")
    known, run = gallery.about(folder), Run(folder)
    assert known is not None
    assert not known.trained
    assert "written by hand, not trained" in known.origin
    assert fresh_loss(run) < 1e-12
    task = run.recipe.task
    assert isinstance(task, Retrieval)
    assert Circuit.from_json(folder.read("circuit.json")).paths == planted(task).paths


def test_the_ngram_run_is_the_papers_unrounded() -> None:
    folder = entry("ngram")
    known, run = gallery.about(folder), MarkovRun(folder)
    assert run.recipe == MarkovExperiment()
    assert {value.dtype.name for value in run.state(0).values()} == {"float64"}
    chains = drawn(run.recipe, 0, "validation")
    found = compare(run.recipe, said(run.recipe, run.state(0), chains), chains)
    assert known is not None
    assert found.seen.model == pytest.approx(known.loss)
    assert known.weights.startswith("in float64, as they were")
    assert known.loss == known.exact_loss
    assert "before" not in known.origin


def test_the_demo_keeps_its_emergence() -> None:
    run = Run(entry("demo"))
    assert run.recipe == preset("demo").recipe
    steps = run.checkpoints
    assert (steps[0], steps[-1]) == (0, run.recipe.steps)
    assert len(steps) > 20


def test_nothing_writes_to_the_gallery() -> None:
    folder = entry("demo")
    line = (
        "gallery/demo is read-only, as it comes with hopscope: `hopscope gallery copy demo` makes"
    )
    with pytest.raises(RunReadOnly, match=line):
        folder.commit({"circuit.json": b""})
    with pytest.raises(RunReadOnly, match=line), folder.locked():
        pass
    with pytest.raises(RunReadOnly, match=line):
        folder.remove()
    with pytest.raises(RunReadOnly, match=line):
        folder.check_resumable()


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(RunMissing, match=r"no model 'gallery/dmeo' .* There are: gallery/demo, ga"):
        entry("dmeo")


def test_a_copy_is_a_run_under_a_name_of_its_own(store: Store, tiny: Experiment) -> None:
    source = entry("ngram")
    made = store.copy(source, "mine")
    assert (made.name, made.manifest, made.verify()) == ("mine", source.manifest, [])
    assert store.names() == ["mine"]
    assert gallery.about(made) == gallery.about(source)
    assert gallery.about(store.create(tiny)) is None
    assert not store.has_complete(source.recipe)  # training it makes the real one
    made.commit({"circuit.json": b"{}"})
    with pytest.raises(RunMismatch, match="is there already: `hopscope rm mine` removes it"):
        store.copy(source, "mine")
    with pytest.raises(RunMismatch, match="mine is complete: there is nothing to go on with"):
        made.check_resumable()
    made.remove()
    assert "mine" not in store.names()


def test_a_run_under_another_name_does_not_go_on(store: Store, tiny: Experiment) -> None:
    folder = store.create(tiny)
    folder.check_resumable()
    folder.path.rename(store.root / "other")
    line = f"other is {tiny.run_name()} under another name: rename its folder to go on"
    with pytest.raises(RunMismatch, match=line):
        store.find("other").check_resumable()


def test_damage_asks_for_another_installation(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(gallery.ROOT / "ngram", tmp_path / "gallery" / "ngram")
    monkeypatch.setattr(gallery, "ROOT", tmp_path / "gallery")
    (tmp_path / "gallery" / "ngram" / gallery.ABOUT).write_text("{}")
    with pytest.raises(RunDamaged, match=r"bytes, expected \d+\): install hopscope again"):
        store.copy(entry("ngram"), "mine")
    assert store.names() == []
