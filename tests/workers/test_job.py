"""Jobs and reports travel as text, and errors as data."""

import pytest
from torch import Tensor

from hopscope.configs import Experiment
from hopscope.errors import Diverged, HopscopeError, Interrupted
from hopscope.runs import Stop, train
from hopscope.store import Store
from hopscope.training.learner import Learner
from hopscope.workers import Job, Report, done
from hopscope.workers.job import Trouble
from hopscope.workers.packing import member


def test_a_job_is_text_and_is_done(tiny: Experiment, store: Store) -> None:
    job = Job.of((tiny,), store, "cpu", 1)
    assert Job.from_json(job.canonical_json()) == job
    (report,) = done(job)
    assert (report.name, report.state, report.trouble) == (tiny.run_name(), "complete", None)
    assert Report.from_json(report.canonical_json()) == report
    assert store.has_complete(tiny)


def test_who_asks_to_stop_is_told_where_it_stopped(tiny: Experiment, store: Store) -> None:
    stop = Stop()
    stop.ask("a reason")
    (report,) = done(Job.of((tiny,), store, "cpu", 1), stop=stop)
    assert report.state == "stopped"
    assert report.trouble is not None
    assert report.trouble.reason == "a reason"
    assert report.trouble.text.startswith("stopped by a reason at step 1, ")
    assert not report.failed


def test_errors_are_data_and_errors_again(store: Store, tiny: Experiment) -> None:
    (report,) = done(Job.of((tiny,), store, "nowhere", 1))
    assert report.failed
    assert report.trouble is not None
    assert str(report.trouble.error()) == "device is 'nowhere'; expected auto, cpu, cuda or cuda:N"
    again = Trouble.of(Diverged("too far")).error()
    assert (type(again), str(again)) == (Diverged, "too far")
    later = Trouble(kind="OfALaterVersion", text="nobody knows")
    assert (type(later.error()), str(later.error())) == (HopscopeError, "nobody knows")
    assert type(Trouble.of(Interrupted("no HopscopeError")).error()) is HopscopeError


def counted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The seeds of every step that is trained from now on."""
    steps: list[tuple[int, ...]] = []
    advance = Learner.advance

    def counting(self: Learner) -> Tensor:
        steps.append(self.experiment.seeds)
        return advance(self)

    monkeypatch.setattr(Learner, "advance", counting)
    return steps


def test_a_fleet_that_was_parted_is_not_trained_again(
    tiny: Experiment, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job.of(tuple(member(tiny, seed) for seed in range(3)), store, "cpu", 1)
    steps = counted(monkeypatch)
    assert [report.state for report in done(job)] == ["complete"] * 3
    assert set(steps) == {(0, 1, 2)}
    steps.clear()
    assert [report.state for report in done(job)] == ["complete"] * 3
    assert steps == []


def test_a_fleet_that_others_cut_otherwise_is_trained_as_it_is(
    tiny: Experiment, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipes = tuple(member(tiny, seed) for seed in range(4))
    stop = Stop()
    stop.ask("enough")
    done(Job.of(recipes[:3], store, "cpu", 1), stop=stop)  # another sweep: its fleet is begun
    steps = counted(monkeypatch)
    assert [report.state for report in done(Job.of(recipes[2:], store, "cpu", 1))] == [
        "complete"
    ] * 2
    assert set(steps) == {(0, 1, 2), (3,)}
    assert sorted(store.names()) == sorted(recipe.run_name() for recipe in recipes)
    (alone,) = done(Job.of(recipes[:1], store, "cpu", 1))
    assert alone.state == "complete"


def test_of_a_fleet_that_others_began_the_rest_is_trained_alone(
    tiny: Experiment, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipes = tuple(member(tiny, seed) for seed in range(3))
    job = Job.of(recipes, store, "cpu", 1)
    train(recipes[1], store, "cpu")  # another sweep, since the job was made
    steps = counted(monkeypatch)
    assert [report.state for report in done(job)] == ["complete"] * 3
    assert steps == [(0,)] * tiny.steps + [(2,)] * tiny.steps
    assert sorted(store.names()) == sorted(recipe.run_name() for recipe in recipes)
