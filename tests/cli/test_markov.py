"""`hopscope markov`, and the commands of every run on a run of the n-gram experiment."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from hopscope.cli.main import main
from hopscope.store import Store

Say = Callable[..., tuple[int, str, str]]
SMALL = "--chains 300 --validation-chains 60 --records 8 --epochs 20 30 20".split()


def hopscope(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str
) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.argv", ["hopscope", *words])
    with pytest.raises(SystemExit) as stop:
        main()
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Say:
    monkeypatch.setenv("HOPSCOPE_STORE", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *words: hopscope(capsys, monkeypatch, *words)


def test_a_run_from_its_training_to_its_removal(say: Say, tmp_path: Path) -> None:
    code, out, _ = say("markov", "train", *SMALL, "--seeds", "0", "1")
    assert code == 0
    assert "epoch 70 of 70" in out
    (name,) = Store(tmp_path / "runs").names()
    assert name.startswith("markov-3-pa12-C-W-a-")
    for words in (
        ["show", "markov"],
        ["resume", "markov"],
        ["markov", "train", *SMALL, "--seeds", "0", "1"],
    ):
        code, out, _ = say(*words)
        assert code == 0
        assert "{1,2}" in out
        assert "trained in" in out
    assert "loss" in say("runs")[1]
    assert "are as committed" in say("verify", "markov")[1]
    rows = say("sql", "--csv", "select distinct name from parameters order by name")[1].split()
    assert rows[:3] == ["name", "a", '"c{1,2}"']
    assert say("show", "markov", "--figure", "losses.svg")[0] == 0
    assert (tmp_path / "losses.svg").exists()
    assert "removed" in say("rm", name)[1]


def test_figures_of_a_run(say: Say, tmp_path: Path) -> None:
    say("markov", "train", *SMALL, "--seeds", "0", "1")
    code, out, err = say("markov", "figures", "markov", "--format", "png", "--out", "drawn")
    assert code == 0, err
    assert len(list((tmp_path / "drawn").glob("*.png"))) == 4
    assert re.search(r"figure: drawn/markov-3\S+-approach.png", out)
    say("markov", "train", *SMALL[:-3], "20", "30", "--stages", "C,W", "--seeds", "7")
    code, out, _ = say("markov", "figures", "C-W-", "--out", "other")
    assert code == 2  # two runs: the name is not enough
    (untold,) = [name for name in Store(tmp_path / "runs").names() if "-C-W-a-" not in name]
    code, out, _ = say("markov", "figures", untold, "--out", "other")
    assert code == 0
    assert "approach" not in out  # a was not trained


def test_theory_and_transfer_say_their_numbers(say: Say) -> None:
    out = say("markov", "theory", "--tables", "20", "--alphabet", "14")[1]
    assert "Seen through heads as they begin: 14 symbols" in out
    out = say("markov", "theory", "--tables", "200")[1]
    assert out.count("Stage I is predicted to choose the heads at lags 1, 2.") == 2
    assert "error" in say("markov", "theory", "--tables", "200", "--estimate")[1]
    say("markov", "train", *SMALL)
    out = say("markov", "transfer", "markov", "--lengths", "10", "--alphas", "1", "--chains", "50")[
        1
    ]
    assert "Bayes" in out
    assert len(out.strip().splitlines()) == 4


MISTAKES = [
    ("train --window 1", "window is 1, but the largest parent is at lag 2"),
    ("train --parents 1 5", "window is 3, but the largest parent is at lag 5"),
    ("train --degree 4", "degree is 4, but there are 3 heads"),
    ("train --alphabet 1", "greater than or equal to 2, got 1"),
    ("train --length 3", "length is 3; behind a window of 3 symbols at least one must follow"),
    ("train --alpha 0", "alpha: Input should be greater than 0, got 0"),
    ("train --alpha -1", "alpha: Input should be greater than 0, got -1"),
    ("train --parents 1 1", "each lag may appear once"),
    ("train --stages C,X", "stages is 'C,X'; expected the letters C, W and a"),
    ("train --stages CC", "stage 'CC' names a letter twice"),
    ("train --epochs 5", "epochs has 1 entries, but stages 'C,W,a' are 3"),
    ("train --batch 10000", "batch is 10000, but there are 9000 chains"),
    ("train --seeds 1 1", "each may appear once"),
    ("train --chains 1000000000", "need about 6"),
    ("train --alphabet 50 --parents 1 2 3", "GiB (1,397 of them for transition tables)"),
    ("train --alphabet 10 --parents 1 4 --window 4", "10,000 states"),
    ("train --threads 0", "threads is 0; expected 1 to 1,024"),
    ("train --bogus", "Unrecognized options: --bogus"),
    ("bogus", "unknown action 'bogus' of markov: there are train, figures, transfer, theory"),
    ("figures nothing", "no run matches 'nothing'"),
    ("theory --alphabet 30 --window 5", "too many for exact distributions: estimate"),
]


@pytest.mark.parametrize(("words", "answer"), MISTAKES)
def test_a_mistake_is_one_line(say: Say, words: str, answer: str) -> None:
    code, _, err = say("markov", *words.split())
    assert code == 2
    assert answer in err
    assert err.startswith("hopscope: ")
    assert len(err.strip().splitlines()) == 1


def test_commands_for_circuits_say_that_this_is_no_run_of_theirs(say: Say) -> None:
    say("markov", "train", *SMALL)
    code, _, err = say("discover", "markov")
    assert code == 2
    assert "is a run of kind ngram, expected one of kind facts: `hopscope show " in err
