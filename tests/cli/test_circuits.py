"""The circuit commands on a run whose model was planted: the story is known."""

import json
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
import torch
from safetensors.torch import load_file

from hopscope.circuits import Circuit
from hopscope.cli import circuits
from hopscope.cli.main import run as command
from hopscope.configs import Experiment
from hopscope.errors import CircuitError, ConfigError
from hopscope.models.planted import Planted
from hopscope.store import Store
from hopscope.store.checkpoints import checkpoint_name
from hopscope.study import Study
from hopscope.training import Run, train


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert command(arguments) == 0
    return capsys.readouterr().out


def test_emergence_and_circuit_ask_for_discovery_first(here: Path, run: Run) -> None:
    for asked in (("emergence", run.name), ("circuit", "show", run.name)):
        with pytest.raises(CircuitError, match=r"has no circuit yet: `hopscope discover"):
            command(asked)


def test_the_whole_story(
    here: Path, run: Run, known: Planted, capsys: pytest.CaptureFixture[str]
) -> None:
    found = said(capsys, "discover", run.name, "--examples", "32", "--repeat", "2")
    assert "query ← value 1" in found
    assert "\n\nin 2 searches, each on its own sample\n" in found
    assert "2 of 2" in found
    circuit = Circuit.from_json(Run(Store().find(run.name)).folder.read("circuit.json"))
    assert set(circuit.paths) == set(known.paths)
    assert "along these paths the query learns x1, x2" in found
    assert said(capsys, "verify", run.name)

    story = said(capsys, "emergence", run.name, "--out", "story.json")
    assert "hop 2 is learned" in story
    assert json.loads((here / "story.json").read_text())["steps"] == [0, 2, 4]
    for name in ("circuit", "emergence", "order"):
        drawn = (here / "reports" / f"{run.name}-{name}.svg").read_text()
        assert drawn.count("<path") > len(circuit.paths)

    assert "query ← value 0" in said(capsys, "circuit", "show", run.name)
    said(capsys, "circuit", "export", run.name, "--out", "mine.json")
    assert Circuit.load(here / "mine.json") == circuit


CONTENT: dict[str, Callable[[Path], bool]] = {
    "edges": lambda path: {"nodes", "edges"} <= set(json.loads(path.read_text())),
    "circuitsvis": lambda path: {"tokens", "attention"} <= set(json.loads(path.read_text())),
    "transformer-lens": lambda path: any("attn" in name for name in load_file(path)),
    "transformer-lens-legacy": lambda path: "blocks.0.attn.W_Q" in load_file(path),
}
"""What each export must hold."""


@pytest.mark.parametrize(
    ("kind", "suffix"),
    [
        ("png", "png"),
        ("edges", "edges.json"),
        ("circuitsvis", "circuitsvis.json"),
        ("transformer-lens", "tl.safetensors"),
        ("transformer-lens-legacy", "tl-legacy.safetensors"),
    ],
)
def test_exports(
    here: Path, run: Run, capsys: pytest.CaptureFixture[str], kind: str, suffix: str
) -> None:
    if "circuit.json" not in Run(Store().find(run.name)).folder.manifest.files:
        said(capsys, "discover", run.name, "--examples", "16")
    out = said(capsys, "circuit", "export", run.name, "--format", kind)
    path = here / "reports" / f"{run.name}-circuit.{suffix}"
    assert str(path.relative_to(here)) in out
    assert path.read_bytes().startswith(b"\x89PNG") if kind == "png" else CONTENT[kind](path)


def test_maps_of_roles_and_of_one_example(
    here: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, "maps", run.name, "--examples", "8", "--out", "maps.json")
    assert "query" in json.loads((here / "maps.json").read_text())["roles"]
    said(capsys, "maps", run.name, "--example", "2", "--figure", "one.png")
    assert (here / "one.png").read_bytes().startswith(b"\x89PNG")


def test_ablations_of_every_head_of_some_and_of_the_circuit(
    here: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    every = said(capsys, "ablate", run.name, "--examples", "16")
    assert every.count("=previous") == 3
    some = said(capsys, "ablate", run.name, "--head", "0.0=previous", "--head", "2.0=query>value 1")
    rows = {line.rsplit("  ", 3)[0].strip(): line.split()[-3] for line in some.splitlines()[2:]}
    assert float(rows["0.0=previous 2.0=query>value 1"]) < 1e-4  # what the heads do anyway
    broken = said(capsys, "ablate", run.name, "--head", "2.0=mean", "--out", "a.json", "--circuit")
    assert json.loads((here / "a.json").read_text())["of_the_circuit"] is True
    assert "numbers: a.json" in broken
    broken = said(capsys, "ablate", run.name, "--head", "2.0=mean")
    assert float(broken.splitlines()[-1].split()[-1]) > 0.05


def test_another_checkpoint_is_another_model(
    here: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, "discover", run.name, "--step", "2", "--examples", "16")
    assert "circuit-step-2.json" in Run(Store().find(run.name)).folder.manifest.files
    with pytest.raises(ConfigError, match="step is 3; .* has no checkpoint there, the nearest"):
        command(("maps", run.name, "--step", "3"))
    with pytest.raises(ConfigError, match="seed is 7; .* has the seeds 0"):
        command(("maps", run.name, "--seed", "7"))


def test_the_circuit_of_another_model_is_refused(here: Path, run: Run) -> None:
    folder = Run(Store().find(run.name)).folder
    mine = folder.read("circuit.json")
    folder.commit({"circuit-step-0.json": mine})
    with pytest.raises(CircuitError, match="this circuit was found in another model"):
        command(("emergence", run.name, "--step", "0"))


def test_heads_and_roles_that_do_not_exist_are_named(here: Path, run: Run) -> None:
    with pytest.raises(ConfigError, match=r"head 1\.0 is given twice .*; say what it does once"):
        command(("ablate", run.name, "--head", "1.0=uniform", "--head", "1.0=mean"))
    with pytest.raises(CircuitError, match=r"there is no head 9\.0; this model has layers 0 … 2"):
        command(("ablate", run.name, "--head", "9.0=uniform"))
    with pytest.raises(CircuitError, match="there is no role 'value 7' here; the roles are"):
        command(("ablate", run.name, "--head", "1.0=query>value 7"))
    with pytest.raises(CircuitError, match=r"^1\.0: value 0 cannot read query, which comes after"):
        command(("ablate", run.name, "--head", "1.0:value 0=query"))


def test_an_untrained_model_is_refused_unless_forced(here: Path, run: Run) -> None:
    with pytest.raises(CircuitError, match="this model has not learned the task"):
        command(("discover", run.name, "--step", "0", "--examples", "8"))
    assert command(("discover", run.name, "--step", "0", "--examples", "8", "--force")) == 0


def test_a_fleet_is_examined_member_by_member(
    here: Path, tiny: Experiment, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet = train(tiny.model_copy(update={"seeds": (4, 9)}), here / "runs")
    said(capsys, "discover", fleet.name, "--seed", "9", "--examples", "8", "--force")
    assert "circuit-seed-9.json" in Run(Store().find(fleet.name)).folder.manifest.files
    with torch.no_grad(), warnings.catch_warnings():
        said(capsys, "maps", fleet.name, "--examples", "4")
    assert (here / "reports" / f"{fleet.name}-seed-4-maps.svg").exists()


class Spiked:
    """A model at a step whose loss is far above that of its calmest one."""

    def __init__(self, step: int, loss: float | None) -> None:
        self.step, self.loss = step, loss

    def validation_loss(self) -> float | None:
        return self.loss

    def calmest(self) -> "Spiked":
        return Spiked(1_900, 0.01)


def test_a_checkpoint_on_a_spike_is_told_and_json_stays_json(
    run: Run, here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    for loss in (0.05, 0.02, None):
        circuits._tell_if_unlucky(Spiked(2_000, loss), told.append)  # type: ignore[arg-type]
    (line,) = told
    assert line == (
        "note: the loss at step 2,000 is 0.050, at 1,900 it was 0.010: --step 1900 examines that "
        "checkpoint"
    )
    monkeypatch.setattr(circuits, "_tell_if_unlucky", lambda _, tell: tell(line))
    assert command(("discover", run.name, "--examples", "8", "--force", "--json")) == 0
    captured = capsys.readouterr()
    assert "parts" in json.loads(captured.out)
    assert line in captured.err


def test_a_fleet_is_examined_whole(
    here: Path, run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    twins = train(run.recipe.model_copy(update={"seeds": (3, 5)}), here / "runs")
    state = safetensors.torch.load(run.folder.read(checkpoint_name(4)))
    for step in (2, 4):
        name = checkpoint_name(step)
        with safetensors.safe_open(twins.folder.path / name, "pt") as file:
            words, untrained = file.metadata(), {n: file.get_tensor(n)[1] for n in file.keys()}  # noqa: SIM118
        both = {n: torch.stack((tensor, untrained[n])) for n, tensor in state.items()}
        twins.folder.commit({name: safetensors.torch.save(both, words)})
    found = said(capsys, "discover", twins.name, "--all", "--examples", "16")
    assert "2.0 q←v1" in found
    assert "this model has not learned the task" in found
    story = said(capsys, "emergence", twins.name, "--all", "--examples", "8")  # of the one that has
    (line,) = (line for line in story.splitlines() if line.startswith("q ← v1 "))
    assert line.split()[-1] == "·"
    # Whatever it has, the first part counts as not explained.
    monkeypatch.setattr(Circuit, "unexplained", property(lambda found: found.parts[:1]))
    asked = ("discover", twins.name, "--all", "--examples", "8", "--force", "--json")
    members = Study(Run(Store(here / "runs").find(twins.name))).members()
    rows = json.loads(said(capsys, *asked))
    for row, member in zip(rows, members, strict=True):
        left = {f"{part.layer}.{part.head}" for part in member.circuit.unexplained}
        assert {*row["unexplained"].split(", ")} - {""} == left
    assert any(row["unexplained"] for row in rows)
    story = said(capsys, "emergence", twins.name, "--all", "--examples", "8")
    told = json.loads(said(capsys, "emergence", twins.name, "--all", "--examples", "8", "--json"))
    assert {row["seed"] for row in told} <= set(twins.recipe.seeds)
    assert all(row.keys() == {"what", "seed", "step"} for row in told)
    assert {row["what"] for row in told} == {
        line.split("  ")[0] for line in story.splitlines()[1:-2]
    }
    assert "seed 3" in story
    assert "q ← v1" in story
    assert "hop 2 is learned" in story
    asked = ("emergence", twins.name, "--all", "--examples", "8")
    said(capsys, *asked, "--out", "all.json", "--figure", "all.svg")
    kept = json.loads((here / "all.json").read_text())
    assert {each["seed"] for each in kept} == {row["seed"] for row in told}
    assert all(each["paths"] and each["steps"] == [0, 2, 4] for each in kept)
    for each in kept:
        for name in ("", "-order", "-circuit-emergence"):
            assert (here / f"all-seed-{each['seed']}{name}.svg").stat().st_size
    with pytest.raises(ConfigError, match="--seed would be ignored with --all: leave it out"):
        command((*asked, "--seed", "5"))


def test_a_circuit_in_a_file_takes_the_place_of_the_one_with_the_run(
    here: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = here / "kept.json"
    said(capsys, "discover", run.name, "--examples", "8", "--force", "--out", str(kept))
    shown = said(capsys, "circuit", "show", str(kept))
    assert "of the way from guessing to the model" in shown
    assert said(capsys, "circuit", "show", run.name, "--circuit-file", str(kept)) == shown
    figure = here / "kept.svg"
    said(capsys, "circuit", "export", str(kept), "--format", "svg", "--out", str(figure))
    assert figure.stat().st_size
    again = here / "again.json"
    said(capsys, "circuit", "export", str(kept), "--out", str(again))
    assert Circuit.load(again) == Circuit.load(kept)
    with pytest.raises(ConfigError, match="--format is edges, for which the model is needed"):
        command(("circuit", "export", str(kept), "--format", "edges"))
    ablated = said(capsys, "ablate", run.name, "--circuit-file", str(kept), "--examples", "8")
    assert "the circuit" in ablated
