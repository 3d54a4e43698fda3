"""`hopscope ngram`, and the commands of every run on a run of the n-gram experiment."""

from pathlib import Path

import pytest
from calling import Said
from stopping import begun

from hopscope.configs import NgramExperiment
from hopscope.store import Store

SMALL = (
    "descent.chains=300", "descent.validation_chains=60", "descent.records=8", "--threads", "1",
)  # fmt: skip
EPOCHS = ("descent.epochs=6,8,6",)


def test_a_run_from_its_training_to_its_removal(root: Path, said: Said) -> None:
    train = ("ngram", "train", *SMALL, *EPOCHS, "--seeds", "1")
    assert "epoch 20 of 20" in said(*train)
    (name,) = Store().names()
    assert name.startswith("ngram-3-pa12-C-W-a-")
    for words in (["show", "ngram", "--figure", "losses.svg"], ["resume", "ngram"], train):
        out = said(*words)
        assert "{1,2}" in out
        assert "trained in" in out
    assert (root / "losses.svg").exists()
    assert "are as committed" in said("verify", "ngram")
    rows = said("sql", "--csv", "select distinct name from parameters order by name").split()
    assert rows[:3] == ["name", "a", '"c{1,2}"']
    out = said("ngram", "transfer", "ngram", "--lengths", "10", "--alphas", "1", "--chains", "50")
    assert "Bayes" in out
    assert len(out.strip().splitlines()) == 4
    assert "removed" in said("rm", name, "--yes")


def test_the_losses_of_an_unfinished_run_are_drawn(root: Path, said: Said) -> None:
    begun(NgramExperiment(), Store())
    assert "of 57,000" in said("show", "ngram", "--figure", "losses.svg")
    assert [path.name for path in root.glob("*.svg")] == ["losses.svg"]


@pytest.mark.slow
def test_figures_of_a_run(root: Path, said: Said) -> None:
    said("ngram", "train", *SMALL, *EPOCHS)
    out = said("show", "ngram", "--figure", "drawn.png")
    assert len(list(root.glob("drawn*.png"))) == 4
    assert "figure: drawn-approach.png" in out
    said("ngram", "train", *SMALL, "descent.epochs=4,4", "descent.stages=C,W", "--seeds", "7,8")
    other, _ = (name for name in Store().names() if "-C-W-a-" not in name)
    assert "approach" not in said("show", other, "--figure", "x.png")  # a was not trained


def test_theory_says_its_numbers(root: Path, said: Said) -> None:
    out = said("ngram", "theory", "--tables", "20", "process.alphabet=14")
    assert "Seen through heads as they begin: 14 symbols" in out
    out = said("ngram", "theory", "--tables", "200")
    assert out.count("Stage I is predicted to choose the heads at lags 1, 2.") == 2
    assert "error" in said("ngram", "theory", "--tables", "200", "--estimate")


def test_sets_that_are_not_surely_apart_have_no_winner(root: Path, said: Said) -> None:
    out = said("ngram", "theory", "model.own=0.01", "--tables", "200")
    assert "predicted to choose the heads at lags 1, 2." in out  # of one lag each
    assert out.count("Stage I has no sure favourite (95 %, paired by table): lags mixed;") == 1
    few = said("ngram", "theory", "process.parents=1,3", "--tables", "20", "--sample", "2")
    assert few.count(": lags 3; 1, 3;") == 2  # the parents are second by chance
    assert "predicted" not in few
