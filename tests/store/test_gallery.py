"""Every model of the gallery is whole, loads, and is as good as its about.json says."""

import shutil
from pathlib import Path

import pytest
import safetensors.torch
import torch

from hopscope.circuits import Circuit, adapter_of, examples_of
from hopscope.configs import Experiment, NgramExperiment, Retrieval
from hopscope.errors import ConfigError, RunDamaged, RunMismatch, RunMissing, RunReadOnly
from hopscope.models.planted import planted
from hopscope.ngram.evaluation import compare, model_answers
from hopscope.ngram.run import NgramRun
from hopscope.ngram.trainer import chains_of
from hopscope.papers import preset
from hopscope.store import RunFolder, Store, gallery
from hopscope.training import Run

TRAINED = ["transformer-a", "transformer-b", "transformer-c", "transformer-d-fan-in"]
NAMES = ["demo", "figure-5", "ngram", "planted", "three-heads", *TRAINED]
TRANSFORMERS = ["demo", "figure-5", "planted", "three-heads", *TRAINED]


def entry(name: str) -> RunFolder:
    return Store("nowhere").find(f"gallery/{name}")


def fresh_loss(run: Run) -> float:
    """On examples that neither the build nor discovery looked at."""
    examples = examples_of(run.recipe.task, 2_048, seed=7)
    with torch.no_grad():
        return float(examples.losses(run.model(examples.inputs)).mean())


def test_every_model_is_whole_and_says_where_it_came_from() -> None:
    folders = sorted(path.name for path in gallery.ROOT.iterdir() if path.is_dir())
    assert gallery.names() == folders == NAMES
    for name in NAMES:
        folder = entry(name)
        assert folder.verify() == [], name
        assert folder.name == f"gallery/{name}"
        assert folder.manifest.complete, name
        assert folder.files("checkpoints/optimiser") == [], name
        known = gallery.about(folder)
        assert known is not None, name
        assert known.run == folder.recipe.run_name() == folder.manifest.name
        assert folder.files("checkpoints/")[-1].endswith(f"{known.step:08d}.safetensors"), name
        assert known.loss == pytest.approx(known.exact_loss, rel=0.01), name
        assert folder.manifest.step >= known.step, name


@pytest.mark.slow
def test_transformers_are_as_good_as_they_say() -> None:
    """And their halves on disk are floats in the model, which is the one that was searched."""
    for name in TRANSFORMERS:
        folder = entry(name)
        run, known = Run(folder), gallery.about(folder)
        kept = safetensors.torch.load(folder.read(folder.files("checkpoints/")[-1]))
        assert {tensor.dtype for tensor in kept.values()} == {torch.float16}, name
        assert {tensor.dtype for tensor in run.model.parameters()} == {torch.float32}, name
        Circuit.from_json(folder.read("circuit.json")).check_model(adapter_of(run.model).digest())
        assert known is not None
        assert known.trained == (name != "planted")
        loss = fresh_loss(run)
        assert loss == pytest.approx(known.loss, rel=0.25, abs=1e-3), name
        assert loss < 0.1 * examples_of(run.recipe.task, 1).chance, name


def test_three_heads_found_the_fewest_by_training() -> None:
    found = Circuit.from_json(entry("three-heads").read("circuit.json"))
    steps = [
        [("value 0", "key 0"), ("value 1", "key 1"), ("value 2", "key 2")],
        [("query", "value 0"), ("value 1", "value 2")],
        [("query", "value 1")],
    ]
    paths: dict[int, list[tuple[str, str]]] = {}
    for path in [path for each in found.components if each.kind != "weak" for path in each.paths]:
        paths.setdefault(path.layer, []).append((str(path.destination), str(path.source)))
    assert [sorted(paths[layer]) for layer in sorted(paths)] == steps
    assert all(each.paths for each in found.components)


def test_the_planted_model_is_exact_and_was_not_trained() -> None:
    folder = entry("planted")
    known, run = gallery.about(folder), Run(folder)
    assert known is not None
    assert "written by hand, not trained" in known.origin
    assert fresh_loss(run) < 1e-12
    task = run.recipe.task
    assert isinstance(task, Retrieval)
    assert Circuit.from_json(folder.read("circuit.json")).paths == planted(task).paths


def test_the_ngram_run_is_the_papers_unrounded() -> None:
    folder = entry("ngram")
    known, run = gallery.about(folder), NgramRun(folder)
    assert run.recipe == NgramExperiment()
    assert {value.dtype.name for value in run.state(0).values()} == {"float64"}
    chains = chains_of(run.recipe, 0, "validation")
    found = compare(run.recipe, model_answers(run.recipe, run.state(0), chains), chains)
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
    assert len(steps) >= 20


def test_nothing_writes_to_the_gallery(store: Store) -> None:
    folder = entry("demo")
    for write in (
        lambda: folder.commit({"circuit.json": b""}),
        lambda: folder.locked().__enter__(),
        folder.remove,
        folder.check_resumable,
        lambda: store.tag("gallery/demo", "mine"),
    ):
        with pytest.raises(RunReadOnly, match="gallery/demo is read-only, .* gallery --copy demo`"):
            write()
    with pytest.raises(RunMissing, match=r"no model 'gallery/dmeo' .* There are: gallery/demo, ga"):
        entry("dmeo")


def test_a_copy_is_a_run_under_a_name_of_its_own(
    store: Store, tiny: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = entry("ngram")
    made = store.copy(source, "mine")
    assert (made.name, made.manifest, made.verify()) == ("mine", source.manifest, [])
    assert store.names() == ["mine"]
    assert gallery.about(made) == gallery.about(source)
    assert gallery.about(store.create(tiny)) is None
    assert not store.has_complete(source.recipe)  # training it makes the real one
    made.commit({"circuit.json": b"{}"})
    with pytest.raises(RunMismatch, match=f"`hopscope rm mine --store {store.root}` removes"):
        store.copy(source, "mine")
    monkeypatch.setenv("HOPSCOPE_STORE", str(store.root))
    with pytest.raises(RunMismatch, match="is there already: `hopscope rm mine` removes it"):
        store.copy(source, "mine")
    with pytest.raises(RunMismatch, match="mine is complete: no steps are left"):
        made.check_resumable()
    made.remove()
    assert "mine" not in store.names()
    for name in ("../x", "a/b", "", ".hidden", "/tmp/x"):
        with pytest.raises(ConfigError, match="cannot name a run: expected one folder's name"):
            store.copy(source, name)


def test_a_run_under_another_name_does_not_go_on(store: Store, tiny: Experiment) -> None:
    folder = store.create(tiny)
    folder.check_resumable()
    folder.path.rename(store.root / "other")
    line = f"other is {tiny.run_name()} under another name: rename its folder to continue"
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
