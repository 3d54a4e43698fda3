"""`hopscope readings`: what was tried, in a terminal and as JSON."""

import json
from pathlib import Path

import musat_rows
import pytest

from hopscope.cli.main import run as hopscope
from hopscope.errors import ConfigError
from hopscope.papers.cost import training_flop
from hopscope.papers.musat.readings import READINGS, PaperReading, reading_of
from hopscope.papers.registry import PAPERS
from hopscope.papers.table import Table

NAME = reading_of("fan-in").name


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three models of one reading are measured, of a target that is not complete."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    rows = [row.model_copy(update={"run": str(row.seed)}) for row in musat_rows.reading_rows(NAME)]
    Path("results").mkdir()
    results = PAPERS.results(Path("results"))
    results.save_part(Table("musat/readings", "reduced", tuple(rows), wanted=51))


def test_every_reading_has_a_line_within_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert hopscope(["readings"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert sum("not yet" in line for line in lines) == len(READINGS) - 1
    (measured,) = (line for line in lines if "6,400" in line)
    assert NAME.startswith(measured.partition("6,400")[0].strip())
    told = " ".join(measured.partition("6,400")[2].split())
    assert told == "0.004 0.004 0.004 4+1 4+1 4+1 9 of 9 150 TFLOP"


def test_the_paper_as_we_take_it_stands_beside_its_readings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = musat_rows.tables()[musat_rows.ABC]
    PAPERS.results(Path("results")).save(Table(musat_rows.ABC, "full", tuple(rows)))
    hopscope(["readings", *PaperReading().words.values(), "--json"])
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["reading"], row["steps"]) == ("gpt2 constant token base-10000", rows[0].steps)
    assert row["flop"] == training_flop(PaperReading().experiment(0, rows[0].steps))


def test_claims_say_whether_readings_matter(capsys: pytest.CaptureFixture[str]) -> None:
    good = musat_rows.reading_rows(NAME)
    rows = [*good, *musat_rows.reading_rows(reading_of("torch").name)]
    rows[3:] = [musat_rows.with_(row, final=[0.02] * 3, clean=0.02) for row in rows[3:]]
    rows = [musat_rows.with_(row, run=f"{number}") for number, row in enumerate(rows)]
    results = PAPERS.results(Path("results"))
    results.save_part(Table("musat/readings", "reduced", tuple(rows), wanted=51))
    hopscope(["readings"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    told = {line[0]: line[1:] for line in lines if line and line[0].startswith("musat/abc-")}
    assert told["musat/abc-below-0.01"] == ["3", "of", "6", "1", "of", "2", "0.25"]
    assert told["musat/abc-four-heads"] == ["6", "of", "6", "2", "of", "2", "1"]
    assert told["musat/abc-different"][-1] == "–"
    assert len(told) == 9


def test_the_name_of_a_reading_may_be_one_word(capsys: pytest.CaptureFixture[str]) -> None:
    hopscope(["readings", NAME, "--json"])
    (row,) = json.loads(capsys.readouterr().out)
    assert row["reading"] == NAME


def test_words_choose_and_one_reading_is_told_claim_by_claim(
    capsys: pytest.CaptureFixture[str],
) -> None:
    hopscope(["readings", "torch", "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert [row["reading"] for row in rows] == [
        reading.name for reading in READINGS if reading.init == "torch"
    ]
    assert rows[0]["losses"] == []
    hopscope(["readings", *NAME.split(), "in-order"])
    told = capsys.readouterr().out
    assert "musat/abc-four-heads" in told
    row = musat_rows.reading_rows(NAME)[0]
    steps = ["never" if step is None else f"{step:,}" for step in row.crossed]
    seed, *learned = told.partition("learned at step\n")[2].splitlines()[0].split()
    assert (seed, learned) == (f"{row.seed}", steps)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["fan-in", "gpt2"], "fan-in and gpt2 are both initial weights: a reading has one of them"),
        (
            ["torch", "cosine"],
            "no reading that is tried has torch and cosine: `hopscope readings` lists them",
        ),
        (["fan-inn"], "no reading has 'fan-inn': did you mean fan-in?"),
    ],
)
def test_words_that_make_no_reading_are_one_line(words: list[str], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        hopscope(["readings", *words])
    assert str(caught.value) == told


def test_tiny_models_are_of_no_reading(capsys: pytest.CaptureFixture[str]) -> None:
    hopscope(["readings"])
    before = capsys.readouterr().out
    rows = [row.model_copy(update={"steps": 9}) for row in musat_rows.tables()[musat_rows.ABC]]
    PAPERS.results(Path("results")).save(Table(musat_rows.ABC, "smoke", tuple(rows)))
    hopscope(["readings"])
    assert capsys.readouterr().out == before
