"""Readers beside trainings: all of them are answered."""

import os
import sys
from pathlib import Path

import pytest
from torture.harness import committed, ended, hopscope_, started, train_words, transformer

from hopscope.store import Store
from hopscope.training import Run

pytestmark = pytest.mark.slow
TRAININGS = 5
QUERY = (
    "select r.name, count(m.step) from runs r left join metrics m on m.run = r.name group by all"
)


def reads(store: Path, mark: Path) -> int:
    """From Python: losses and models of every run, again and again until all is done."""
    while not mark.exists():
        for name in Store(store).names():
            run = Run(Store(store).find(name))
            steps, values = run.losses("train")
            assert list(steps) == list(range(1, len(values) + 1))
            for step in run.checkpoints[-1:]:
                run.model_at(step)
    return 0


def asks(folder: Path, mark: Path, *words: str) -> int:
    """At the command line; every run that was there before must be told of."""
    while not mark.exists():
        names = Store(folder / "runs").names()
        place = os.lseek(1, 0, os.SEEK_END)
        assert hopscope_(folder, *words) == 0
        sys.stdout.flush()
        told = Path("/proc/self/fd/1").read_bytes()[place:].decode()
        assert words[0] == "verify" or all(name in told for name in names)
    return 0


def test_readers_beside_trainings_see_every_run(tmp_path: Path) -> None:
    recipes = [transformer(seed, steps=40) for seed in range(TRAININGS)]
    others = range(1, TRAININGS)
    mark, first = tmp_path / "done", recipes[0].run_name()
    words = [train_words(tmp_path, each, f"{n}.json") for n, each in enumerate(recipes)]
    begin = started(tmp_path / "first", hopscope_, tmp_path, *words[0])
    assert ended(begin, tmp_path / "first").rude == ""
    readers = {
        "reads": (reads, tmp_path / "runs", mark),
        "runs": (asks, tmp_path, mark, "runs"),
        "sql": (asks, tmp_path, mark, "sql", QUERY, "--csv"),
        "verify": (asks, tmp_path, mark, "verify", first),
    }
    processes = {name: started(tmp_path / name, *work) for name, work in readers.items()}
    try:
        trainings = {
            n: started(tmp_path / f"train-{n}", hopscope_, tmp_path, *words[n]) for n in others
        }
        for number, process in trainings.items():
            found = ended(process, tmp_path / f"train-{number}")
            assert (found.code, found.rude) == (0, "")
    finally:
        mark.touch()  # or the readers would go on, and pytest would wait for them at its end
    for name, process in processes.items():
        found = ended(process, tmp_path / name)
        assert found.code == 0, (name, found.err)
        assert found.err == "", name
    assert len(committed(tmp_path / "runs")) == TRAININGS
