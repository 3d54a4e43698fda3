"""The rows of who wins stage I: one for each seed, beside what the rules name."""

from pathlib import Path

from hopscope.markov import train
from hopscope.papers.chen.measure_choices import choice_rows
from hopscope.papers.chen.measure_runs import predicted
from hopscope.papers.chen.settings import choices


def test_a_row_for_each_seed_names_what_won_and_what_the_rules_say(tmp_path: Path) -> None:
    experiment = choices(2, "smoke")["the paper's"]
    run = train(experiment, tmp_path)
    rows = choice_rows(run.folder, "smoke")
    assert [(row.setting, row.seed) for row in rows] == [("the paper's", 0), ("the paper's", 1)]
    for row in rows:
        assert row.predicted == predicted(experiment)
        assert row.chosen_lags == (1, 2)
        assert row.share > 0.99
