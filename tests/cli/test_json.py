"""`--json` of every command that prints a table: JSON on stdout, and nothing else."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest

from hopscope.cli.commands import COMMANDS
from hopscope.cli.flags import arguments_of
from hopscope.cli.main import run
from hopscope.cli.output import say_json
from hopscope.configs import Experiment, Model, Retrieval, Training
from hopscope.store import Store
from hopscope.training import train

EXAMPLE = Path(__file__).parents[2] / "examples" / "mqar.json"
LISTS = {
    "presets": "musat/transformer-a",
    "ablate": "RUN --head 0.0=uniform --examples 8 --out all.json",
    "sql": "QUERY",
    "runs": "",
    "doctor": "",
    "gallery list": "",
    "models list": "",
    "reproduce": "musat --list",
    "claims": "chen",
    "readings": "fan-in pair",
    "depth": "--table 1..4",
    "markov transfer": "gallery/ngram --lengths 10 --alphas 0.5 --chains 20",
    "markov theory": "--tables 20 --length 10",
    "sweep plan": "FILE",
}
"""A line of each command that prints a table, without its name."""
OBJECTS = {
    "maps": "RUN --examples 8 --out maps.json",
    "discover": "RUN --examples 16 --force --out circuit.json",
    "circuit show": "gallery/demo",
    "emergence": "gallery/demo --examples 4 --out story.json",
    "contents": "RUN --examples 60 --out contents.json",
    "explain": "gallery/demo --examples 8 --out explained.json",
    "baselines": "gallery/demo --examples 4 --steps 1 --out scores.json",
    "compare": "RUN gallery/demo --figure both.svg",
    "show": "RUN --figure losses.svg",
}
"""Of each that prints several parts."""
ELSEWHERE = {"llm show", "llm heads", "llm mechanism"}
"""With a language model: tests/llm/test_commands.py."""
NO_TABLE = {
    "train", "resume", "demo", "markov train", "llm bench",  # `show` has the table when they end
    "circuit export", "llm export", "markov figures", "report",  # files
    "verify", "rm", "tag", "gallery copy", "models pull", "models push", "completion",  # lines
    "sweep", "sweep slurm", "export",  # lines, a script, files
    "view", "serve",  # the explorer
}  # fmt: skip
Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one run."""
    made = tmp_path_factory.mktemp("kept")
    training = Training(steps=12, batch=8, examples=64, validate_every=4, validation_examples=16)
    model = Model(layers=2, heads=2, d_model=16)
    train(Experiment(task=Retrieval(hops=2, chains=2), model=model, training=training), made)
    return made


@pytest.fixture
def trained(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a run in the store of the folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOPSCOPE_STORE", raising=False)
    monkeypatch.setenv("HOPSCOPE_CACHE", str(tmp_path / "cache"))
    shutil.copytree(kept, "runs")
    (name,) = Store("runs").names()
    return name


def answered(capsys: Captured, name: str, line: str, trained: str) -> Any:
    """What a program reads."""
    named = {"RUN": trained, "FILE": str(EXAMPLE)}
    words = [named.get(word, word) for word in line.split()]
    words = ["select *, 'nan'::float as no from metrics" if w == "QUERY" else w for w in words]
    capsys.readouterr()
    assert run([*name.split(), *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out, parse_constant=pytest.fail)


def test_every_command_that_prints_a_table_has_it() -> None:
    flags = {
        name: {flag for argument in arguments_of(command) for flag in argument.flags}
        for name, command in COMMANDS.items()
    }
    have = {name for name, own in flags.items() if "--json" in own}
    assert have == {*LISTS, *OBJECTS} | ELSEWHERE
    assert {*COMMANDS} - have == NO_TABLE


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
    for path in Path().glob("*.json"):  # what is printed is what `--out` writes
        assert json.loads(path.read_text()) == found


def test_no_column_is_lost_and_sums_are_numbers(trained: str, capsys: Captured) -> None:
    assert run(["sql", "select sum(0.25) as y, 1.5 as x", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"y": 0.25, "x": 1.5}]


def test_numbers_are_numbers(trained: str, capsys: Captured) -> None:
    rows = answered(capsys, "sql", "QUERY", trained)
    assert rows[0].keys() == {"run", "split", "step", "seed", "hop", "loss", "no"}
    assert all(row["no"] is None and isinstance(row["loss"], float) for row in rows)
    shown = answered(capsys, "show", "RUN", trained)
    assert shown["step"] == shown["settings"]["training.steps"] == 12
    first, second = shown["results"]
    assert (first["hop"], second["hop"]) == (1, 2)
    last = [row for row in rows if row["split"] == "validation" and row["step"] > 0]
    losses = [row["loss"] for row in last if row["hop"] == 1]  # a mean: all are of the last 100
    assert first["final_loss"] == pytest.approx([sum(losses) / len(losses)])
    assert answered(capsys, "depth", "--hops 4", trained)[-1] == {"symbol": "x4", "layers": 4}


def test_a_fleet_is_a_list(trained: str, capsys: Captured, tiny: Experiment) -> None:
    fleet = train(tiny.model_copy(update={"seeds": (3, 4)})).name
    line = "RUN --all --examples 16 --force"
    found = answered(capsys, "discover", line, fleet)
    assert [row["seed"] for row in found] == [3, 4]
    shown = answered(capsys, "show", "RUN", fleet)
    assert all(len(row["final_loss"]) == 2 for row in shown["results"])


def test_what_steers_a_terminal_is_escaped(capsys: Captured) -> None:
    say_json([{"name": "a\x1b[31m", "at": Path("x"), "loss": (math.inf, 1)}])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert json.loads(out) == [{"name": "a\x1b[31m", "at": "x", "loss": [None, 1]}]
