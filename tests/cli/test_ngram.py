"""`hopscope ngram`, and the commands of every run on a run of the n-gram experiment."""

import re
from pathlib import Path

import pytest
from calling import Said

from hopscope.store import Store

SMALL = "--chains 300 --validation-chains 60 --records 8 --threads 1".split()
EPOCHS = "--epochs 6 8 6".split()


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
    assert "removed" in said("rm", name)


@pytest.mark.slow
def test_figures_of_a_run(root: Path, said: Said) -> None:
    said("ngram", "train", *SMALL, *EPOCHS)
    out = said("ngram", "figures", "ngram", "--format", "png", "--out", "drawn")
    assert len(list((root / "drawn").glob("*.png"))) == 4
    assert re.search(r"figure: drawn/ngram-3\S+-approach.png", out)
    said("ngram", "train", *SMALL, "--epochs", "4", "4", "--stages", "C,W", "--seeds", "7", "8")
    other, _ = (name for name in Store().names() if "-C-W-a-" not in name)
    assert "approach" not in said("ngram", "figures", other)  # a was not trained


def test_theory_says_its_numbers(root: Path, said: Said) -> None:
    out = said("ngram", "theory", "--tables", "20", "--alphabet", "14")
    assert "Seen through heads as they begin: 14 symbols" in out
    out = said("ngram", "theory", "--tables", "200")
    assert out.count("Stage I is predicted to choose the heads at lags 1, 2.") == 2
    assert "error" in said("ngram", "theory", "--tables", "200", "--estimate")
