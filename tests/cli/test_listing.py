"""`hopscope runs`: what it shows, in which order, and what it leaves out."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from hopscope.cli.main import run as hopscope
from hopscope.configs import Experiment, Retrieval, Training
from hopscope.store import RunFolder, Store
from hopscope.store.metrics import part, part_name, to_parquet

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOPSCOPE_STORE", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "160")
    return tmp_path


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
def three() -> tuple[RunFolder, RunFolder, RunFolder]:
    """A complete run, a fleet that was stopped, and one that is damaged; begun in this order."""
    whole = made(2, 10, complete=True)
    fleet = made(1, 4, (0, 1))
    damaged = made(3, 4)
    next(damaged.path.glob("metrics/*")).write_bytes(b"")
    for age, folder in enumerate((damaged, whole, fleet)):  # dates go another way
        when = 1_700_000_000 + 86_400 * age
        os.utime(folder.path / "manifest.json", (when, when))
    for place, folder in enumerate((whole, fleet, damaged)):
        os.utime(folder.path / "config.json", (place, place))
    return whole, fleet, damaged


def said(capsys: Captured, *words: str) -> tuple[int, list[str], list[str]]:
    code = hopscope(["runs", *words])
    captured = capsys.readouterr()
    return code, captured.out.splitlines(), captured.err.splitlines()


def first_words(lines: list[str]) -> list[str]:
    return [line.split()[0] for line in lines]


def test_a_row_says_all_of_a_run(three: tuple[RunFolder, ...], capsys: Captured) -> None:
    whole, fleet, damaged = three
    Store().tag(whole.name, "baseline", "paper")
    code, (head, *rows), err = said(capsys)
    assert code == 1
    assert head.split() == [
        "run", "state", "models", "training", "losses", "date", "size", "tags", "course",
    ]  # fmt: skip
    assert first_words(rows) == [whole.name, fleet.name, damaged.name]
    size = sum(path.stat().st_size for path in whole.path.rglob("*") if path.is_file()) / 1e6
    assert rows[0].split()[1:-1] == [
        "10", "1", "0.250", "0.250", "2023-11-15", f"{size:.1f}", "MB", "baseline", "paper",
    ]  # fmt: skip
    assert rows[1].split()[1:8] == ["4", "of", "10,", "stopped", "2", "0.250", "2023-11-16"]
    assert rows[2].split()[1] == "damaged"
    assert len(err) == 1
    assert f"{damaged.name}/metrics/" in err[0]


@pytest.mark.parametrize(
    ("order", "expected"), [("begun", "wfd"), ("date", "dwf"), ("state", "wdf"), ("name", "fwd")]
)
def test_orders(three: tuple[RunFolder, ...], capsys: Captured, order: str, expected: str) -> None:
    letters = {folder.name: letter for folder, letter in zip(three, "wfd", strict=True)}
    _, (_, *rows), _ = said(capsys, "--sort", order)
    assert "".join(letters[name] for name in first_words(rows)) == expected


def test_the_largest_is_at_the_end(three: tuple[RunFolder, ...], capsys: Captured) -> None:
    (three[1].path / "notes.md").write_text("x" * 1_000_000)
    _, (_, *rows), _ = said(capsys, "--sort", "size")
    assert first_words(rows)[-1] == three[1].name


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--state", "complete"], "w"),
        (["--state", "stopped"], "f"),
        (["--state", "damaged"], "d"),
        (["d1"], "f"),
        (["baseline"], "wd"),
        (["baseline", "--state", "complete"], "w"),
        (["base"], ""),
        (["--state", "in-training"], ""),
    ],
)
def test_filters(
    three: tuple[RunFolder, ...], capsys: Captured, words: list[str], expected: str
) -> None:
    for folder in (three[0], three[2]):
        if folder is three[0]:
            Store().tag(folder.name, "baseline")
    tags = Store().root / "tags.json"
    content = json.loads(tags.read_text())
    content["runs"][three[2].name] = ["baseline"]  # it was whole when it was tagged
    tags.write_text(json.dumps(content))
    letters = {folder.name: letter for folder, letter in zip(three, "wfd", strict=True)}
    _, lines, _ = said(capsys, *words)
    found = "".join(letters.get(line.split()[0], "") for line in lines)
    assert found == expected
    if not expected:
        assert lines == [f"none of the 3 runs in {Store().root} is so"]


def test_a_run_in_training(capsys: Captured) -> None:
    folder = made(1, 4)
    with folder.locked():
        _, (_, row), _ = said(capsys, "--state", "in-training")
    assert "4 of 10, in training" in row


def test_json_is_an_object_for_each_run(three: tuple[RunFolder, ...], capsys: Captured) -> None:
    _, lines, _ = said(capsys, "--json")
    whole, fleet, damaged = json.loads("".join(lines))
    assert (whole["name"], whole["state"], whole["losses"]) == (
        three[0].name,
        "complete",
        [0.25] * 2,
    )
    assert (fleet["step"], fleet["steps"], fleet["models"]) == (4, 10, 2)
    assert (damaged["state"], damaged["step"], damaged["losses"]) == ("damaged", None, [])
    assert damaged["problem"]


def test_no_runs_are_an_empty_list(capsys: Captured) -> None:
    assert said(capsys, "--json") == (0, ["[", "]"], [])
    assert said(capsys)[1][0].startswith("no runs in")


def test_metrics_that_cannot_be_read_damage_one_run(capsys: Captured) -> None:
    good, bad = made(1, 4), made(2, 4)
    path = next(bad.path.glob("metrics/*"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1  # of the same size
    path.write_bytes(bytes(data))
    code, (_, *rows), err = said(capsys)
    assert code == 1
    assert first_words(rows) == [good.name, bad.name]
    assert rows[1].split()[1] == "damaged"
    assert "its SHA-256 differs" in err[0]


def test_forged_tags_are_one_line(capsys: Captured) -> None:
    folder = made(1, 4)
    (Store().root / "tags.json").write_text('{"format": 1, "runs": {"../x": ["a"]}}')
    code, (_, row), err = said(capsys)
    assert code == 1
    assert folder.name in row
    assert len(err) == 1
    assert "tags.json holds no tags" in err[0]


def test_at_eighty_columns_no_line_is_longer(
    three: tuple[RunFolder, ...], capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    _, lines, _ = said(capsys)
    assert max(map(len, lines)) <= 80
    assert lines[0].split()[-1] == "size"
