"""The rows of how a grows: one for each seed, its courses as the growth is explained."""

from pathlib import Path

import pytest

from hopscope.configs import MarkovExperiment
from hopscope.markov import growth_explained, train
from hopscope.papers.chen.measure_growth import growth_rows


def test_a_row_for_each_seed_holds_the_courses_and_their_slopes(tmp_path: Path) -> None:
    short = {"epochs": (50, 50, 100), "chains": 300, "validation_chains": 50}
    run = train(MarkovExperiment(descent=short, seeds=(3, 5)), tmp_path)
    rows = growth_rows(run.folder)
    assert [row.seed for row in rows] == [3, 5]
    found = growth_explained(run, 5)
    assert rows[1].slopes == {name: found.slope(name) for name in found.courses}
    assert rows[1].epochs[-1] == 100
    for name, course in found.courses.items():
        assert rows[1].courses[name] == pytest.approx(course.tolist(), abs=1e-5)
