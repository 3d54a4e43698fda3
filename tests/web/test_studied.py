"""A study on the page: a model from elsewhere with its task, by the routes that a run has."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from asking import Ask, asked, wait

from hopscope import Study
from hopscope.circuits import (
    BlockAdapter,
    CallbackModel,
    Circuit,
    Drawn,
    OwnTask,
    adapter_of,
    examples_of,
)
from hopscope.circuits.attention import attended
from hopscope.cli.main import run as command
from hopscope.configs import KHop, Model, Retrieval
from hopscope.errors import CircuitError, ConfigError, HopscopeError
from hopscope.models import Transformer
from hopscope.store import Store
from hopscope.web.carried import carried
from hopscope.web.questions import AblateQuestion, CostsQuestion, ExampleQuestion
from hopscope.web.studied import Studied
from hopscope.web.tensors import unpacked
from hopscope.web.views import Views
from tests.circuits import induction


def views_of(root: Path, study: Study, circuit: Circuit | None = None, **more: Any) -> Views:
    return Views(Store(root), study=lambda memory: Studied(study, circuit, memory, **more))


@pytest.fixture(scope="module")
def study() -> Study:
    return Study(induction.adapter(20.0), induction.TASK, name="by hand")


@pytest.fixture(scope="module")
def circuit(study: Study) -> Circuit:
    return study.discover(examples=64)


@pytest.fixture(scope="module")
def views(study: Study, circuit: Circuit, tmp_path_factory: pytest.TempPathFactory) -> Views:
    words = "t{}".format
    return views_of(tmp_path_factory.mktemp("none") / "runs", study, circuit, words=words)


def test_every_route_of_a_run_answers(views: Views) -> None:
    """None of them asks for a run; those that keep something, or go through a training, refuse."""
    run, question = b"/api/runs/study", {"changes": ["0.0=uniform"], "examples": 8}
    posed = json.dumps(question).encode()
    answers = asked(
        Ask(path=b"/api/runs"),
        Ask(path=run),
        Ask(path=run + b"/arrays/maps"),
        Ask(path=run + b"/arrays/contents", query=b"step=0"),
        Ask("POST", run + b"/example", body=b'{"index": 3}'),
        Ask("POST", run + b"/ablate", body=posed),
        Ask("POST", run + b"/costs", body=b'{"examples": 8}'),
        Ask(path=run + b"/views"),
        Ask("POST", run + b"/over-time", body=posed),
        Ask("PUT", run + b"/views/one", body=b'{"address": "#/"}'),
        Ask("POST", run + b"/ablate", body=b'{"step": 5}'),
        views=views,
    )
    assert [answer.status for answer in answers] == [200] * 8 + [422] * 3
    first = answers[0].json()["rows"][0]
    assert (first["id"], first["name"], first["kind"]) == ("study", "by hand", "study")
    told = answers[1].json()
    assert told["task"]["roles"] == ["filler", "first", "second"]
    assert told["circuit"]["verdict"].startswith("Explained")
    assert told["task"]["symbols"] == ["itself", "induction", "same"]
    lines = [json.loads(line)["change"] for line in answers[6].body.splitlines()]
    assert lines == ["0.0=uniform", "1.0=uniform"]
    refused = [answer.json()["error"] for answer in answers[8:]]
    assert refused[0] == "a study has no over time"
    assert "copy its address" in refused[1]
    assert "a study has one state" in refused[2]


def test_numbers_are_those_of_the_study(views: Views, study: Study) -> None:
    found = views.shown("study").ablate(AblateQuestion(changes=("0.0=uniform",)), wait)
    wanted = study.ablate("0.0=uniform")
    np.testing.assert_allclose(found["clean"]["mean"], wanted.model, rtol=1e-6)
    np.testing.assert_allclose(found["changed"]["mean"], wanted.rows[0].losses, rtol=1e-6)
    maps, _ = unpacked(views.shown("study").arrays("maps"))
    np.testing.assert_array_equal(maps["own"][0], study.attention().own.astype(np.float16))
    contents, _ = unpacked(views.shown("study").arrays("contents"))
    probe = study.probe()
    np.testing.assert_array_equal(contents["own"][0], probe.stream.own.astype(np.float16))
    asked = AblateQuestion(changes=("0.0=uniform",), probe=True, examples=8)
    cut = np.array(views.shown("study").ablate(asked, wait)["decodable"]["own"], float)
    assert cut.shape == contents["own"][0].shape
    assert cut[2, 2, 1] < contents["own"][0, 2, 2, 1] - 0.5  # what induction leads to is gone


def test_an_example_in_words_with_heads_changed(views: Views, study: Study) -> None:
    for changes in ((), ("0.0=mean", "1.0=position")):
        arrays, told = unpacked(
            views.shown("study").example(ExampleQuestion(index=5, changes=changes))
        )
        drawn = examples_of(study.task, 256)
        seen = torch.stack(attended(adapter_of(study.model), drawn.part([5])).weights)[:, 0].numpy()
        np.testing.assert_array_equal(arrays["attention"], seen.astype(np.float16))
        assert [token["text"] for token in told["tokens"]] == [f"t{n}" for n in drawn.inputs[5]]
        answers = [answer["hops"][0] for answer in told["answers"]]
        assert [hop["truth"] for hop in answers] == [f"t{n}" for n in drawn.targets[5]]
        assert all(hop["right"] for hop in answers)
    assert not all(answer["hops"][0]["right"] for answer in told["changes"]["answers"])
    with pytest.raises(ConfigError, match="cannot be typed or shuffled"):
        views.shown("study").example(ExampleQuestion(tokens=("t1",)))


def test_vectors_and_models_that_run_as_a_whole(tmp_path: Path) -> None:
    """What is not known is absent: answers that are no classes, squares without symbols."""
    task = Retrieval(hops=1, chains=2)
    model = Transformer.seeded(Model(layers=2, heads=2, d_model=16), task.interface(), 0)

    def forward(inputs: torch.Tensor, attention: Any) -> torch.Tensor:
        return model(inputs, attention=attention, read=inputs.shape[1])

    whole = CallbackModel(forward, model, (2, 2))

    def draw(examples: int, seed: int) -> Drawn:
        drawn = examples_of(task, examples, seed)
        names = [str(drawn.table[n]) for n in drawn.roles.role[0]]
        return Drawn(drawn.inputs, torch.zeros(examples, 2, task.dim), roles=names)

    own = OwnTask(draw, roles=[str(role) for role in task.roles()], chance=1.0)
    views = views_of(tmp_path, Study(whole, own))
    told = views.run("study")
    assert (told["arrays"], told["task"]["symbols"]) == (["maps"], [])
    arrays, words = unpacked(views.shown("study").example(ExampleQuestion(changes=("1.0=itself",))))
    assert words["answers"] == words["changes"]["answers"] == []
    assert words["tokens"][1]["text"] == "#1"
    itself = arrays["changes.attention"][1, 0]
    np.testing.assert_array_equal(itself, np.eye(len(itself)))
    with pytest.raises(CircuitError, match="a CallbackModel cannot replace head outputs"):
        views.shown("study").example(ExampleQuestion(changes=("1.0=mean",)))
    facts = views_of(tmp_path, Study(whole, task))  # a task of hopscope: symbols can be typed
    _, words = unpacked(facts.shown("study").example(ExampleQuestion(order=3)))
    assert words["answers"][0]["hops"][0]["truth"][1] == "1"
    assert sorted(carried(facts, "study")["arrays"]) == ["maps"]  # no squares


def test_a_saved_page_has_what_was_measured(views: Views) -> None:
    data = carried(views, "study")
    assert (data["row"]["id"], sorted(data["arrays"])) == ("study", ["contents", "maps"])
    assert list(data["known"]["0"]["changes"]) == ["0.0=uniform", "1.0=uniform"]
    asked = CostsQuestion(examples=256)
    for row in views.shown("study").costs(asked, wait):
        assert data["known"]["0"]["changes"][row["change"]] == row["changed"]
    assert "engine" not in data


def test_what_does_not_fit_is_one_line(tmp_path: Path, study: Study, circuit: Circuit) -> None:
    def refused(study: Study, circuit: Circuit | None, expected: str) -> None:
        with pytest.raises(CircuitError) as error:
            views_of(tmp_path, study, circuit)
        assert expected in str(error.value)
        assert "\n" not in str(error.value)

    refused(Study(induction.adapter(9.0), induction.TASK), circuit, "found in another model")
    khop = KHop(hops=1, alphabet=4, length=induction.PLACES)
    refused(Study(induction.adapter(20.0), khop), circuit, "the circuit is of the roles filler,")
    refused(Study(torch.nn.Linear(2, 2), khop), None, "there is no adapter for Linear")
    deaf = induction.Induction(20.0)

    def block(layer: int, x: torch.Tensor, attend: Any) -> torch.Tensor:
        return deaf.block(layer, x, lambda *parts, **_: torch.zeros_like(parts[2]))

    made = BlockAdapter(deaf.embed, block, deaf.answers, deaf, shape=(2, 1))
    refused(Study(made, induction.TASK), None, "attend")
    (tmp_path / "task.json").write_text('{"kind": "khop", "hops": 1, "alphabet": 4, "length": 99}')
    task = str(tmp_path / "task.json")
    for words, expected in (
        ((f"hf:{tmp_path}",), "needs --task"),
        ((f"hf:{tmp_path}/none", "--task", task), "none does not exist"),
        ((f"hf:{tmp_path}", "--task", task), "cannot be loaded by transformers"),
        (("gallery/demo", "--task", task), "--task is for a model from elsewhere"),
        (("gallery/demo", "--circuit-file", task), "--circuit-file is for a model from elsewhere"),
    ):
        with pytest.raises(HopscopeError, match=expected) as error:
            command(("view", *words, "--no-browser"))
        assert "\n" not in str(error.value)


def test_a_slow_model_is_measured_on_few_examples(
    tmp_path: Path, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seconds, counts in ((0.1, [256, 1024]), (1.0, [64, 256]), (9.0, [64])):
        clock = iter((0.0, seconds))
        watch = SimpleNamespace(monotonic=clock.__next__)
        monkeypatch.setattr("hopscope.web.studied.time", watch)
        assert views_of(tmp_path, study).run("study")["counts"] == counts


def test_decoders_of_transformers_answer_several_threads() -> None:
    """A click is measured while squares are: neither sees what the other hands to the layers."""
    families = pytest.importorskip("tests.circuits.families")
    adapter = adapter_of(families.made("gpt2"))
    samples = [torch.randint(families.TOKENS, (count, 12)) for count in (3, 5, 64)]
    wanted = [adapter.unembed(adapter.embed(each)) for each in samples]

    def same(number: int) -> bool:
        each, expected = samples[number], wanted[number]
        again = (adapter.unembed(adapter.embed(each)) for _ in range(20))
        return all(torch.equal(found, expected) for found in again)

    with torch.no_grad(), ThreadPoolExecutor(3) as threads:
        assert all(threads.map(same, range(3)))
