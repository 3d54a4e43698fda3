"""`hopscope ablate --order`: the same model, with facts elsewhere."""

import json
from pathlib import Path

import pytest

from hopscope.circuits import Ablation, Ablator, Mechanism, exam_of, subject_of
from hopscope.cli.main import run as hopscope
from hopscope.configs import Experiment, KHop, Retrieval
from hopscope.configs.tasks.layout import Order
from hopscope.errors import ConfigError
from hopscope.store import Store
from hopscope.study import load
from hopscope.training import train


def expected(order: Order, ablation: Ablation) -> list[float]:
    study = load("gallery/demo")
    exam = exam_of(study.task.ordered(order), 64)
    found: list[float] = (
        Ablator(subject_of(study.model), exam).losses([ablation])[0].mean(0).tolist()
    )
    return found


def rows_of(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, list[float]]:
    asked = ["ablate", "gallery/demo", "--examples", "64", "--order", "shuffled", *words, "--json"]
    assert hopscope(asked) == 0
    rows = json.loads(capsys.readouterr().out)
    return {row["changed"]: [row["hop_1"], row["hop_2"]] for row in rows}


def test_the_model_is_asked_in_both_orders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = rows_of(capsys, "--out", str(tmp_path / "a.json"))
    assert list(found) == ["the model", "the model, facts shuffled"]
    assert found["the model"] == pytest.approx(expected("backward", Ablation()), abs=1e-5)
    shuffled = found["the model, facts shuffled"]
    assert shuffled == pytest.approx(expected("shuffled", Ablation()), abs=1e-5)
    assert shuffled[1] > 0.9 > 0.1 > found["the model"][1]  # the demo knows x_2 by place
    assert json.loads((tmp_path / "a.json").read_text())["order"] == "shuffled"


def test_heads_are_changed_in_the_order_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    found = rows_of(capsys, "--head", "1.3=uniform")
    changed = expected("shuffled", Ablation.of({(1, 3): Mechanism()}))
    assert found["1.3=uniform"] == pytest.approx(changed, abs=1e-5)


def test_of_the_circuit_roles_say_where_heads_look(capsys: pytest.CaptureFixture[str]) -> None:
    found = rows_of(capsys, "--circuit")
    assert list(found) == ["the circuit", "the circuit, facts shuffled"]
    assert found["the circuit, facts shuffled"][0] < 0.2


def test_an_order_is_for_tasks_that_have_one() -> None:
    assert Retrieval(hops=2).ordered("shuffled") == Retrieval(hops=2, order="shuffled")
    told = "facts shuffled: the task 'khop' does not choose the order of its facts; those over"
    with pytest.raises(ConfigError, match=told):
        KHop().ordered("shuffled")


def test_the_loss_of_a_hop_that_is_asked_alone_has_its_number(
    tiny: Experiment, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    task = tiny.task.model_copy(update={"curriculum": False})
    train(tiny.model_copy(update={"task": task}), store)
    words = ["--store", str(store.root), "--head", "0.0=uniform", "--examples", "8", "--json"]
    assert hopscope(["ablate", "retrieval", *words]) == 0
    for row in json.loads(capsys.readouterr().out):
        assert [*row] == ["changed", "loss", "hop_2"]
