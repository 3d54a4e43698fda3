"""`hopscope ablate`: heads changed, of the model or its circuit, and facts in another order."""

import json
from pathlib import Path

import pytest
from reproducing import Said

from hopscope.circuits import Ablation, Ablator, Mechanism, exam_of, subject_of
from hopscope.configs import Experiment, KHop, Retrieval
from hopscope.configs.tasks.layout import Order
from hopscope.errors import ConfigError
from hopscope.store import Store
from hopscope.study import load
from hopscope.training import Run, train


def expected(order: Order, ablation: Ablation) -> list[float]:
    study = load("gallery/demo")
    exam = exam_of(study.task.ordered(order), 64)
    losses, *_ = Ablator(subject_of(study.model), exam).losses([ablation])
    found: list[float] = losses.mean(0).tolist()
    return found


def rows_of(said: Said, *words: str) -> dict[str, list[float]]:
    shuffled = ("--examples", "64", "--order", "shuffled", "--json")
    rows = json.loads(said("ablate", "gallery/demo", *shuffled, *words))
    return {row["changed"]: [row["hop_1"], row["hop_2"]] for row in rows}


def test_ablations_of_every_head_of_some_and_of_the_circuit(
    here: Path, run: Run, said: Said
) -> None:
    said("discover", run.name, "--examples", "16")
    assert said("ablate", run.name, "--examples", "16").count("=previous") == 3
    some = said("ablate", run.name, "--head", "0.0=previous", "--head", "2.0=query>value 1")
    rows = {line.rsplit("  ", 3)[0].strip(): line.split()[-3] for line in some.splitlines()[2:]}
    assert float(rows["0.0=previous 2.0=query>value 1"]) < 1e-4  # what the heads do anyway
    said("ablate", run.name, "--head", "2.0=mean", "--out", "a.json", "--circuit")
    assert json.loads((here / "a.json").read_text())["of_the_circuit"] is True
    broken = said("ablate", run.name, "--head", "2.0=mean")
    assert float(broken.splitlines()[-1].split()[-1]) > 0.05


def test_the_model_is_asked_in_both_orders(root: Path, said: Said) -> None:
    found = rows_of(said, "--out", "a.json")
    assert list(found) == ["the model", "the model, facts shuffled"]
    assert found["the model"] == pytest.approx(expected("backward", Ablation()), abs=1e-5)
    shuffled = found["the model, facts shuffled"]
    assert shuffled == pytest.approx(expected("shuffled", Ablation()), abs=1e-5)
    assert shuffled[1] > 0.9 > 0.1 > found["the model"][1]  # the demo knows x_2 by place
    assert json.loads((root / "a.json").read_text())["order"] == "shuffled"
    changed = expected("shuffled", Ablation.of({(1, 3): Mechanism()}))
    assert rows_of(said, "--head", "1.3=uniform")["1.3=uniform"] == pytest.approx(changed, abs=1e-5)
    of_circuit = rows_of(said, "--circuit")
    assert list(of_circuit) == ["the circuit", "the circuit, facts shuffled"]
    assert of_circuit["the circuit, facts shuffled"][0] < 0.2  # roles say where heads look


def test_an_order_is_for_tasks_that_have_one() -> None:
    assert Retrieval(hops=2).ordered("shuffled") == Retrieval(hops=2, order="shuffled")
    with pytest.raises(ConfigError, match="'khop' does not choose the order of its facts"):
        KHop().ordered("shuffled")


def test_the_loss_of_a_hop_that_is_asked_alone_has_its_number(
    tiny: Experiment, store: Store, said: Said
) -> None:
    task = tiny.task.model_copy(update={"curriculum": False})
    train(tiny.model_copy(update={"task": task}), store)
    words = ["--store", str(store.root), "--head", "0.0=uniform", "--examples", "8", "--json"]
    for row in json.loads(said("ablate", "retrieval", *words)):
        assert [*row] == ["changed", "loss", "hop_2"]
