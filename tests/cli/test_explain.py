"""`contents`, `explain` and `baselines`, on a run whose model was planted."""

import json
import re
from pathlib import Path

import pytest
from reproducing import Said

from hopscope.circuits import Circuit
from hopscope.cli.main import run as command
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.tracing import Baselines, Contents, ContentsStory
from hopscope.training import Run


def test_what_positions_hold_is_shown_drawn_and_written(here: Path, run: Run, said: Said) -> None:
    told = said("contents", run.name, "--examples", "60", "--out", "held.json")
    assert "layer 2  x0 x1 x2  x0" in told
    assert re.search(r"1\.0 +query +x1 1\.00", told)
    assert (here / "reports" / f"{run.name}-contents.svg").is_file()
    kept = Contents.from_dict(json.loads((here / "held.json").read_text()))
    assert kept.held(Role("query"), 3) == {"x0", "x1", "x2"}
    with pytest.raises(CircuitError, match="take at least 36 examples"):
        command(("contents", run.name, "--examples", "2"))


def test_what_positions_come_to_hold_in_a_training(here: Path, run: Run, said: Said) -> None:
    told = said("contents", run.name, "--over-training", "--examples", "60")
    assert re.search(r"query +x1 ", told)
    assert (here / "reports" / f"{run.name}-contents-over-training.svg").is_file()
    story = ContentsStory.from_dict(
        json.loads(said("contents", run.name, "--over-training", "--json"))
    )
    assert story.steps == (0, 2, 4)
    assert 0 < (story.emerged(Role("query"), "x2") or 0) < 2
    assert story.emerged(Role("key", 1), "x2") is None
    for forged, text in (({}, "of format None cannot"), ({"format": 1}, "no contents: KeyError")):
        with pytest.raises(CircuitError, match=text):
            ContentsStory.from_dict(forged)


def test_a_circuit_is_explained_and_keeps_its_account(here: Path, run: Run, said: Said) -> None:
    said("discover", run.name, "--examples", "32", "--out", "found.json")
    said("discover", run.name, "--examples", "32")
    told = said("explain", run.name, "--examples", "8")
    assert re.search(r"2\.0 +query ← value 1 +x2 1\.00", told)
    assert "parts have a causal account" in said("circuit", "show", run.name)
    printed = said("explain", run.name, "--examples", "8", "--json", "--out", "e.json")
    assert Circuit.from_dict(json.loads(printed)) == Circuit.load(here / "e.json")
    assert Circuit.load(here / "found.json").account is None
    told = said("explain", "gallery/demo", "--examples", "8")
    assert "not kept, as the gallery is only read" in told


def test_other_methods_are_held_against_the_circuit(here: Path, run: Run, said: Said) -> None:
    said("discover", run.name, "--examples", "16")
    told = said("baselines", run.name, "--examples", "8", "--out", "found.json")
    assert "EAP-IG" in told
    assert (here / "reports" / f"{run.name}-baselines.svg").is_file()
    kept = Baselines.from_json((here / "found.json").read_bytes())
    printed = said("baselines", run.name, "--examples", "8", "--json")
    assert Baselines.from_json(printed.encode()) == kept
