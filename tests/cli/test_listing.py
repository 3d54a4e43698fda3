"""`hopscope runs`: what it shows, in which order, and what it leaves out."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hopscope.cli.main import run as hopscope
from hopscope.configs import Experiment, MarkovExperiment, Retrieval, Training
from hopscope.store import RunFolder, Store
from hopscope.store.metrics import part, part_name, to_parquet

Runs = Callable[..., tuple[list[str], list[str]]]


def made(hops: int, step: int, seeds: tuple[int, ...] = (0,), **changes: object) -> RunFolder:
    """A run of ten steps, of which some are done; its losses are 0.25."""
    recipe = Experiment(task=Retrieval(hops=hops), training=Training(steps=10), seeds=seeds)
    folder = Store().create(recipe)
    steps = np.arange(1, step + 1, dtype=np.int32)
    losses = np.full((step, len(seeds), hops), 0.25, np.float32)
    rows = part("train", recipe, steps, losses)
    folder.commit({part_name(0, step): to_parquet([rows])}, step=step, **changes)
    return folder


@pytest.fixture
def three(root: Path) -> dict[str, RunFolder]:
    """A complete run, a fleet that was stopped, and one that is damaged; begun in this order."""
    found = {"w": made(2, 10, complete=True), "f": made(1, 4, (0, 1)), "d": made(3, 4)}
    next(found["d"].path.glob("metrics/*")).write_bytes(b"")
    for age, letter in enumerate("dwf"):  # dates go another way
        when = 1_700_000_000 + 86_400 * age
        os.utime(found[letter].path / "manifest.json", (when, when))
    for place, folder in enumerate(found.values()):
        os.utime(folder.path / "config.json", (place, place))
    return found


@pytest.fixture
def runs(capsys: pytest.CaptureFixture[str], root: Path) -> Runs:
    """The lines that are printed, and what is said of what cannot be read."""

    def said(*words: str, code: int | None = None) -> tuple[list[str], list[str]]:
        assert hopscope(["runs", *words]) in ({0, 1} if code is None else {code})
        captured = capsys.readouterr()
        return captured.out.splitlines(), captured.err.splitlines()

    return said


def test_a_row_says_all_of_a_run(
    three: dict[str, RunFolder], runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines, _ = runs()
    assert max(map(len, lines)) <= 80
    assert lines[0].split()[-1] == "size"  # no room is left for the course
    monkeypatch.setenv("COLUMNS", "160")
    whole = three["w"]
    Store().tag(whole.name, "baseline", "paper")
    (head, *rows), (told,) = runs(code=1)
    titles = "run state models training losses date size tags course"
    assert head.split() == titles.split()
    assert [row.split()[0] for row in rows] == [folder.name for folder in three.values()]
    size = sum(path.stat().st_size for path in whole.path.rglob("*") if path.is_file()) / 1e6
    first = f"10 1 0.250 0.250 2023-11-15 {size:.1f} MB baseline paper"
    assert rows[0].split()[1:-1] == first.split()
    assert rows[1].split()[1:8] == "4 of 10, stopped 2 0.250 2023-11-16".split()
    assert rows[2].split()[1] == "damaged"
    assert f"{three['d'].name}/metrics/" in told


def test_orders_and_filters(three: dict[str, RunFolder], runs: Runs) -> None:
    Store().tag(three["w"].name, "baseline")
    tags = Store().root / "tags.json"
    content = json.loads(tags.read_text())
    content["runs"][three["d"].name] = ["baseline"]  # it was whole when it was tagged
    tags.write_text(json.dumps(content))
    (three["f"].path / "notes.md").write_text("x" * 1_000_000)
    letters = {folder.name: letter for letter, folder in three.items()}
    for words, expected in {
        "--sort begun": "wfd",
        "--sort date": "dwf",
        "--sort state": "wdf",
        "--sort name": "fwd",
        "--state complete": "w",
        "--state stopped": "f",
        "--state damaged": "d",
        "d1": "f",
        "baseline": "wd",
        "baseline --state complete": "w",
        "base": "",
        "--state in-training": "",
    }.items():
        lines, _ = runs(*words.split())
        assert "".join(letters.get(line.split()[0], "") for line in lines) == expected, words
    assert lines == [f"none of the 3 runs in {Store().root} is so"]
    lines, _ = runs("--sort", "size")
    assert lines[-1].split()[0] == three["f"].name  # the largest is at the end


def test_a_run_in_training(runs: Runs) -> None:
    assert runs("--json", code=0)[0] == ["[", "]"]
    assert runs(code=0)[0][0].startswith("no runs in")
    folder = made(1, 4)
    with folder.locked():
        (_, row), _ = runs("--state", "in-training", code=0)
    assert "4 of 10, in training" in row


def test_json_is_an_object_for_each_run(three: dict[str, RunFolder], runs: Runs) -> None:
    whole, fleet, damaged = json.loads("".join(runs("--json")[0]))
    assert (whole["name"], whole["state"]) == (three["w"].name, "complete")
    assert whole["losses"] == [0.25] * 2
    assert (fleet["step"], fleet["steps"], fleet["models"]) == (4, 10, 2)
    assert (damaged["state"], damaged["step"], damaged["losses"]) == ("damaged", None, [])
    assert damaged["problem"]


def test_damage_of_one_hides_no_other(runs: Runs) -> None:
    good, bad, forged = made(1, 4), made(2, 4), made(3, 4)
    path = next(bad.path.glob("metrics/*"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1  # of the same size
    path.write_bytes(bytes(data))
    (forged.path / "manifest.json").write_text("{}")
    (Store().root / "tags.json").write_text('{"format": 1, "runs": {"../x": ["a"]}}')
    lines, told = runs(code=1)
    assert {line.split()[0] for line in lines[1:]} >= {good.name, bad.name}
    assert len(told) == 3
    for text in ("its SHA-256 differs", "is not a manifest", "tags.json holds no tags"):
        assert any(text in line for line in told), text


def test_settings_that_vary_have_a_column_each(
    runs: Runs, tiny: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "900")
    training = Training(steps=3, batch=4, lr=0.002)
    longer = tiny.model_copy(update={"training": training, "seeds": (5,)})
    for recipe in (tiny, longer):
        Store().create(recipe)
    bad = Store().create(tiny.model_copy(update={"seeds": (9,)}))
    (bad.path / "config.json").write_text("{")
    (head, *lines), _ = runs("--varies")
    titles = head.split()
    assert titles[:2] == ["run", "state"]
    assert {"lr", "steps", "batch", "seeds"} <= set(titles)
    assert not {"date", "size", "layers", "hops"} & set(titles)
    (of_longer,) = (line for line in lines if longer.run_name() in line)
    assert {"0.002", "[5]"} <= set(of_longer.split())
    (head, *_), _ = runs(tiny.run_name(), "--varies")
    assert head.split() == ["run", "state", "course"]

    Store().create(MarkovExperiment())
    rows = json.loads("".join(runs("--varies", "--json")[0]))
    told = {row["name"]: row["settings"] for row in rows}
    assert told[bad.name] == {}
    assert told[tiny.run_name()]["training.lr"] == tiny.training.lr
    assert told[MarkovExperiment().run_name()]["training.lr"] is None
