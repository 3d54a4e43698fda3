"""What is alike is packed into fleets; a member becomes a run of its own, to the bit what the fleet
trained.
"""

import shutil
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakSet

import numpy as np
import pytest
import torch
from stopping import changed
from waiting import stopped

from hopscope.configs import Experiment, NgramExperiment, Recipe
from hopscope.errors import ConfigError, Diverged, Interrupted, RunBusy, RunWarning
from hopscope.runs import MakeStepper, train
from hopscope.runs.checkpoint import read_tensors
from hopscope.runs.runner import prepared
from hopscope.store import RunFolder, Store
from hopscope.store.manifest import MANIFEST, PACKED
from hopscope.store.summary import summaries
from hopscope.store.tables import METRICS
from hopscope.store.tags import TAGS
from hopscope.training.stepper import prepare
from hopscope.training.trainer import Trainer
from hopscope.workers import Here, Job, carry_out, fleets
from hopscope.workers.fleets import jobs_of, together
from hopscope.workers.job import do

SEEDS = (0, 2, 3)


def completed(fleet: Recipe, store: Store) -> None:
    """Train a fleet of a sweep, which is not split yet."""
    prepared(fleet, lambda: prepare(fleet, "cpu"), store, threads=1, mark=b"{}")


@pytest.fixture
def recipes(tiny: Experiment) -> list[Experiment]:
    return [tiny.replace(seeds=(seed,)) for seed in SEEDS]


def test_recipes_that_differ_in_seeds_alone_are_packed_in_fours(
    tiny: Experiment, store: Store
) -> None:
    five = [tiny.replace(seeds=(seed,)) for seed in range(5)]

    def cut(most: int) -> list[list[int]]:
        jobs = jobs_of(five[::-1], five, store, most)
        return [[recipe.seeds[0] for recipe in job] for job in jobs]

    assert cut(5) == [[0, 1, 2, 3, 4]]
    assert cut(4) == [[0, 1, 2, 3], [4]]
    assert cut(2) == [[0, 1], [2, 3], [4]]
    assert cut(1) == [[0], [1], [2], [3], [4]]
    stopped(Job.of((five[1],), store, "cpu", 1))  # what was begun alone goes on alone
    store.create(five[2])  # of which nothing was trained
    assert cut(9) == [[0, 2, 3, 4], [1]]
    other, several = tiny.replace(model=tiny.model.replace(layers=1)), tiny.replace(seeds=(7, 8))
    mixed = [tiny.replace(seeds=(3,)), NgramExperiment(), other, several, tiny.replace(seeds=(4,))]
    jobs = jobs_of(mixed, mixed, store, 9)
    assert jobs == [(mixed[0], mixed[4]), (mixed[1],), (mixed[2],), (mixed[3],)]
    with pytest.raises(ConfigError, match="pack is 0; expected a number of models from"):
        carry_out(five, store, workers=Here(pack=0))


def test_a_member_is_its_slice_of_the_fleet(
    recipes: list[Experiment], store: Store, tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole = train(together(recipes), tmp_path_factory.mktemp("fleet"), "cpu", threads=1)
    outcome = carry_out(recipes, store, device="cpu", workers=Here(pack=3, threads=1))
    assert sorted(store.names()) == sorted(recipe.run_name() for recipe in recipes)
    assert [folder.recipe for folder in outcome.folders] == recipes
    for number, folder in enumerate(outcome.folders):
        run = train(recipes[number], store)
        names = folder.files("checkpoints/")  # weights and optimiser
        assert names == whole.folder.files("checkpoints/")
        for name in names:
            own, stacked = read_tensors(folder, name), read_tensors(whole.folder, name)
            assert own.keys() == stacked.keys()
            assert all(torch.equal(own[key], stacked[key][number]) for key in own), name
        for split in ("train", "validation"):
            assert np.array_equal(run.losses(split)[1][:, 0], whole.losses(split)[1][:, number])
        assert [each.fleet for each in folder.manifest.computed] == [SEEDS]
        assert folder.verify() == []
    alone = train(recipes[0], tmp_path_factory.mktemp("alone"), "cpu", threads=1).folder
    assert {*outcome.folders[0].manifest.files} == {*alone.manifest.files}


def test_a_fleet_that_was_stopped_goes_on_as_that_fleet(
    recipes: list[Experiment], store: Store
) -> None:
    reports = stopped(Job.of(tuple(recipes), store, "cpu", 1))
    assert [report.state for report in reports] == ["stopped"] * 3
    (name,) = store.names()
    assert RunFolder(store.root / name).manifest.step == 1
    alone = train(recipes[0], store, "cpu", threads=1).folder  # which somebody else did meanwhile
    # Asked for in another way, and packed in another way: what was begun goes on as it began.
    assert carry_out(recipes[1:], store, device="cpu", workers=Here(pack=1)).complete
    assert RunFolder(alone.path).manifest == alone.manifest
    folders = [store.create(recipe) for recipe in recipes[1:]]
    assert [folder.manifest.computed[0].fleet for folder in folders] == [SEEDS] * 2


def test_a_kill_while_members_are_kept_changes_nothing(
    recipes: list[Experiment], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        kept = []

        def killed(own: RunFolder, number: int) -> Iterator[tuple[str, bytes]]:
            kept.append(number)
            if len(kept) == 2:
                raise Interrupted("killed")
            return tensors(own, number)

        tensors = fleets._tensors
        patch.setattr(fleets, "_tensors", killed)
        reports = do(Job.of(tuple(recipes), store, "cpu", 1))
        assert [each.state for each in reports] == ["complete", "stopped", "stopped"]
    first = RunFolder(store.root / recipes[0].run_name())
    assert first.manifest.complete
    runs = store.sql("select seed, count(distinct run) from metrics group by all").rows()
    assert sorted(runs) == [(seed, 1) for seed in SEEDS]  # the first is in the fleet as well
    folders, _ = store.readable()
    begun = {folder.name for folder in folders if folder.begun}
    assert summaries(store.root, folders)[0].keys() == begun  # a list names both
    assert len(begun) == 2
    file = store.root / together(recipes).run_name() / METRICS.file
    losses = file.read_bytes()
    file.unlink()
    answer = store.sql("select distinct seed from metrics").answer()
    assert (answer.rows, len(answer.problems)) == (((SEEDS[0],),), 1)  # a damaged fleet hides none
    file.write_bytes(losses)
    assert carry_out(recipes, store, device="cpu", workers=Here(pack=3, threads=1)).complete
    assert RunFolder(first.path).manifest == first.manifest
    assert sorted(store.names()) == sorted(recipe.run_name() for recipe in recipes)


def test_a_begun_fleet_is_left_alone_once_its_members_are_complete(
    recipes: list[Experiment], store: Store
) -> None:
    stopped(Job.of(tuple(recipes), store, "cpu", 1))
    fleet = store.create(together(recipes))
    train(recipes[0], store, "cpu")
    assert carry_out(recipes[:1], store, device="cpu").complete
    assert RunFolder(fleet.path).manifest == fleet.manifest
    completed(fleet.recipe, store)  # and killed before it was split
    assert carry_out(recipes[:1], store, device="cpu").complete
    assert sorted(store.names()) == sorted(recipe.run_name() for recipe in recipes)


def test_a_fleet_stays_until_every_member_is_kept(recipes: list[Experiment], store: Store) -> None:
    path = store.create(recipes[1]).path
    fleet = together(recipes).run_name()
    stopped(Job.of(tuple(recipes), store, "cpu", 1))

    def fail() -> None:
        reports = do(Job.of(tuple(recipes), store, "cpu", 1))
        assert [each.state for each in reports] == ["complete", "failed", "complete"]
        assert fleet in store.names()

    shutil.rmtree(path)
    path.write_text("a file in its place")
    fail()
    path.unlink()
    store.create(recipes[1])
    (path / MANIFEST).write_text("{}")
    fail()
    shutil.rmtree(path)
    assert carry_out(recipes, store, device="cpu", workers=Here(pack=3, threads=1)).complete
    assert fleet not in store.names()


@pytest.mark.parametrize(
    "add",
    [
        lambda store, fleet: store.tag(fleet.name, "keep"),
        lambda store, fleet: (fleet.path / "notes.md").write_text("mine"),
        lambda store, fleet: fleet.commit({"circuit-seed-0.json": b"{}"}),
    ],
)
def test_a_fleet_of_a_sweep_that_a_user_added_to_stays(
    recipes: list[Experiment], store: Store, add: Callable[[Store, RunFolder], object]
) -> None:
    stopped(Job.of(tuple(recipes), store, "cpu", 1))
    fleet = store.create(together(recipes))
    add(store, fleet)
    before = (store.tags(), fleet.untracked(), fleet.files("circuit"))
    with pytest.warns(RunWarning, match="files or tags of yours, so it was not removed"):
        assert carry_out(recipes, store, device="cpu", workers=Here(pack=3)).complete
    assert len(store.names()) == 4
    kept = RunFolder(fleet.path)
    assert (store.tags(), kept.untracked(), kept.files("circuit")) == before
    assert jobs_of(recipes, [], store, 4) == []


def test_a_fleet_waits_for_tags_that_can_be_read_and_not_for_hidden_files(
    recipes: list[Experiment], store: Store
) -> None:
    completed(together(recipes), store)
    (store.root / together(recipes).run_name() / ".DS_Store").touch()
    (store.root / TAGS).write_text("{")
    with pytest.warns(RunWarning, match="is not removed yet: .*tags.json holds no tags"):
        assert carry_out(recipes, store, device="cpu", workers=Here(pack=3)).complete
    (store.root / TAGS).unlink()
    assert carry_out(recipes, store, device="cpu", workers=Here(pack=3)).complete
    assert sorted(store.names()) == sorted(recipe.run_name() for recipe in recipes)


@pytest.mark.parametrize("complete", [False, True])
def test_a_fleet_that_a_sweep_makes_while_somebody_begins_it_stays(
    recipes: list[Experiment], store: Store, monkeypatch: pytest.MonkeyPatch, complete: bool
) -> None:
    def late(recipe: Experiment, device: str) -> MakeStepper:
        monkeypatch.undo()
        store.create(recipe, {PACKED: b"{}"})
        if complete:
            completed(recipe, store)
        return prepare(recipe, device)

    monkeypatch.setattr("hopscope.training.stepper.prepare", late)
    fleet = train(together(recipes), store, "cpu").folder
    assert carry_out(recipes, store, device="cpu", workers=Here(pack=3)).complete
    assert RunFolder(fleet.path).manifest == fleet.manifest
    assert len(store.names()) == 4


def test_a_fleet_that_another_process_goes_on_with_is_left_to_it(
    recipes: list[Experiment], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no mark; the sweep waits as long as for a run, and ends."""
    monkeypatch.setattr("hopscope.workers.sweep.WAIT", 0.3)
    with store.create(together(recipes)).locked():
        outcome = carry_out(recipes, store, device="cpu", workers=Here(pack=3))
    assert [type(each) for each in outcome.troubles] == [RunBusy] * 3
    assert carry_out(recipes, store, device="cpu", workers=Here(pack=3)).complete


def test_a_mark_that_a_kill_left_behind_is_none(recipes: list[Experiment], store: Store) -> None:
    """The manifest is written first, and does not name it."""
    fleet = train(together(recipes), store, "cpu").folder
    (fleet.path / PACKED).write_bytes(b"{}")
    for recipe in recipes:
        train(recipe, store, "cpu")
    assert jobs_of(recipes, [], store, 4) == []


def test_members_that_diverge_are_told_and_leave_no_fleet_and_no_memory(
    tiny: Experiment, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainers, before = WeakSet[Trainer](), Trainer.__init__

    def counted(self: Trainer, *arguments: Any) -> None:
        before(self, *arguments)
        trainers.add(self)
        assert len(trainers) == 1

    monkeypatch.setattr(Trainer, "__init__", counted)
    wild = changed(tiny, steps=40, lr=1e9)
    bad = [wild.replace(seeds=(seed,)) for seed in (0, 1)]
    outcome = carry_out(bad, store, device="cpu", workers=Here(pack=2, threads=1))
    assert [type(each) for each in outcome.troubles] == [Diverged] * 2
    assert not [name for name in store.names() if (store.root / name / PACKED).exists()]
    assert not trainers
