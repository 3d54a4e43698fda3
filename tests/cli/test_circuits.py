"""The circuit commands on a run whose model was planted: the story is known."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
import torch
from reproducing import Said
from safetensors.torch import load_file

from hopscope.circuits import Circuit
from hopscope.cli.main import run as command
from hopscope.configs import Experiment
from hopscope.errors import CircuitError, ConfigError
from hopscope.models.planted import Planted
from hopscope.store import Store
from hopscope.store.checkpoints import checkpoint_name
from hopscope.study import Study
from hopscope.training import Run, train


def files(run: Run) -> set[str]:
    return {*Store().find(run.name).manifest.files}


def test_the_whole_story(here: Path, run: Run, known: Planted, said: Said) -> None:
    for asked in (("emergence", run.name), ("circuit", "show", run.name)):
        with pytest.raises(CircuitError, match=r"has no circuit yet: `hopscope discover"):
            command(asked)
    found = said("discover", run.name, "--examples", "32", "--repeat", "2")
    assert "in 2 searches, each on its own sample" in found
    assert "2 of 2" in found
    circuit = Circuit.from_json(Store().find(run.name).read("circuit.json"))
    assert set(circuit.paths) == set(known.paths)
    assert "along these paths the query learns x1, x2" in found

    story = said("emergence", run.name, "--out", "story.json")
    assert "hop 2 is learned" in story
    assert json.loads((here / "story.json").read_text())["steps"] == [0, 2, 4]
    for name in ("circuit", "emergence", "order"):
        drawn = (here / "reports" / f"{run.name}-{name}.svg").read_text()
        assert drawn.count("<path") > len(circuit.paths)

    assert "query ← value 0" in said("circuit", "show", run.name)
    said("circuit", "export", run.name, "--out", "mine.json")
    assert Circuit.load(here / "mine.json") == circuit


EXPORTS: dict[tuple[str, str], Callable[[Path], bool]] = {
    ("png", "png"): lambda path: path.read_bytes().startswith(b"\x89PNG"),
    ("edges", "edges.json"): lambda path: {"nodes", "edges"} <= set(json.loads(path.read_text())),
    ("circuitsvis", "circuitsvis.json"): lambda path: (
        {"tokens", "attention"} <= set(json.loads(path.read_text()))
    ),
    ("transformer-lens", "tl.safetensors"): lambda path: any("attn" in n for n in load_file(path)),
    ("transformer-lens-legacy", "tl-legacy.safetensors"): lambda path: (
        "blocks.0.attn.W_Q" in load_file(path)
    ),
}
"""Formats, with how their files end and what these must hold."""


def test_exports(here: Path, run: Run, said: Said) -> None:
    said("discover", run.name, "--examples", "16")
    for (kind, suffix), holds in EXPORTS.items():
        out = said("circuit", "export", run.name, "--format", kind)
        path = here / "reports" / f"{run.name}-circuit.{suffix}"
        assert str(path.relative_to(here)) in out
        assert holds(path), kind


def test_maps_of_roles_and_of_one_example(here: Path, run: Run, said: Said) -> None:
    said("maps", run.name, "--examples", "8", "--out", "maps.json")
    assert "query" in json.loads((here / "maps.json").read_text())["roles"]
    said("maps", run.name, "--example", "2", "--figure", "one.png")
    assert (here / "one.png").read_bytes().startswith(b"\x89PNG")


def test_another_checkpoint_is_another_model(here: Path, run: Run, said: Said) -> None:
    said("discover", run.name, "--step", "2", "--examples", "16")
    assert "circuit-step-2.json" in files(run)
    untrained = ("discover", run.name, "--step", "0", "--examples", "8")
    with pytest.raises(CircuitError, match="this model has not learned the task"):
        command(untrained)
    said(*untrained, "--force")
    folder = Store().find(run.name)
    folder.commit({"circuit-step-0.json": folder.read("circuit-step-2.json")})
    with pytest.raises(CircuitError, match="this circuit was found in another model"):
        command(("emergence", run.name, "--step", "0"))


def test_a_checkpoint_on_a_spike_is_told_and_json_stays_json(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    untrained = ["discover", "gallery/demo", "--step", "0", "--examples", "8", "--force"]
    assert command([*untrained, "--json", "--out", "c.json"]) == 0
    captured = capsys.readouterr()
    assert "parts" in json.loads(captured.out)
    note = "note: the loss at step 0 is 1.957, at 2,400 it was 0.010: --step 2400 examines that"
    assert note in captured.err


def test_a_fleet_is_examined_member_by_member(here: Path, tiny: Experiment, said: Said) -> None:
    fleet = train(tiny.model_copy(update={"seeds": (4, 9)}), here / "runs")
    said("discover", fleet.name, "--seed", "9", "--examples", "8", "--force")
    assert "circuit-seed-9.json" in files(fleet)
    said("maps", fleet.name, "--examples", "4")
    assert (here / "reports" / f"{fleet.name}-seed-4-maps.svg").exists()


@pytest.fixture(scope="module")
def twins(story: Path, run: Run) -> Run:
    """A fleet of two, one of which was planted."""
    made = train(run.recipe.model_copy(update={"seeds": (3, 5)}), story / "runs")
    state = safetensors.torch.load(run.folder.read(checkpoint_name(4)))
    for step in (2, 4):
        name = checkpoint_name(step)
        with safetensors.safe_open(made.folder.path / name, "pt") as file:
            words, untrained = file.metadata(), {n: file.get_tensor(n)[1] for n in file.keys()}  # noqa: SIM118
        both = {n: torch.stack((tensor, untrained[n])) for n, tensor in state.items()}
        made.folder.commit({name: safetensors.torch.save(both, words)})
    return made


def test_a_fleet_is_examined_whole(
    here: Path, twins: Run, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = said("discover", twins.name, "--all", "--examples", "16")
    assert "2.0 q←v1" in found
    assert "this model has not learned the task" in found
    emergence = ("emergence", twins.name, "--all", "--examples", "8")
    (line,) = (line for line in said(*emergence).splitlines() if line.startswith("q ← v1 "))
    assert line.split()[-1] == "·"  # only one has learned
    # Whatever it has, the first part counts as not explained.
    monkeypatch.setattr(Circuit, "unexplained", property(lambda found: found.parts[:1]))
    asked = ("discover", twins.name, "--all", "--examples", "8", "--force", "--json")
    members = Study(Run(Store(here / "runs").find(twins.name))).members()
    rows = json.loads(said(*asked))
    for row, member in zip(rows, members, strict=True):
        left = {f"{part.layer}.{part.head}" for part in member.circuit.unexplained}
        assert {*row["unexplained"].split(", ")} - {""} == left
    assert any(row["unexplained"] for row in rows)
    story = said(*emergence, "--out", "all.json", "--figure", "all.svg")
    assert "hop 2 is learned" in story
    told = json.loads(said(*emergence, "--json"))
    assert all(row.keys() == {"what", "seed", "step"} for row in told)
    table = story.split("\n\n")[0].splitlines()[1:]
    assert {row["what"] for row in told} >= {
        line.split("  ")[0] for line in table if "seed" in line
    }
    kept = json.loads((here / "all.json").read_text())
    assert {each["seed"] for each in kept} == {row["seed"] for row in told}
    assert {each["seed"] for each in kept} <= set(twins.recipe.seeds)
    assert all(each["paths"] and each["steps"] == [0, 2, 4] for each in kept)
    for each in kept:
        for name in ("", "-order", "-circuit-emergence"):
            assert (here / f"all-seed-{each['seed']}{name}.svg").stat().st_size


def test_a_circuit_in_a_file_takes_the_place_of_the_one_with_the_run(
    here: Path, run: Run, said: Said
) -> None:
    said("discover", run.name, "--examples", "8", "--force", "--out", "kept.json")
    shown = said("circuit", "show", "kept.json")
    assert "of the way from guessing to the model" in shown
    assert said("circuit", "show", run.name, "--circuit-file", "kept.json") == shown
    for form, out in (("svg", "kept.svg"), ("json", "again.json")):
        said("circuit", "export", "kept.json", "--format", form, "--out", out)
    assert (here / "kept.svg").stat().st_size
    assert Circuit.load(here / "again.json") == Circuit.load(here / "kept.json")
    with pytest.raises(ConfigError, match="--format is edges, for which the model is needed"):
        command(("circuit", "export", "kept.json", "--format", "edges"))
    words = ("ablate", run.name, "--circuit-file", "kept.json", "--examples", "8")
    assert "the circuit" in said(*words)
