"""Commands on a run whose model was planted: the story is known."""

import json
import re
from pathlib import Path

import pytest
import safetensors.torch
import torch
from calling import Captured, Patch, Said

from hopscope.circuits import (
    Ablation,
    Ablator,
    Circuit,
    Pattern,
    Probe,
    ProbeHistory,
    adapter_of,
    exam_of,
)
from hopscope.cli.main import run as command
from hopscope.configs import Experiment, KHop
from hopscope.configs.tasks import Order
from hopscope.errors import CircuitError, ConfigError
from hopscope.facts import Role
from hopscope.models.planted import Planted
from hopscope.store import Store
from hopscope.store.checkpoints import checkpoint_name
from hopscope.study import load
from hopscope.training import Run, train


def files(run: Run) -> set[str]:
    return {*Store().find(run.name).manifest.files}


def test_the_whole_story(here: Path, run: Run, known: Planted, said: Said) -> None:
    for asked in (("emergence", run.name), ("circuit", "show", run.name)):
        with pytest.raises(CircuitError, match=r"has no circuit yet: `hopscope discover"):
            command(asked)
    found = said("discover", run.name, "--examples", "32", "--repeat", "2")
    assert "100%" in found  # both searches found every component
    circuit = Circuit.from_json(Store().find(run.name).read("circuit.json"))
    assert set(circuit.paths) == set(known.paths)
    said_more = said("circuit", "show", run.name, "--diagnose")
    assert "along these paths the query learns x1, x2" in said_more

    story = said("emergence", run.name, "--out", "story.json")
    assert "hop 2 is learned" in story
    assert json.loads((here / "story.json").read_text())["steps"] == [0, 2, 4]
    for name in ("circuit", "emergence", "order"):
        drawn = (here / "reports" / f"{run.name}-{name}.svg").read_text()
        assert drawn.count("<path") > len(circuit.paths)

    assert "value 0 → query" in said("circuit", "show", run.name)
    said("circuit", "export", run.name, "--out", "mine.json")
    assert Circuit.load(here / "mine.json") == circuit


EXPORTS = {
    "png": ("png", b"\x89PNG"),
    "edges": ("edges.json", b'"edges"'),
    "circuitsvis": ("circuitsvis.json", b'"attention"'),
    "transformer-lens": ("tl.safetensors", b"attn"),
    "transformer-lens-legacy": ("tl-legacy.safetensors", b"blocks.0.attn.W_Q"),
}
"""Formats, with how their files end and what these hold."""


def test_exports(here: Path, run: Run, said: Said) -> None:
    said("discover", run.name, "--examples", "16")
    for kind, (suffix, mark) in EXPORTS.items():
        out = said("circuit", "export", run.name, "--format", kind)
        path = here / "reports" / f"{run.name}-circuit.{suffix}"
        assert str(path.relative_to(here)) in out
        assert mark in path.read_bytes(), kind


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


def test_a_checkpoint_on_a_spike_is_told_and_json_stays_json(root: Path, capsys: Captured) -> None:
    untrained = ["discover", "gallery/demo", "--step", "0", "--examples", "8", "--force"]
    assert command([*untrained, "--json", "--out", "c.json"]) == 0
    captured = capsys.readouterr()
    assert "components" in json.loads(captured.out)
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


def test_a_fleet_is_examined_whole(here: Path, twins: Run, said: Said, monkeypatch: Patch) -> None:
    found = said("discover", twins.name, "--all", "--examples", "16")
    assert "2.0 v1→q" in found
    assert "this model has not learned the task" in found
    emergence = ("emergence", twins.name, "--all", "--examples", "8")
    (line,) = (line for line in said(*emergence).splitlines() if line.startswith("v1 → q "))
    assert line.split()[-1] == "·"  # only one has learned
    # Whatever it has, the first component counts as one without a name.
    monkeypatch.setattr(Circuit, "unnamed", property(lambda found: found.components[:1]))
    asked = ("discover", twins.name, "--all", "--examples", "8", "--force", "--json")
    rows = json.loads(said(*asked))
    assert [row["seed"] for row in rows] == [3, 5]
    assert re.match(r"\d\.\d", rows[0]["not_named"])
    said(*emergence, "--out", "all.json", "--figure", "all.svg")
    told = json.loads(said(*emergence, "--json"))
    assert all(row.keys() == {"what", "seed", "step"} for row in told)
    kept = json.loads((here / "all.json").read_text())
    assert {each["seed"] for each in kept} == {row["seed"] for row in told} <= {3, 5}
    assert all(each["paths"] and each["steps"] == [0, 2, 4] for each in kept)
    for each in kept:
        for name in ("", "-order", "-circuit-emergence"):
            assert (here / f"all-seed-{each['seed']}{name}.svg").stat().st_size


def test_a_circuit_in_a_file_takes_the_place_of_the_run_s(here: Path, run: Run, said: Said) -> None:
    said("discover", run.name, "--examples", "8", "--force", "--out", "kept.json")
    shown = said("circuit", "show", "kept.json")
    assert said("circuit", "show", run.name, "--circuit-file", "kept.json") == shown
    for form, out in (("svg", "kept.svg"), ("json", "again.json")):
        said("circuit", "export", "kept.json", "--format", form, "--out", out)
    assert (here / "kept.svg").stat().st_size
    assert Circuit.load(here / "again.json") == Circuit.load(here / "kept.json")
    with pytest.raises(ConfigError, match="--format is edges, for which the model is needed"):
        command(("circuit", "export", "kept.json", "--format", "edges"))


def test_a_probe_is_shown_drawn_and_written(here: Path, run: Run, said: Said) -> None:
    told = said("probe", run.name, "--examples", "60", "--out", "probe.json")
    assert "layer 2  x0 x1 x2  x0" in told
    assert re.search(r"1\.0 +query +x1 1\.00", told)
    kept = Probe.from_dict(json.loads((here / "probe.json").read_text()))
    assert kept.decodable(Role("query"), 3) == {"x0", "x1", "x2"}
    with pytest.raises(CircuitError, match="take at least 36 examples"):
        command(("probe", run.name, "--examples", "2"))
    told = said("probe", run.name, "--over-training", "--examples", "60")
    assert re.search(r"query +x1 ", told)
    for name in ("probe", "probe-over-training"):
        assert (here / "reports" / f"{run.name}-{name}.svg").is_file()
    story = ProbeHistory.from_dict(json.loads(said("probe", run.name, "--over-training", "--json")))
    assert story.steps == (0, 2, 4)
    assert 0 < (story.emerged(Role("query"), "x2") or 0) < 2
    assert story.emerged(Role("key", 1), "x2") is None


def test_a_circuit_is_explained_beside_other_methods(here: Path, run: Run, said: Said) -> None:
    said("discover", run.name, "--examples", "32", "--out", "found.json")
    said("discover", run.name, "--examples", "32")
    told = said("patch", run.name, "--examples", "8")
    assert re.search(r"2\.0 +value 1 → query +x2 1\.00", told)
    said("patch", run.name, "--examples", "8", "--out", "e.json")
    assert "components have a causal account" in said("circuit", "show", run.name)
    assert [Circuit.load(here / f"{name}.json").account is None for name in ("found", "e")] == [
        True, False,
    ]  # fmt: skip
    told = said("patch", "gallery/demo", "--examples", "8")
    assert "not kept, as the gallery is only read" in told
    assert "EAP-IG" in said("baselines", run.name, "--examples", "8", "--out", "scores.json")
    assert (here / "reports" / f"{run.name}-baselines.svg").is_file()


def expected(order: Order, ablation: Ablation) -> list[float]:
    study = load("gallery/demo")
    exam = exam_of(study.task.ordered(order), 64)
    losses, *_ = Ablator(adapter_of(study.model), exam).losses([ablation])
    found: list[float] = losses.mean(0).tolist()
    return found


def rows_of(said: Said, *words: str) -> dict[str, list[float]]:
    shuffled = ("--examples", "64", "--order", "shuffled", "--json")
    rows = json.loads(said("ablate", "gallery/demo", *shuffled, *words))
    return {row["changed"]: [row["hop_1"], row["hop_2"]] for row in rows}


def test_heads_are_changed_in_the_model_and_the_circuit(here: Path, run: Run, said: Said) -> None:
    said("discover", run.name, "--examples", "16")
    assert said("ablate", run.name, "--examples", "16").count("=previous") == 3
    some = said("ablate", run.name, "--head", "0.0=previous", "--head", "2.0=value 1>query")
    loss, *_ = some.splitlines()[-1].partition("value 1>query")[2].split()
    assert float(loss) < 1e-4  # what the heads do anyway
    said("ablate", run.name, "--head", "2.0=mean", "--out", "a.json", "--circuit")
    assert json.loads((here / "a.json").read_text())["of_the_circuit"] is True
    broken = said("ablate", run.name, "--head", "2.0=mean")
    assert float(broken.splitlines()[-1].split()[1]) > 0.05


def test_the_model_is_asked_in_both_orders(root: Path, said: Said) -> None:
    found = rows_of(said, "--out", "a.json")
    assert list(found) == ["the model", "the model, facts shuffled"]
    assert found["the model"] == pytest.approx(expected("backward", Ablation()), abs=1e-5)
    shuffled = found["the model, facts shuffled"]
    assert shuffled == pytest.approx(expected("shuffled", Ablation()), abs=1e-5)
    assert shuffled[1] > 0.9 > 0.1 > found["the model"][1]  # the demo knows x_2 by place
    assert json.loads((root / "a.json").read_text())["order"] == "shuffled"
    changed = expected("shuffled", Ablation.of({(1, 3): Pattern()}))
    assert rows_of(said, "--head", "1.3=uniform")["1.3=uniform"] == pytest.approx(changed, abs=1e-5)
    of_circuit = rows_of(said, "--circuit")
    assert list(of_circuit) == ["the circuit", "the circuit, facts shuffled"]
    assert of_circuit["the circuit, facts shuffled"][0] < 0.2  # roles say where heads look
    with pytest.raises(ConfigError, match="'khop' does not choose the order of its facts"):
        KHop().ordered("shuffled")
