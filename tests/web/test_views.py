"""What the page is told of the gallery, and that its numbers are the command line's."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asking import wait

from hopscope import load
from hopscope.circuits import Ablation, Ablator, adapter_of, examples_of, tracking
from hopscope.circuits.ablation import changes_of
from hopscope.circuits.attention import attended
from hopscope.circuits.pattern import Source
from hopscope.circuits.tables import tables_of
from hopscope.cli.main import run as command
from hopscope.configs import Experiment, LmCircuit, Prompts
from hopscope.errors import CircuitError, ConfigError, RunMissing, RunReadOnly, RunWarning
from hopscope.runs import train
from hopscope.store import RunFolder, Store
from hopscope.study import Study
from hopscope.study.study import MAP_EXAMPLES
from hopscope.web import page
from hopscope.web.carried import carried
from hopscope.web.questions import AblateQuestion, CostsQuestion, ExampleQuestion
from hopscope.web.shown import Shown
from hopscope.web.tensors import unpacked
from hopscope.web.views import Views

DEMO = "gallery-demo"


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    capsys.readouterr()
    assert command((*arguments, "--json")) == 0
    return json.loads(capsys.readouterr().out)


def losses(rows: list[dict[str, Any]]) -> list[list[float]]:
    return [[value for name, value in row.items() if name.startswith("hop_")] for row in rows]


def test_a_head_by_position_attends_as_on_other_examples(
    views: Views, capsys: pytest.CaptureFixture[str]
) -> None:
    """On 256 of those for tables, however many losses are measured on; on a circuit, as its own
    tables say, where it has them. All losses are those of the command.
    """
    run = load("gallery/demo")
    assert isinstance(run, Study)
    adapter = adapter_of(run.model)
    examples, others = examples_of(run.task, 32, 3), examples_of(run.task, 256, 3, "tables")
    changed = ("0.2=position", "1.0=position")
    heads, circuit = [Source("position", head=at) for at in ((0, 2), (1, 0))], run.circuit
    usual = [its.mean(0).round(decimals=4) for its in attended(adapter, others).weights]  # as kept
    tables = dict(zip(heads, (usual[0][2], usual[1][0]), strict=True))
    for flags, base, followed in (
        ((), {}, tables),
        (("--circuit",), dict(circuit.ablation().changes), {**tables, **tables_of(circuit)}),
    ):
        asked = AblateQuestion(changes=changed, examples=32, sample=3, circuit=bool(flags))
        told = views.shown(DEMO).ablate(asked, wait)
        rows = said(capsys, "ablate", "gallery/demo", "--head", changed[0], "--head", changed[1],
                    "--examples", "32", "--sample", "3", *flags)  # fmt: skip
        its = replace(examples, tables=followed)
        changes = changes_of(changed, base)
        wanted = Ablator(adapter, its).losses([Ablation.of(changes)])[0].mean(0)
        found = [told["clean"]["mean"], told["changed"]["mean"]]
        np.testing.assert_allclose(found[1], wanted, atol=1e-6)
        np.testing.assert_allclose(losses(rows), found, atol=1e-6)
    fewer = views.shown(DEMO).ablate(asked.model_copy(update={"examples": 4}), wait)
    assert sum(told["clean"]["half"]) < 0.7 * sum(fewer["clean"]["half"])


FIRST = """
import sys
from hopscope.store import Store
from hopscope.web.views import Views
views = Views(Store(sys.argv[1]))
ids = [row["id"] for row in views.runs()["rows"]]
found = {id_: views.run(id_) for id_ in ids}
for id_ in ("gallery-demo", "gallery-transformer-a", "gallery-planted"):
    assert found[id_]["circuit"]["account"]
    for name in ("maps", "contents"):
        assert views.shown(id_).at_hand(name) is not None
for name, known in (("demo", "emerged"), ("planted", "planted")):
    run = found[f"gallery-{name}"]
    keys = [each if isinstance(each, str) else each["name"] for each in run[known]]
    paths = [path for its in run["circuit"]["components"] for path in its["paths"]]
    assert {*keys} == {path["name"] for path in paths}
assert ["findings"] in [each["arrays"] for each in found.values()]
print("torch" in sys.modules)
"""


def test_the_first_view_computes_nothing(store: Store) -> None:
    """Or the thread of short questions would be held up for seconds."""
    prompts = Prompts(formulation="equations", hops=2)
    store.create(LmCircuit(model="x", prompts=prompts)).commit({}, complete=True)
    line = [sys.executable, "-c", FIRST, str(store.root)]
    done = subprocess.run(line, capture_output=True, text=True, check=True, timeout=600)
    assert done.stdout == "False\n"


@pytest.mark.slow
def test_emergence_is_that_of_the_command(views: Views, capsys: pytest.CaptureFixture[str]) -> None:
    _, told = unpacked(views.shown(DEMO).arrays("emergence"))
    wanted = said(capsys, "emergence", "gallery/demo")
    emerged = [path["emerged_at_step"] for path in wanted["paths"]]
    found, run = list(told["emerged"].values()), views.run(DEMO)
    np.testing.assert_allclose(found, emerged, atol=1e-6)
    kept = list(run["emerged"].values())  # computed on another machine
    np.testing.assert_allclose(found, kept, rtol=1e-6)
    assert wanted["learned_at"] == run["learned"]


def test_the_page_states_the_numbers_of_examples_of_attention_and_of_emergence() -> None:
    text = (Path(page.__file__).parent / "static" / "explained.js").read_text()
    assert f'averaged over " +\n    "{MAP_EXAMPLES} fresh examples' in text
    assert f"`hopscope emergence` takes {tracking.EXAMPLES} others by default" in text


def test_what_is_not_there_is_told_in_one_line(views: Views, tmp_path: Path) -> None:
    closed = Views(Store(tmp_path), read_only=True)
    model, ngram, off = views.shown(DEMO), views.shown("gallery-ngram"), ("9.0=uniform",)
    none = "a run of kind ngram has no"
    for ask, kind, line in (
        (lambda: views.run("0123456789"), RunMissing, "there is no run '0123456789'; `hopscope ru"),
        (lambda: model.arrays("weights"), ConfigError, "no arrays 'weights'; this one has l"),
        (lambda: model.ablate(AblateQuestion(step=7), wait), ConfigError, "step is 7; "),
        (lambda: views.shown(DEMO, 9).ablate(AblateQuestion(), wait), ConfigError, "seed is 9; "),
        (lambda: model.ablate(AblateQuestion(changes=off), wait), CircuitError, "no head 9"),
        (lambda: ngram.example(ExampleQuestion()), ConfigError, none),
        (lambda: ngram.ablate(AblateQuestion(), wait), ConfigError, none),
        (lambda: views.keep(DEMO, "mine", None), RunReadOnly, "gallery/demo is read-only"),
        (lambda: closed.keep(DEMO, "mine", None), RunReadOnly, "this page is read-only"),
    ):
        with pytest.raises(kind, match=line):
            ask()


def test_rows_that_cannot_be_read_are_refused_as_by_the_command(views: Views) -> None:
    model, change = views.shown(DEMO), "1.3=query>value 1"
    asked = AblateQuestion(changes=(change,), examples=4)
    costs = CostsQuestion(changes=(change,), examples=4)
    for answer in (
        lambda: command(("ablate", "gallery/demo", "--head", change, "--examples", "4")),
        lambda: model.ablate(asked, wait),
        lambda: next(model.over_time(asked, wait)),
        lambda: next(model.costs(costs, wait)),
        lambda: model.example(ExampleQuestion(changes=(change,))),
    ):
        with pytest.raises(CircuitError, match=r"1\.3: value 1 can never see query: in every"):
            answer()


def test_views_are_kept_beside_the_run(store: Store, tiny: Experiment) -> None:
    """And an error names no folder of this machine."""
    folder = train(tiny, store).folder
    views = Views(store)
    id_ = folder.name.rpartition("-")[2]
    assert views.views(id_) == {}
    first = {"address": "#/run/x?step=5"}
    for name in ("my view 1", "two"):
        views.keep(id_, name, first)
    assert views.views(id_) == {"my view 1": first, "two": first}
    views.keep(id_, "two", None)
    assert views.views(id_) == {"my view 1": first}
    with pytest.raises(ConfigError, match="has no view 'two'; it has my view 1"):
        views.keep(id_, "two", None)
    assert RunFolder(folder.path).verify() == []
    for name in ("../x", "", "a" * 61, "x\n"):
        with pytest.raises(ConfigError, match="the view is called .*; expected up to 60 letters"):
            views.keep(id_, name, first)
    for view in ({}, {"address": 1}, {"step": 5}, {**first, "more": 1}):
        with pytest.raises(ConfigError, match="nothing else can be saved"):
            views.keep(id_, "strange", view)
    with pytest.raises(ConfigError, match="the view takes more than 16,384 letters"):
        views.keep(id_, "large", {"address": "x" * 20_000})
    error = ConfigError(f"{store.root.absolute()}{os.sep}x is\ndamaged")
    assert views.told(error) == "x is damaged"


def test_a_saved_page_leaves_out_what_cannot_be_read(
    views: Views, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = Shown.arrays

    def arrays(self: Shown, name: str, *more: Any) -> bytes:
        if name == "contents":
            raise CircuitError("a residual stream cannot be read off 3 positions")
        return measured(self, name, *more)

    monkeypatch.setattr(Shown, "arrays", arrays)
    monkeypatch.setattr("hopscope.web.carried._more", lambda *_: {})  # what else there is
    with pytest.warns(RunWarning, match="does not show what roles hold: a residual stream cannot"):
        page = carried(views, "gallery-demo")
    assert "contents" not in page["arrays"]
    assert {"losses", "maps"} <= {*page["arrays"]} == {*page["description"]["arrays"]}
