"""Commands on a run whose model was planted: the story is known."""

import json
import re
from math import inf
from pathlib import Path
from statistics import fmean
from typing import Any

import nano
import pytest
import safetensors.torch
import torch
from calling import Captured, Said

from hopscope.circuits import Ablation, Ablator, Circuit, Pattern, Probe, adapter_of, examples_of
from hopscope.circuits.ranking import SHARES
from hopscope.cli.emergence import seeds_piece
from hopscope.cli.main import run as command
from hopscope.configs import Experiment, KHop, Model, Training
from hopscope.configs.tasks import Order
from hopscope.errors import CircuitError, ConfigError
from hopscope.facts import Role
from hopscope.models.planted import Planted
from hopscope.store import Store
from hopscope.store.checkpoints import checkpoint_name
from hopscope.study import load
from hopscope.training import Run, train

FEW = ("--examples", "16", "--fresh", "32")


def files(run: Run) -> set[str]:
    return {*Store().find(run.name).manifest.files}


def test_the_whole_story(here: Path, run: Run, two_hops: Planted, said: Said) -> None:
    with pytest.raises(CircuitError, match=r"has no circuit yet: `hopscope circuit"):
        command(("emergence", run.name))
    unkept = said("circuit", run.name, "--no-keep", "--diagnose", *FEW)
    assert "no head could stand in" in unkept
    found = said("circuit", run.name, "--repeat", "2", *FEW)
    assert "100%" in found  # both searches found every component
    circuit = Circuit.from_json(Store().find(run.name).read("circuit.json"))
    assert set(circuit.paths) == set(two_hops.paths)
    said_more = said("circuit", run.name, "--diagnose")
    assert "no head could stand in" in said_more

    story = said("emergence", run.name, "--save", "story.json", "--figure", "e.svg")
    assert "hop 2 is learned" in story
    assert json.loads((here / "story.json").read_text())["steps"] == [0, 2, 4]
    for name in ("e", "e-order", "e-circuit"):
        drawn = (here / f"{name}.svg").read_text()
        assert drawn.count("<path") > len(circuit.paths)

    assert "value 0 → query" in said("circuit", run.name)


EXPORTS = {
    "c.csv": b"component,what",
    "c.edges.json": b'"edges"',
    "c.circuitsvis.json": b'"attention"',
    "c.safetensors": b"attn",
    "c.legacy.safetensors": b"blocks.0.attn.W_Q",
}
"""Files, with what they hold."""


def test_the_ending_of_a_name_says_the_format(here: Path, run: Run, said: Said) -> None:
    pytest.importorskip("pandas")
    said("circuit", run.name, "--again", "--examples", "16", "--fresh", "64")
    found = Circuit.from_json(Store().find(run.name).read("circuit.json")).found
    assert found is not None
    assert (found.settings.examples, found.settings.fresh) == (16, 64)
    for name, mark in EXPORTS.items():
        said("circuit", run.name, "--save", name)
        assert mark in (here / name).read_bytes(), name


def test_maps_of_one_example_are_drawn(here: Path, run: Run, said: Said) -> None:
    said("attention", run.name, "--example", "2", "--figure", "one.png")
    assert (here / "one.png").read_bytes().startswith(b"\x89PNG")


def test_another_checkpoint_is_another_model(here: Path, run: Run, said: Said) -> None:
    path = str(run.folder.path / "checkpoints" / "step-00000002.safetensors")
    said("circuit", path, "--examples", "16")
    assert "circuit-step-2.json" in files(run)
    untrained = ("circuit", run.name, "--step", "0", "--examples", "8")
    with pytest.raises(CircuitError, match="this model has not learned the task"):
        command(untrained)
    said(*untrained, "--force")
    folder = Store().find(run.name)
    folder.commit({"circuit-step-0.json": folder.read("circuit-step-2.json")})
    with pytest.raises(CircuitError, match="this circuit was found in another model"):
        command(("emergence", run.name, "--step", "0"))


def test_a_checkpoint_on_a_spike_is_noted_and_json_stays_json(root: Path, capsys: Captured) -> None:
    untrained = ["circuit", "gallery/demo", "--step", "0", "--force", *FEW]
    assert command([*untrained, "--json", "--save", "c.json"]) == 0
    captured = capsys.readouterr()
    assert "components" in json.loads(captured.out)
    note = "note: the loss at step 0 is 1.957, at 2,400 it was 0.010: --step 2400 examines that"
    assert note in captured.err
    assert not (root / "reports").exists()  # no figure that was not asked for


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


def test_only_a_fleet_has_losses_in_brackets(here: Path, run: Run, twins: Run, said: Said) -> None:
    for name, several in ((run.name, False), (twins.name, True)):
        shown = said("show", name)
        assert bool(re.search(r"0\.\d{4} \(\d\.\d{4} … ", shown)) is several
        assert ("in brackets: lowest to highest of the models" in shown) is several


def test_a_fleet_is_examined_whole(here: Path, twins: Run, said: Said) -> None:
    found = said("circuit", twins.name, "--all", *FEW)
    assert "2.0 v1→q" in found
    assert "this model has not learned the task" in found
    emergence = ("emergence", twins.name, "--all", "--examples", "8")
    shown = said(*emergence)
    assert "v1→q" in shown
    assert "attention passed 0.5, by whichever head first" in shown
    assert "without a circuit that has paths: seed 5" in shown  # only one has learned
    assert re.search(r"^5 +– .*never$", shown, re.MULTILINE)  # in medians of hops, the other counts
    asked = ("circuit", twins.name, "--all", "--again", "--force", "--json", *FEW)
    rows = json.loads(said(*asked))
    assert [row["seed"] for row in rows] == [3, 5]
    said(*emergence, "--save", "all.json", "--figure", "all.svg")
    kept = json.loads((here / "all.json").read_text())
    assert kept == json.loads(said(*emergence, "--json"))
    assert {each["seed"] for each in kept} <= {3, 5}
    assert all(each["paths"] and each["steps"] == [0, 2, 4] for each in kept)
    for each in kept:
        for name in ("", "-order", "-circuit"):
            assert (here / f"all-seed-{each['seed']}{name}.svg").stat().st_size


def test_a_circuit_in_a_file_takes_the_place_of_the_run_s(here: Path, run: Run, said: Said) -> None:
    said("circuit", run.name, "--again", "--examples", "8", "--force", "--save", "kept.json")
    shown = said("circuit", "kept.json")
    assert said("circuit", run.name, "--circuit-file", "kept.json") == shown
    said("circuit", "kept.json", "--save", "again.json", "--figure", "kept.svg")
    assert (here / "kept.svg").stat().st_size
    assert Circuit.load(here / "again.json") == Circuit.load(here / "kept.json")
    with pytest.raises(ConfigError, match="edges.json needs the model"):
        command(("circuit", "kept.json", "--save", "x.edges.json"))


def test_a_table_is_saved_as_csv(here: Path, run: Run, twins: Run, said: Said) -> None:
    pandas = pytest.importorskip("pandas")
    said("circuit", run.name, "--again", *FEW)
    said("circuit", twins.name, "--all", *FEW)

    def saved(*words: str) -> Any:
        said(*words, "--save", "table.csv")
        return pandas.read_csv(here / "table.csv")

    patched = saved("patch", run.name, "--examples", "8", "--no-keep")
    moved = patched[(patched.arrow == "value 1 → query") & (patched.way == "values")]
    assert moved[moved.symbol == "x2"].share.tolist() == pytest.approx([1], abs=0.01)
    probed = saved("probe", run.name, "--examples", "60").set_index(["layer", "role", "symbol"])
    assert probed.own[3, "query", "x2"] > 0.9 > 0.1 > probed.own[0, "query", "x2"]
    history = saved("probe", run.name, "--over-training")
    assert len(history) == 3 * len(probed)  # three checkpoints
    alone = saved("emergence", twins.name, "--examples", "8")
    every = saved("emergence", twins.name, "--all", "--examples", "8")
    assert {*every.seed} == {3}  # the other has no circuit
    assert every.drop(columns="seed").equals(alone)
    found = saved("circuit", twins.name, "--all").set_index("seed")
    assert "2.0 v1→q" in found.paths[3]
    curves = saved("baselines", run.name, "--examples", "8").groupby("method").faithfulness
    assert curves.count().to_dict() == {
        "EAP-IG": len(SHARES),
        "activation patching": len(SHARES),
        "direct logit attribution": len(SHARES),
        "circuit": 1,
    }


def test_a_probe_is_shown_drawn_and_saved(here: Path, run: Run, said: Said) -> None:
    shown = said("probe", run.name, "--examples", "60", "--save", "probe.json", "--figure", "p.svg")
    assert "layer 2  x0 x1 x2  x0" in shown
    assert re.search(r"1\.0 +query +x1 1\.00", shown)
    assert (here / "p.svg").is_file()
    kept = Probe.load(here / "probe.json")
    assert kept.decodable(Role("query"), 3) == {"x0", "x1", "x2"}
    with pytest.raises(CircuitError, match="take 45 examples"):
        command(("probe", run.name, "--examples", "2"))
    story = json.loads(said("probe", run.name, "--over-training", "--json"))
    assert story["steps"] == [0, 2, 4]
    emerged = {(each["role"], each["symbol"]): each["step"] for each in story["emerged"]}
    assert 0 < emerged["query", "x2"] < 2
    assert ("key 1", "x2") not in emerged


def test_a_circuit_is_patched_and_held_against_other_methods(
    here: Path, run: Run, said: Said
) -> None:
    said("circuit", run.name, "--again", *FEW)
    shown = said("patch", run.name, "--examples", "8", "--no-keep", "--save", "e.json")
    assert re.search(r"2\.0 +value 1 → query +x2 1\.00", shown)
    assert Circuit.load(here / "e.json").account is not None
    assert "components have a causal account" not in said("circuit", run.name)
    said("patch", run.name, "--examples", "8")
    assert "components have a causal account" in said("circuit", run.name)
    assert "not saved" in said("patch", "gallery/demo", "--examples", "2")
    assert "EAP-IG" in said("baselines", run.name, "--examples", "8", "--figure", "b.svg")
    assert (here / "b.svg").is_file()


def expected(order: Order, ablation: Ablation, purpose: str = "ablation") -> list[float]:
    study = load("gallery/demo")
    examples = examples_of(study.task.ordered(order), 64, purpose=purpose)  # type: ignore[arg-type]
    losses, *_ = Ablator(adapter_of(study.model), examples).losses([ablation])
    found: list[float] = losses.mean(0).tolist()
    return found


def rows_of(said: Said, *words: str) -> dict[str, list[float]]:
    shuffled = ("--examples", "64", "--order", "shuffled", "--json")
    rows = json.loads(said("ablate", "gallery/demo", *shuffled, *words))
    return {row["changed"]: [row["hop_1"], row["hop_2"]] for row in rows}


def test_heads_are_changed_in_the_model_and_the_circuit(here: Path, run: Run, said: Said) -> None:
    said("circuit", run.name, "--again", "--examples", "16")
    assert said("ablate", run.name, "--examples", "16").count("=previous") == 3
    some = said("ablate", run.name, "--head", "0.0=previous", "--head", "2.0=value 1>query")
    loss, *_ = some.splitlines()[-1].partition("value 1>query")[2].split()
    assert float(loss) < 1e-4  # what the heads do anyway
    assert "the circuit" in said("ablate", run.name, "--head", "2.0=mean", "--circuit")
    broken = said("ablate", run.name, "--head", "2.0=mean")
    assert float(broken.splitlines()[-1].split()[1]) > 0.05


def test_the_model_is_asked_in_both_orders(root: Path, said: Said) -> None:
    found = rows_of(said)
    assert list(found) == ["the model", "the model, facts shuffled"]
    assert found["the model"] == pytest.approx(expected("backward", Ablation()), abs=1e-5)
    shuffled = found["the model, facts shuffled"]
    assert shuffled == pytest.approx(expected("shuffled", Ablation()), abs=1e-5)
    assert shuffled[1] > 0.9 > 0.1 > found["the model"][1]  # the demo knows x_2 by place
    changed = expected("shuffled", Ablation.of({(1, 3): Pattern()}))
    assert rows_of(said, "--head", "1.3=uniform")["1.3=uniform"] == pytest.approx(changed, abs=1e-5)
    of_circuit = rows_of(said, "--circuit")
    assert list(of_circuit) == ["the circuit", "the circuit, facts shuffled"]
    assert of_circuit["the circuit, facts shuffled"][0] < 0.2  # roles say where heads look
    with pytest.raises(ConfigError, match="'khop' does not choose the order of its facts"):
        KHop().ordered("shuffled")


def test_a_model_is_evaluated_on_fresh_and_other_examples(root: Path, said: Said) -> None:
    words = ("evaluate", "gallery/demo", "--examples", "64", "--json")
    rows = json.loads(said(*words))
    assert [row["hop"] for row in rows] == ["hop 1", "hop 2", "all"]
    fresh = expected("backward", Ablation(), "evaluation")
    assert [row["loss"] for row in rows[:2]] == pytest.approx(fresh, abs=1e-5)
    assert all(row["low"] < row["loss"] < row["high"] for row in rows)
    forward = json.loads(said(*words, "order=forward"))
    assert forward[1]["loss"] == pytest.approx(expected("forward", Ablation(), "evaluation")[1])
    assert json.loads(said(*words, "chains=2"))[0]["chance"] == 0.5
    train(
        Experiment(
            task=KHop(alphabet=4, length=8),
            model=Model(layers=1, heads=1, d_model=8),
            training=Training(steps=1),
        )
    )
    rows = json.loads(said("evaluate", "khop", "--examples", "8", "--json"))
    assert [row["chance"] for row in rows[:2]] == list(KHop(alphabet=4, length=8).chances(1))
    assert rows[2]["chance"] == fmean(row["chance"] for row in rows[:2])
    assert rows[0]["chance"] != rows[1]["chance"]
    for change, line in {
        "chain=8": "the task has no field 'chain': did you mean chains?",
        "hops=3": "cannot read questions with hops=3",
        "chains=x": "chains",
    }.items():
        with pytest.raises(ConfigError, match=re.escape(line)):
            command([*words, change])


@pytest.mark.slow
def test_a_model_from_elsewhere_is_looked_into(root: Path, said: Said) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(
        n_layer=2, n_head=2, n_embd=16, vocab_size=40, n_positions=64, attn_pdrop=0.0
    )
    transformers.GPT2LMHeadModel(config).save_pretrained("mine")
    words = ("hf:mine", "--examples", "8", "--task", "repeated-tokens")
    assert "second" in said("attention", *words)
    (root / "task.json").write_text('{"kind": "repeated-tokens", "length": 5}')
    rows = json.loads(said("evaluate", *words[:-1], "task.json", "--json"))
    assert rows[0]["chance"] == pytest.approx(2.565, abs=1e-3)
    assert "1.1=itself" in said("ablate", *words)
    with pytest.raises(ConfigError, match="hf:mine needs --task"):
        command(("attention", "hf:mine"))
    weights = Path("mine/model.safetensors")
    whole = weights.read_bytes()
    transformers.GPT2Config(**config.to_diff_dict() | {"n_embd": 32}).save_pretrained("mine")
    for cut, line in (
        (whole, "is .48,., and by config.json .96,.: the files belong to different models"),
        (whole[:3000], r"mine cannot be loaded by transformers \(SafetensorError\)"),
    ):
        weights.write_bytes(cut)
        with pytest.raises(CircuitError, match=line):
            command(("attention", *words))


def test_a_checkpoint_of_nanogpt_is_looked_into(root: Path, said: Said) -> None:
    torch.save(nano.saved(nano.made(bias=True)), "ckpt.pt")
    task = {"kind": "repeated-tokens", "length": 2, "filler": 2}
    (root / "task.json").write_text(json.dumps(task))
    assert "second" in said("attention", "nanogpt:ckpt.pt", "--task", "task.json")
    with pytest.raises(ConfigError, match="repeated-token; expected repeated-tokens or a file"):
        command(("attention", "nanogpt:ckpt.pt", "--task", "repeated-token"))


def test_of_several_seeds_one_that_never_came_counts_as_late() -> None:
    events = {"k0→q": 100.0, "hop 1": inf}, {"k0→q": inf, "hop 1": inf}, {"hop 1": inf}
    rows = {row[0]: list(row[1:]) for row in seeds_piece([*enumerate(events)]).rows}
    assert rows["2"] == ["–", "never"]
    assert rows["median"] == ["> 100", "never"]
    assert rows["range"] == ["100 … never", "never … never"]
