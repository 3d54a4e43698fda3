"""`--json` of every command that prints a table: JSON on stdout, and nothing else."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
from calling import Captured, Patch

from hopscope.cli.commands import COMMANDS, load
from hopscope.cli.main import run as command
from hopscope.cli.output import say_json
from hopscope.cli.results import Destination, Output
from hopscope.configs import Experiment
from hopscope.training import Run, train

EXAMPLE = Path(__file__).parents[2] / "examples" / "mqar.json"
LISTS = {
    "presets": "musat/transformer-a",
    "ablate": "RUN --head 0.0=uniform --examples 8 --save all.json",
    "evaluate": "RUN --examples 8 --save losses.json",
    "sql": "QUERY",
    "runs": "",
    "doctor": "",
    "gallery": "",
    "lm list": "",
    "papers list": "musat",
    "papers claims": "chen",
    "depth": "--table 1..4",
    "ngram transfer": "gallery/ngram --lengths 10 --alphas 0.5 --chains 20",
    "ngram theory": "--tables 20 process.length=10",
    "sweep": "FILE --plan",
}
"""A line of each command that prints a table, without its name."""
OBJECTS = {
    "attention": "RUN --examples 8 --save maps.json",
    "circuit": "RUN --examples 16 --fresh 16 --force --save circuit.json",
    "emergence": "gallery/demo --examples 2 --save story.json",
    "probe": "RUN --examples 60 --save probe.json",
    "patch": "gallery/demo --examples 2 --save explained.json",
    "baselines": "gallery/demo --examples 2 --interpolations 1 --save scores.json",
    "compare": "RUN gallery/demo --save both.json",
    "show": "RUN --figure losses.svg",
}
"""Of each that prints several parts."""
ELSEWHERE = {"lm claims", "lm heads", "lm circuit"}
"""With a language model: tests/lm/test_commands.py."""


@pytest.fixture
def trained(story: Path, run: Run, root: Path, monkeypatch: Patch) -> str:
    """The name of a run in the store of the folder."""
    monkeypatch.setenv("HOPSCOPE_CACHE", str(root / "cache"))
    shutil.copytree(story / "runs", "runs")
    return run.name


def answered(capsys: Captured, name: str, line: str, trained: str) -> Any:
    """What a program reads."""
    query = "select *, 'nan'::float as no, 1.5::decimal as sum from metrics"
    named = {"RUN": trained, "FILE": str(EXAMPLE), "QUERY": query}
    words = [named.get(word, word) for word in line.split()]
    capsys.readouterr()
    assert command([*name.split(), *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out, parse_constant=pytest.fail)


def test_no_command_that_has_it_is_left_out_here() -> None:
    flags = {name: {flag for each in load(name).params for flag in each.opts} for name in COMMANDS}
    assert {name for name, own in flags.items() if "--json" in own} == {
        *LISTS,
        *OBJECTS,
    } | ELSEWHERE


def test_a_table_is_a_list_of_objects(trained: str, capsys: Captured) -> None:
    for name, line in LISTS.items():
        found = answered(capsys, name, line, trained)
        assert isinstance(found, list)
        assert found, name
        assert all(row.keys() == found[0].keys() for row in found), name
        assert all(key and " " not in key for key in found[0]), name


@pytest.mark.parametrize("name", OBJECTS)
def test_several_parts_are_one_object(name: str, trained: str, capsys: Captured) -> None:
    found = answered(capsys, name, OBJECTS[name], trained)
    assert isinstance(found, dict)
    assert not Path("reports").exists()  # figures only where they are asked for
    for path in Path().glob("*.json"):  # what is printed is what `--save` writes
        assert json.loads(path.read_text()) == found


def test_numbers_are_numbers(trained: str, capsys: Captured) -> None:
    rows = answered(capsys, "sql", "QUERY", trained)
    assert rows[0].keys() == {"run", "split", "step", "seed", "hop", "loss", "no", "sum"}
    assert all((row["no"], row["sum"]) == (None, 1.5) for row in rows)
    shown = answered(capsys, "show", "RUN", trained)
    assert shown["step"] == shown["settings"]["training.steps"] == 4
    first, second = shown["results"]
    assert (first["hop"], second["hop"]) == (1, 2)
    last = [row for row in rows if row["split"] == "validation" and row["step"] > 0]
    for result in (first, second):
        losses = [row["loss"] for row in last if row["hop"] == result["hop"]]
        mean = sum(losses) / len(losses)  # all are of the last 100
        assert result["final_loss"] == pytest.approx([mean])
    assert answered(capsys, "depth", "--hops 4", trained)[-1]["layers"] == 4


def test_a_fleet_is_a_list(trained: str, capsys: Captured, tiny: Experiment) -> None:
    fleet = train(tiny.model_copy(update={"seeds": (3, 4)})).name
    shown = answered(capsys, "show", "RUN", fleet)
    assert all(len(row["final_loss"]) == 2 for row in shown["results"])


def test_what_steers_a_terminal_is_escaped(capsys: Captured) -> None:
    say_json([{"name": "a\x1b[31m", "at": Path("x"), "loss": (math.inf, 1)}])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert json.loads(out) == [{"name": "a\x1b[31m", "at": "x", "loss": [None, 1]}]


def test_a_saved_file_has_no_nan(root: Path) -> None:
    """As the standard errors of heads have, where one answer alone is right."""
    place = root / "heads.json"
    Destination(json=True, figure=None, width=None, dpi=100, save=place).put(
        Output({"error": [math.nan, 1.0]}, [])
    )
    assert json.loads(place.read_text(), parse_constant=pytest.fail) == {"error": [None, 1.0]}
