"""Fleets on the page, at every checkpoint, with every head and path changed in turn."""

import base64
import gzip
import json
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asking import wait
from short import FLEET, ID

from hopscope.circuits.saved import checkpoint_digest, saved_circuit
from hopscope.cli.main import run as command
from hopscope.configs import Experiment
from hopscope.errors import ConfigError
from hopscope.runs import train
from hopscope.store import Store, gallery
from hopscope.store.checkpoints import checkpoint_name
from hopscope.study import load
from hopscope.web.carried import as_text, step_data
from hopscope.web.questions import AblateQuestion, Ask, CostsQuestion, ExampleQuestion
from hopscope.web.tensors import unpacked
from hopscope.web.views import Views


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("fleet") / "runs"
    train(FLEET, Store(root))
    return root


@pytest.fixture(scope="module")
def views(root: Path) -> Views:
    return Views(Store(root))


def said(root: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    capsys.readouterr()
    name, *rest = arguments
    flags = ("--seed", "9", "--store", str(root), "--json")
    assert command((name, FLEET.run_name(), *rest, *flags)) == 0
    return json.loads(capsys.readouterr().out)


def hops(row: dict[str, Any]) -> list[float]:
    return [value for name, value in row.items() if name.startswith("hop_")]


def test_maps_and_contents_of_a_seed_are_those_of_the_command(
    views: Views, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = views.run(ID, 9)
    assert (found["seeds"], found["seed"], found["circuit"]) == ([4, 9], 9, None)
    maps, _ = unpacked(views.shown(ID, 9).arrays("maps"))
    every, _ = unpacked(views.shown(ID).arrays("fleet"))
    wanted = said(root, capsys, "attention")
    for kind in ("own", "others", "itself", "previous"):
        halves = np.array(wanted[kind], np.float16)
        np.testing.assert_array_equal(maps[kind][-1], halves)
        np.testing.assert_array_equal(every[kind][1], halves)
    held, told = unpacked(views.shown(ID, 9).arrays("contents"))
    wanted = said(root, capsys, "probe", "--over-training")
    assert (told["roles"], told["symbols"]) == (wanted["roles"], wanted["symbols"])
    # JSON has five digits, and the page halves.
    np.testing.assert_allclose(held["own"], np.array(wanted["own"], float), atol=5e-4)
    asked = AblateQuestion(step=10, examples=4, probe=True)
    squares = views.shown(ID, 9).ablate(asked, wait)["decodable"]  # nothing is changed yet
    np.testing.assert_allclose(np.array(squares["own"], float), held["own"][2], atol=5e-4)
    assert (squares["roles"], squares["symbols"]) == (told["roles"], told["symbols"])
    without = AblateQuestion(step=10, examples=4, probe=True, changes=("0.1=position",))
    changed = np.array(views.shown(ID, 9).ablate(without, wait)["decodable"]["own"], float)
    assert np.array_equal(changed[0], np.array(squares["own"], float)[0])
    assert not np.allclose(changed[1], squares["own"][1], atol=1e-3)
    for at, step in ((1, 5), (3, 12)):
        single, same = unpacked(views.shown(ID, 9).arrays("contents", step))
        np.testing.assert_array_equal(single["own"], held["own"][at : at + 1])
        assert (single["steps"].tolist(), same) == ([step], told)


def test_the_same_change_at_every_checkpoint(
    views: Views, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = AblateQuestion(examples=16, changes=("0.1:query=previous", "1.0=mean"))
    found = list(views.shown(ID, 9).over_time(asked, wait))
    assert [row["step"] for row in found] == [0, 5, 10, 12]
    flags = ("--examples", "16", "--head", "0.1:query=previous", "--head", "1.0=mean")
    for row in found:
        rows = said(root, capsys, "ablate", *flags, "--step", str(row["step"]))
        told = [row["clean"]["mean"], row["changed"]["mean"]]
        np.testing.assert_allclose(told, [hops(each) for each in rows], atol=1e-6)


def test_every_head_and_every_row_in_turn(
    views: Views, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = list(views.shown(ID, 9).costs(CostsQuestion(examples=8, instead="itself"), wait))
    changes = [row["change"] for row in found]
    assert changes[:4] == ["0.0=itself", "0.1=itself", "1.0=itself", "1.1=itself"]
    assert len(changes) == 4 + 4 * 5  # without a circuit, the row of every role
    rows = said(root, capsys, "ablate", "--examples", "8")
    wanted = {row["changed"]: hops(row) for row in rows}
    for row in found[:4]:
        np.testing.assert_allclose(row["changed"]["mean"], wanted[row["change"]], atol=1e-6)
        np.testing.assert_allclose(row["clean"]["mean"], wanted["the model"], atol=1e-6)
    last = said(root, capsys, "ablate", "--examples", "8", "--head", changes[-1])
    np.testing.assert_allclose(found[-1]["changed"]["mean"], hops(last[-1]), atol=1e-6)
    replaced = CostsQuestion(examples=8, changes=("0.0=mean",), instead="resample")
    found = {row["change"]: row for row in views.shown(ID, 9).costs(replaced, wait)}
    flags = ("--head", "0.0=mean", "--head", "1.1:query=resample")
    rows = said(root, capsys, "ablate", "--examples", "8", *flags)
    ours = found["1.1:query=resample"]["changed"]["mean"]
    np.testing.assert_allclose(ours, hops(rows[-1]), atol=1e-6)
    assert "0.0:query=resample" in found


def test_a_saved_page_is_of_the_seed_and_the_step_that_are_asked_for(
    views: Views, root: Path, tmp_path: Path
) -> None:
    study = load(FLEET.run_name(), seed=9, step=10, store=root)
    study.view(save=tmp_path / "page")
    script = (tmp_path / "page" / "data.js").read_text().partition(" = ")[2]
    page = json.loads(script.removesuffix(";\n"))
    told = page["description"]
    assert (told["seed"], told["seeds"], told["member"], told["opens_at"]) == (9, [9], 1, 10)
    for name in ("maps", "contents"):
        assert page["arrays"][name] == as_text(views.shown(ID, 9).arrays(name))
    assert list(page["engine"]["steps"]) == ["0", "10", "12"]
    assert page["engine"]["steps"]["10"] == step_data(study.model, study.task)
    row = next(views.shown(ID, 9).costs(CostsQuestion(step=5), wait))
    assert page["known"]["5"]["clean"] == row["clean"]
    assert page["known"]["5"]["changes"][row["change"]] == row["changed"]
    example = unpacked(views.shown(ID, 9).example(ExampleQuestion(step=5)))[0]
    packed = gzip.decompress(base64.b64decode(page["first"]["5"]))
    np.testing.assert_array_equal(unpacked(packed)[0]["attention"], example["attention"])


class Left(Exception):
    """Nobody waits any more."""


def leaves(after: int = 0) -> Ask:
    """Somebody who waits until so many steps are done."""
    done = count(1)

    def ask() -> None:
        if next(done) > after:
            raise Left

    return ask


def test_what_nobody_waits_for_ends(root: Path) -> None:
    """An answer, a stream, and arrays."""
    views = Views(Store(root))
    asked = AblateQuestion(examples=8, changes=("0.0=uniform",))
    with pytest.raises(Left):
        views.shown(ID, 4).ablate(asked, leaves())
    with pytest.raises(Left):
        list(views.shown(ID, 4).over_time(asked, leaves(4)))
    for name in ("maps", "contents", "fleet"):
        assert views.shown(ID).at_hand(name) is None
        with pytest.raises(Left):
            views.shown(ID).arrays(name, ask=leaves(1))
    with pytest.raises(Left):
        views.shown(ID).arrays("contents", step=5, ask=leaves())
    for name in ("maps", "losses"):
        assert views.shown(ID).arrays(name) == views.shown(ID).at_hand(name)
    assert views.shown(ID, 4).ablate(asked, wait)["examples"] == 8


def test_a_run_in_training_is_told_within_one_call(store: Store, tiny: Experiment) -> None:
    folder = store.create(tiny)
    views, id_ = Views(store), folder.name.rpartition("-")[2]
    cursor = views.runs()["cursor"]
    found = views.run(id_)
    assert (found["state"], found["arrays"], found["learned"]) == ("stopped", ["losses"], None)
    with pytest.raises(ConfigError, match="has no arrays 'maps'; this one has losses"):
        views.shown(id_).arrays("maps")
    train(tiny, store)
    rows = views.runs(cursor)["rows"]
    assert [(row["id"], row["state"], row["step"]) for row in rows] == [(id_, "complete", 12)]
    assert views.run(id_)["checkpoints"] == [0, 5, 10, 12]
    assert views.shown(id_).ablate(AblateQuestion(examples=4), wait)["names"] == ["hop 1", "hop 2"]


def test_the_step_that_a_circuit_was_found_at_is_told(store: Store, tiny: Experiment) -> None:
    folder, id_ = train(tiny, store).folder, tiny.run_name().rpartition("-")[2]
    circuit = saved_circuit(gallery.find("demo"), 0)
    assert circuit is not None
    for digest, step in ((checkpoint_digest(folder, 5, 0), 5), ("0" * 64, None)):
        with folder.locked():
            folder.commit({"circuit.json": circuit.model_copy(update={"model": digest}).to_bytes()})
        assert Views(store).run(id_)["circuit_step"] == step
    (folder.path / checkpoint_name(10)).unlink()  # said when it is asked for
    assert Views(store).run(id_)["circuit_step"] is None


def test_a_circuit_without_paths_is_not_followed(store: Store, tiny: Experiment) -> None:
    folder, id_ = train(tiny, store).folder, tiny.run_name().rpartition("-")[2]
    circuit = saved_circuit(gallery.find("demo"), 0)
    assert circuit is not None
    for components, followed in ((circuit.components, True), ((), False)):
        kept = circuit.model_copy(update={"components": components})
        with folder.locked():
            folder.commit({"circuit.json": kept.to_bytes()})
        found = Views(store).run(id_)
        assert ("emergence" in found["arrays"]) == followed


def test_what_is_known_is_not_computed_again(root: Path) -> None:
    """An answer, and the model as it is beside other changes; unless there is no room."""
    views, walked = Views(Store(root)), list[int]()

    def noted() -> None:
        walked.append(len(walked))  # asked before every layer that is computed

    def asked(*changes: str) -> int:
        walked.clear()
        views.shown(ID).ablate(AblateQuestion(examples=4, changes=changes), noted)
        return len(walked)

    layers = FLEET.model.layers
    assert asked() == layers
    assert asked("0.0=uniform") == layers  # the changed half alone
    assert asked("0.0=uniform") == 0
    small, question = Views(views.store, memory=1), AblateQuestion(examples=4)
    model = views.shown(ID)
    assert small.shown(ID).ablate(question, wait) == model.ablate(question, wait)
    assert small.memory.held == 0
