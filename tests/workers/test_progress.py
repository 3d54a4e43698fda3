"""How far a sweep is, read from the store."""

from hopscope.configs import Experiment
from hopscope.runs import Stop, train
from hopscope.store import Store
from hopscope.workers import Job, done
from hopscope.workers.job import report_of
from hopscope.workers.packing import member
from hopscope.workers.progress import Progress, steps_of


def test_steps_of_all_models_are_counted(tiny: Experiment, store: Store) -> None:
    recipes = [member(tiny, seed) for seed in range(4)]
    now = [100.0]
    jobs = [Job.of(tuple(recipes[:2]), store, "cpu", 1), Job.of((recipes[2],), store, "cpu", 1)]
    progress = Progress(jobs, clock=lambda: now[0])
    assert (progress.runs, progress.all_steps, progress.steps()) == (3, 36, 0)
    assert progress.seconds_left(0) is None
    stop = Stop()
    stop.ask("a friend")
    done(jobs[0], stop=stop)
    assert steps_of(jobs[0]) == 2  # a fleet of two, stopped at step 1
    train(recipes[2], store, "cpu")
    now[0] += 7
    assert progress.steps() == 14
    assert progress.seconds_left(14) == 22 * 7 / 14
    done(jobs[0])
    assert (steps_of(jobs[0]), progress.steps(), progress.seconds_left(36)) == (24, 36, 0.0)
    progress.reports["a"] = report_of("a", 1.0, None)
    assert (progress.count("complete"), progress.count("failed")) == (1, 0)
