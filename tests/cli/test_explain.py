"""`contents` and `explain`, on a run whose model was planted."""

import json
import re
from pathlib import Path

import pytest

from hopscope.circuits import Circuit
from hopscope.cli.main import run as command
from hopscope.errors import CircuitError, ConfigError
from hopscope.facts import Role
from hopscope.tracing import Baselines, Contents, ContentsStory
from hopscope.training import Run


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert command(arguments) == 0
    return capsys.readouterr().out


def test_what_positions_hold_is_shown_drawn_and_written(
    here: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    told = said(capsys, "contents", run.name, "--examples", "60", "--out", "held.json")
    assert "layer 2  x0 x1 x2  x0" in told
    assert re.search(r"1\.0 +query +x1 1\.00", told)
    assert "of another example's, which nothing can know" in told
    assert (here / "reports" / f"{run.name}-contents.svg").is_file()
    kept = Contents.from_dict(json.loads((here / "held.json").read_text()))
    assert kept.held(Role("query"), 3) == {"x0", "x1", "x2"}
    printed = said(capsys, "contents", run.name, "--examples", "60", "--json")
    assert Contents.from_dict(json.loads(printed)).to_dict() == kept.to_dict()


def test_what_positions_come_to_hold_in_a_training(
    here: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    told = said(capsys, "contents", run.name, "--over-training", "--examples", "60")
    assert re.search(r"query +x1 ", told)
    assert (here / "reports" / f"{run.name}-contents-over-training.svg").is_file()
    story = ContentsStory.from_dict(
        json.loads(said(capsys, "contents", run.name, "--over-training", "--json"))
    )
    assert story.steps == (0, 2, 4)
    assert 0 < (story.emerged(Role("query"), "x2") or 0) < 2
    assert story.emerged(Role("key", 1), "x2") is None
    assert ContentsStory.from_dict(story.to_dict()).to_dict() == story.to_dict()


def test_contents_refuse_what_makes_no_sense(here: Path, run: Run) -> None:
    with pytest.raises(ConfigError, match="--examples is 1; maps are fitted on at least 2"):
        command(("contents", run.name, "--examples", "1"))
    with pytest.raises(CircuitError, match="take at least 36 examples"):
        command(("contents", run.name, "--examples", "2"))
    with pytest.raises(ConfigError, match="a figure goes to a file that ends in .svg"):
        command(("contents", run.name, "--figure", "held.gif"))
    with pytest.raises(CircuitError, match="contents over a training of format None cannot"):
        ContentsStory.from_dict({})
    with pytest.raises(CircuitError, match="these are no contents: KeyError"):
        ContentsStory.from_dict({"format": 1})


@pytest.mark.slow
def test_a_circuit_is_explained_and_keeps_its_account(
    here: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, "discover", run.name, "--examples", "32", "--out", "found.json")
    said(capsys, "discover", run.name, "--examples", "32")
    told = said(capsys, "explain", run.name, "--examples", "8")
    assert re.search(r"2\.0 +query ← value 1 +x2 1\.00", told)
    assert "parts have a causal account" in told
    assert "parts have a causal account" in said(capsys, "circuit", "show", run.name)
    printed = said(capsys, "explain", run.name, "--examples", "8", "--json", "--out", "e.json")
    assert Circuit.from_dict(json.loads(printed)) == Circuit.load(here / "e.json")
    assert Circuit.load(here / "found.json").account is None
    with pytest.raises(ConfigError, match="--examples is 1; expected at least 2"):
        command(("explain", run.name, "--examples", "1"))
    assert "not kept, as the gallery is only read" in said(
        capsys, "explain", "gallery/demo", "--examples", "8"
    )


def test_other_methods_are_held_against_the_circuit(
    here: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, "discover", run.name, "--examples", "16")
    told = said(capsys, "baselines", run.name, "--examples", "8", "--out", "found.json")
    assert "EAP-IG" in told
    assert (here / "reports" / f"{run.name}-baselines.svg").is_file()
    kept = Baselines.from_json((here / "found.json").read_bytes())
    printed = said(capsys, "baselines", run.name, "--examples", "8", "--json")
    assert Baselines.from_json(printed.encode()) == kept
    with pytest.raises(ConfigError, match="--examples is 1 and --steps is 5; expected at least"):
        command(("baselines", run.name, "--examples", "1"))
