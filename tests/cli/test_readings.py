"""`hopscope readings`: what was tried, in a terminal and as JSON."""

import json
from pathlib import Path

import musat_rows
import pytest
from reproducing import Said

from hopscope.papers.cost import training_flop
from hopscope.papers.musat.readings import READINGS, PaperReading, reading_of
from hopscope.papers.registry import PAPERS
from hopscope.papers.row import Row
from hopscope.papers.table import Table

NAME = reading_of("fan-in").name


def measured(rows: list[Row]) -> None:
    """Some models are measured, of a target that is not complete."""
    rows = [musat_rows.with_(row, run=f"{number}") for number, row in enumerate(rows)]
    table = Table("musat/readings", "reduced", tuple(rows), wanted=51)
    PAPERS.results(Path("results")).save_part(table)


@pytest.fixture(autouse=True)
def folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    Path("results").mkdir()
    measured(musat_rows.reading_rows(NAME))


def test_every_reading_has_a_line_within_80_columns(said: Said) -> None:
    lines = said("readings").splitlines()
    assert max(map(len, lines)) <= 80
    assert sum("not yet" in line for line in lines) == len(READINGS) - 1
    (line,) = (line for line in lines if "6,400" in line)
    assert NAME.startswith(line.partition("6,400")[0].strip())
    numbers = " ".join(line.partition("6,400")[2].split())
    assert numbers == "0.004 0.004 0.004 4+1 4+1 4+1 9 of 9 150 TFLOP"
    rows = [row.model_copy(update={"steps": 9}) for row in musat_rows.tables()[musat_rows.ABC]]
    PAPERS.results(Path("results")).save(Table(musat_rows.ABC, "smoke", tuple(rows)))
    assert said("readings").splitlines() == lines  # tiny models are of no reading


def test_the_paper_as_we_take_it_stands_beside_its_readings(said: Said) -> None:
    rows = musat_rows.tables()[musat_rows.ABC]
    PAPERS.results(Path("results")).save(Table(musat_rows.ABC, "full", tuple(rows)))
    (row,) = json.loads(said("readings", *PaperReading().words.values(), "--json"))
    assert (row["reading"], row["steps"]) == ("gpt2 constant token base-10000", rows[0].steps)
    assert row["flop"] == training_flop(PaperReading().experiment(0, rows[0].steps))


def test_claims_say_whether_readings_matter(said: Said) -> None:
    other = musat_rows.reading_rows(reading_of("torch").name)
    bent = [musat_rows.with_(row, final=[0.02] * 3, clean=0.02) for row in other]
    measured([*musat_rows.reading_rows(NAME), *bent])
    lines = [line.split() for line in said("readings").splitlines()]
    told = {line[0]: line[1:] for line in lines if line and line[0].startswith("musat/abc-")}
    assert told["musat/abc-below-0.01"] == ["3", "of", "6", "1", "of", "2", "0.25"]
    assert told["musat/abc-four-heads"] == ["6", "of", "6", "2", "of", "2", "1"]
    assert told["musat/abc-different"][-1] == "–"
    assert len(told) == 9


def test_words_choose_and_one_reading_is_told_claim_by_claim(said: Said) -> None:
    rows = json.loads(said("readings", "torch", "--json"))
    assert [row["reading"] for row in rows] == [
        reading.name for reading in READINGS if reading.init == "torch"
    ]
    assert rows[0]["losses"] == []
    (row,) = json.loads(said("readings", NAME, "--json"))  # the name may be one word
    assert row["reading"] == NAME
    told = said("readings", *NAME.split(), "in-order")
    assert "musat/abc-four-heads" in told
    first = musat_rows.reading_rows(NAME)[0]
    steps = ["never" if step is None else f"{step:,}" for step in first.crossed]
    shown = told.partition("learned at step\n")[2].splitlines()[0].split()
    assert shown == [f"{first.seed}", *steps]
